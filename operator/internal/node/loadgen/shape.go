package loadgen

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Phase is a part of a run in which the load changes linearly from one share of the whole to
// another. A share is a fraction of the rate of an open loop, or of the clients of a closed loop:
// 0.5 is half of it.
type Phase struct {
	// For is how long the phase lasts, above 0s and at most 24h.
	For Duration `json:"for"`
	// From and To are the shares at its beginning and at its end. Each is from 0 to 1000, and at
	// most 1 in a closed loop. For a constant load they are equal.
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

// MaxShare is the highest share that a phase may have.
const MaxShare = 1000

func (c Config) validatePhases() (errs []error) {
	most, above := 1.0, false
	if c.Loop == LoopOpen {
		most = MaxShare
	}
	for i, p := range c.Phases {
		if p.For <= 0 || p.For > Duration(24*time.Hour) {
			errs = append(errs, fmt.Errorf("phases[%d].for is %v; it must be above 0s, and 24h at most", i, time.Duration(p.For)))
		}
		for name, share := range map[string]float64{"from": p.From, "to": p.To} {
			if !(share >= 0 && share <= most) {
				errs = append(errs, fmt.Errorf("phases[%d].%s is %v; in this loop it must be from 0 to %g", i, name, share, most))
			}
			above = above || share > 0
		}
	}
	if len(c.Phases) > 0 && !above {
		errs = append(errs, errors.New("phases have no load: at least one share must be above 0"))
	}
	return errs
}

// never is an instant that no run reaches.
const never = time.Duration(1 << 62)

// shape is the load over time, as a share of the whole. It begins with the load, and its last piece
// has no end.
//
//	share
//	  ^         from __/ to            work = the area below the line, in seconds of the whole load
//	  |  _______/                      instants of requests = where the area reaches theirs
//	  +--start--length--> time
type shape []piece

// piece is a line.
type piece struct {
	start, length float64 // seconds after the start of the load
	from, to      float64 // shares
	before        float64 // the area below all earlier pieces
}

// newShape begins the phases at t = 0. During the warm-up the share is the first share of the first
// phase. After the last phase it stays at the last share.
func newShape(phases []Phase, warmUp time.Duration) shape {
	if len(phases) == 0 {
		return nil
	}
	first, last := phases[0].From, phases[len(phases)-1].To
	lines := []piece{{length: warmUp.Seconds(), from: first, to: first}}
	for _, p := range phases {
		lines = append(lines, piece{length: time.Duration(p.For).Seconds(), from: p.From, to: p.To})
	}
	lines = append(lines, piece{length: math.Inf(1), from: last, to: last})
	var s shape
	start, work := 0.0, 0.0
	for _, p := range lines {
		p.start, p.before = start, work
		s = append(s, p)
		start += p.length
		work += p.length * (p.from + p.to) / 2
	}
	return s
}

// when is the instant at which the area below the shape reaches some work. It returns never if the
// load ends before that.
//
// It maps a plain pacer's instants, taken as work, to the instants of the changing load. Equal gaps
// become gaps that follow the load, and a Poisson process becomes one whose rate follows the shape
// (time rescaling: Cinlar, Introduction to Stochastic Processes, 1975, section 4.7).
func (s shape) when(work time.Duration) time.Duration {
	want := work.Seconds()
	for i := range s {
		p := &s[i]
		if next := i + 1; next < len(s) && want >= s[next].before-workRounding {
			continue
		}
		if i+1 == len(s) && p.from == 0 {
			break // the load is 0 from here on
		}
		return seconds(p.start + p.reaches(want-p.before))
	}
	return never
}

// workRounding is the rounding error of work, which comes in whole nanoseconds. A request at the
// very end of a phase belongs to the next one.
const workRounding = 1.5e-9

// reaches is the time in the piece at which the area below it is w. It is the positive root of from
// x + slope/2 x² = w. The formula has no difference of terms, so that it is also exact for a slope
// of 0.
func (p *piece) reaches(w float64) float64 {
	if w <= 0 {
		return 0
	}
	return min(p.length, 2*w/(p.from+math.Sqrt(max(0, p.from*p.from+2*p.slope()*w))))
}

func (p *piece) slope() float64 {
	if math.IsInf(p.length, 1) {
		return 0
	}
	return (p.to - p.from) / p.length
}

// rounding of shares and seconds. A client is active at the very instant at which its share is
// reached, and inactive at the very end of a phase.
const rounding = 1e-9

// from is the first instant, at or after another, at which the share is at least level. It returns
// never if there is no such instant.
func (s shape) from(at time.Duration, level float64) time.Duration {
	level -= rounding
	for i := range s {
		p := &s[i]
		x := at.Seconds() - p.start
		if x >= p.length-rounding {
			continue
		}
		x = max(0, x)
		switch {
		case p.from+p.slope()*x >= level:
			return max(at, seconds(p.start+x))
		case p.to >= level:
			return max(at, seconds(p.start+(level-p.from)/p.slope())+1)
		}
	}
	return never
}

func seconds(s float64) time.Duration {
	if s >= never.Seconds() {
		return never
	}
	return time.Duration(s * float64(time.Second))
}

// shapedPacer follows a shape.
type shapedPacer struct {
	of    pacer // a pacer at the whole rate
	shape shape
}

func (p *shapedPacer) next() time.Duration { return p.shape.when(p.of.next()) }

// level is the least share of all clients at which a client, given by its global index, is active.
// The order in which clients join takes them evenly from all generators.
func (c Config) level(global int32) float64 {
	all := int64(max(c.AllClients, c.FirstClient+c.Clients))
	return float64(spreadRank(int64(global), all)+1) / float64(all)
}

// spreadRank returns the rank of one of n in an order in which neighbours are far apart. So the
// first few of the order come from everywhere. Any n numbers in a row have n ranks.
func spreadRank(k, n int64) int64 {
	step := max(1, int64(float64(n)*0.6180339887498949))
	for gcd(step, n) != 1 {
		step++
	}
	return k % n * step % n
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
