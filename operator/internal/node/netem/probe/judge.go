package probe

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
)

// Pair is the request for the two links between the pod that probes and one peer.
type Pair struct {
	// From probes To. The names are for messages.
	From string `json:"from"`
	To   string `json:"to"`
	// Peer is the address of To; it joins the pair with its Measurement.
	Peer netip.Addr `json:"peer"`
	// Out leads to the peer, and In back. A link with a loss of 1 is cut.
	Out shaping.Link `json:"out"`
	In  shaping.Link `json:"in"`
}

// Cut reports that no probe can be answered.
func (p Pair) Cut() bool { return p.Out.Loss >= 1 || p.In.Loss >= 1 }

// Tolerance of a judgement.
type Tolerance struct {
	// Late is how much longer one way may take than the requested delay and the undelayed path
	// together. A round trip may exceed it by twice as much. It is absolute: no backend's error
	// grows with the delay.
	Late time.Duration `json:"late"`
	// Path is the longest allowed time of one way of the undelayed path. A longer path was shaped
	// when it was measured, or the pods are too far apart for this network.
	Path time.Duration `json:"path"`
	// Lost is the largest share of probes that may be lost beyond the requested loss, from 0 to 1.
	// Only JudgeSteady uses it.
	Lost float64 `json:"lost"`
}

// DefaultTolerance is for the gate before a run, whose measurements are the least of several
// probes.
var DefaultTolerance = Tolerance{Late: 500 * time.Microsecond, Path: 2 * time.Millisecond, Lost: 0.05}

// SteadyTolerance is for a canary. Its probes share the processors with the measured system, so the
// canary judges their median.
var SteadyTolerance = Tolerance{Late: 5 * time.Millisecond, Path: 2 * time.Millisecond, Lost: 0.05}

// rounding is by how much a backend may be early: ticks of 64 ns in netem, the slack of timers in
// fq.
const rounding = 10 * time.Microsecond

// fewestLost is the least number of lost probes that can count as too many.
const fewestLost = 3

// Reason for which a pair is wrong.
type Reason string

// The reasons.
const (
	Unmeasured Reason = "Unmeasured" // there is no measurement
	Silent     Reason = "Silent"     // no probe was answered
	Connected  Reason = "Connected"  // probes were answered, although a link is cut
	Early      Reason = "Early"      // a packet was faster than the request allows
	Late       Reason = "Late"       // packets were slower than the request allows
	Swapped    Reason = "Swapped"    // each direction has the delay of the other
	LongPath   Reason = "LongPath"   // the undelayed path takes too long
	Lossy      Reason = "Lossy"      // more packets were lost than requested
)

// Wrong is a pair that differs from the request. Message names the pods, the request and the
// measurement.
type Wrong struct {
	From    string     `json:"from"`
	To      string     `json:"to"`
	Peer    netip.Addr `json:"peer"`
	Reason  Reason     `json:"reason"`
	Message string     `json:"message"`
}

// Judge compares the requested links with the measurements before a trial, and returns the wrong
// ones, in the order of the pairs.
//
// A link is right when the least time of its probes is between two bounds. The lower bound is the
// requested delay. The upper bound adds the least time of the undelayed path (baseline) and
// tolerance.Late. Jitter widens both bounds, and so does the error of a one-way time. If only the
// round trip is known, Judge uses it, and two swapped directions look right. A cut pair is right
// when no probe was answered. Judge does not check loss and rate: a few probes cannot show them.
//
// For a peer without a baseline, Judge assumes a path that takes no time.
func Judge(pairs []Pair, baseline, measured []Measurement, tolerance Tolerance) []Wrong {
	return judge(pairs, baseline, measured, tolerance, false)
}

// JudgeSteady is like Judge, for the measurements of a canary while no fault was active. No probe
// may be early. The median decides about lateness, since a single quick probe does not prove that
// the network held. Too many lost probes are wrong as well.
func JudgeSteady(pairs []Pair, baseline, measured []Measurement, tolerance Tolerance) []Wrong {
	return judge(pairs, baseline, measured, tolerance, true)
}

func judge(pairs []Pair, baseline, measured []Measurement, tolerance Tolerance, steady bool) []Wrong {
	paths, measurements := byPeer(baseline), byPeer(measured)
	var wrong []Wrong
	for _, pair := range pairs {
		m, known := measurements[pair.Peer.Unmap()]
		path := paths[pair.Peer.Unmap()]
		if !known {
			wrong = append(wrong, pair.wrong(Unmeasured, "%s <-> %s: not measured", pair.From, pair.To))
			continue
		}
		wrong = append(wrong, judgment{pair, m, path, tolerance, steady}.pair()...)
	}
	return wrong
}

func byPeer(measurements []Measurement) map[netip.Addr]Measurement {
	by := make(map[netip.Addr]Measurement, len(measurements))
	for _, m := range measurements {
		by[m.Peer.Unmap()] = m
	}
	return by
}

func (p Pair) wrong(reason Reason, format string, args ...any) Wrong {
	return Wrong{From: p.From, To: p.To, Peer: p.Peer, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// judgment of one pair.
type judgment struct {
	asked     Pair
	m, path   Measurement
	tolerance Tolerance
	steady    bool
}

func (j judgment) pair() []Wrong {
	from, to := j.asked.From, j.asked.To
	if j.asked.Cut() {
		if j.m.Answered > 0 {
			return []Wrong{j.asked.wrong(Connected, "%s <-> %s: asked to be cut, but %d of %d probes were answered", from, to, j.m.Answered, j.m.Sent)}
		}
		return nil
	}
	if j.m.Sent == 0 && j.steady {
		return nil // there were no steady probes
	}
	if j.m.Answered == 0 {
		return []Wrong{j.asked.wrong(Silent, "%s <-> %s: asked %s out and %s back, but none of %d probes was answered%s",
			from, to, ms(j.asked.Out.Delay), ms(j.asked.In.Delay), j.m.Sent, j.sendError())}
	}
	wrong := j.delays()
	if lost, most := j.m.Sent-j.m.Answered, j.mostLost(); j.steady && lost > most {
		wrong = append(wrong, j.asked.wrong(Lossy, "%s <-> %s: %d of %d probes were lost, at most %d may be%s", from, to, lost, j.m.Sent, most, j.sendError()))
	}
	return wrong
}

// mostLost is how many probes may be lost. It adds the tolerated losses to a number that chance
// exceeds once in a thousand times (three standard deviations).
func (j judgment) mostLost() int {
	n, p := float64(j.m.Sent), 1-(1-j.asked.Out.Loss)*(1-j.asked.In.Loss)
	return max(fewestLost-1, int(n*(p+j.tolerance.Lost)+3*math.Sqrt(n*p*(1-p))))
}

func (j judgment) sendError() string {
	if j.m.SendError == "" {
		return ""
	}
	return " (" + j.m.SendError + ")"
}

// delays judges each direction if it is known. It also judges the round trip if that shows more
// than the directions do.
func (j judgment) delays() []Wrong {
	from, to := j.asked.From, j.asked.To
	var wrong []Wrong
	if j.m.OneWay {
		out := way{from + " -> " + to, " one way", j.asked.Out.Delay, j.asked.Out.Jitter, j.path.Out.Min, j.m.Out, j.tolerance.Late, j.m.Error}
		in := way{to + " -> " + from, " one way", j.asked.In.Delay, j.asked.In.Jitter, j.path.In.Min, j.m.In, j.tolerance.Late, j.m.Error}
		if !j.path.OneWay {
			// The path's directions are not known. Each takes at most the time of both.
			out.path, in.path = j.path.RoundTrip.Min, j.path.RoundTrip.Min
		} else {
			out.path, in.path = max(0, out.path), max(0, in.path) // a negative time comes from the error of the clocks
			out.err += j.path.Error
			in.err += j.path.Error
		}
		outWrong, inWrong := out.judge(j), in.judge(j)
		if !(out.fits(j.steady) && in.fits(j.steady)) && out.as(in).fits(j.steady) && in.as(out).fits(j.steady) {
			return []Wrong{j.asked.wrong(Swapped, "%s -> %s: the directions are swapped: asked %s out and %s back, measured %s out and %s back",
				from, to, ms(out.delay), ms(in.delay), ms(out.upper(j.steady)), ms(in.upper(j.steady)))}
		}
		wrong = slices.Concat(outWrong, inWrong)
	}
	if len(wrong) == 0 && (!j.m.OneWay || j.m.Error > 0) {
		both := way{
			from + " <-> " + to, " round trip", j.asked.Out.Delay + j.asked.In.Delay, j.asked.Out.Jitter + j.asked.In.Jitter,
			j.path.RoundTrip.Min, j.m.RoundTrip, 2 * j.tolerance.Late, 0,
		}
		wrong = both.judge(j)
	}
	return wrong
}

// way is one direction, or both, of a pair.
type way struct {
	name, kind          string
	delay, jitter, path time.Duration
	measured            Spread
	tolerance, err      time.Duration
}

// as returns the measurement of one way with the request for the other.
func (w way) as(other way) way {
	other.measured = w.measured
	return other
}

// upper is the value that must not be too large.
func (w way) upper(steady bool) time.Duration {
	if steady {
		return w.measured.Median
	}
	return w.measured.Min
}

func (w way) early() bool { return w.measured.Min < w.delay-w.jitter-w.err-rounding }

func (w way) late(steady bool) bool {
	return w.upper(steady) > w.delay+w.jitter+w.path+w.tolerance+w.err
}

func (w way) fits(steady bool) bool { return !w.early() && !w.late(steady) }

func (w way) judge(j judgment) []Wrong {
	asked := ms(w.delay)
	if w.jitter > 0 {
		asked += "±" + ms(w.jitter)
	}
	within := "tolerance " + ms(w.tolerance)
	if w.err > 0 {
		within += ", clocks " + ms(w.err)
	}
	undelayed := w.path + w.tolerance + w.err
	limit := j.tolerance.Path
	if w.kind == " round trip" {
		limit *= 2
	}
	switch {
	case w.path > limit+w.err:
		return []Wrong{j.asked.wrong(LongPath, "%s: asked %s%s, but the path takes %s undelayed (at most %s); was it shaped already when that was measured?",
			w.name, asked, w.kind, ms(w.path), ms(limit))}
	case w.early() && w.measured.Min <= undelayed && w.delay > 2*undelayed:
		return []Wrong{j.asked.wrong(Early, "%s: asked %s%s, measured %s: it is not delayed at all", w.name, asked, w.kind, ms(w.measured.Min))}
	case w.early():
		return []Wrong{j.asked.wrong(Early, "%s: asked %s%s, measured %s, which is too short (%s)", w.name, asked, w.kind, ms(w.measured.Min), within)}
	case w.late(j.steady):
		return []Wrong{j.asked.wrong(Late, "%s: asked %s%s, measured %s (%s, path %s)", w.name, asked, w.kind, ms(w.upper(j.steady)), within, ms(w.path))}
	default:
		return nil
	}
}

// ms formats a duration in milliseconds, to 10 us.
func ms(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Round(10*time.Microsecond))/float64(time.Millisecond), 'f', -1, 64) + "ms"
}
