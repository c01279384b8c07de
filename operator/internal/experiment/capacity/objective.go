package capacity

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Objective is what a trial must measure to carry its load. A field that is 0 asks for nothing; all
// others must hold.
type Objective struct {
	// Mean, P50, P90, P99 and P999 are the most that the mean and these percentiles of the latency
	// may be. The mean is of committed transactions, of which at least 99% of the requests must be.
	// The percentiles are of all requests.
	Mean, P50, P90, P99, P999 time.Duration
	// Knee is the most that the mean latency may be, relative to that at the lowest load: 2. Mean
	// has the bound once that is known: see WithReference.
	Knee float64
	// Goodput is the least share of the offered requests that must commit in the window, from 0 to
	// 1.
	Goodput float64
}

// WithReference is the objective with the bound of the knee, where the mean latency at the lowest
// load is known.
func (o Objective) WithReference(mean time.Duration) Objective {
	bound := time.Duration(o.Knee * float64(mean))
	if o.Mean == 0 || bound < o.Mean {
		o.Mean = bound
	}
	o.Knee = 0
	return o
}

// Measured is what a trial's window came to. A latency of 0 is not known.
type Measured struct {
	// Committed transactions, and requests that Failed: with an error, by a timeout, or since no
	// client was free to send them.
	Committed, Failed int64
	// Offered requests of an open loop; 0: not known.
	Offered                   int64
	Mean, P50, P90, P99, P999 time.Duration
	// OfAll are the percentiles of committed and failed requests. Nil: none failed, or they are not
	// known.
	OfAll *Percentiles
}

// Percentiles of all requests; 0: it lies among those that failed.
type Percentiles struct{ P50, P90, P99, P999 time.Duration }

// latency is one that an objective bounds.
type latency struct {
	name        string
	bound, seen time.Duration
	ofAll       time.Duration
	// slower is how many of 1000 transactions are slower than it; 0 for the mean.
	slower int64
}

func (o Objective) latencies(m Measured) []latency {
	all := Percentiles{P50: m.P50, P90: m.P90, P99: m.P99, P999: m.P999}
	switch {
	case m.Failed > 0 && m.OfAll != nil:
		all = *m.OfAll
	case m.Failed > 0:
		all = m.atMost()
	}
	return []latency{
		{"mean latency", o.Mean, m.Mean, m.Mean, 0}, {"p50 latency", o.P50, m.P50, all.P50, 500}, {"p90 latency", o.P90, m.P90, all.P90, 100},
		{"p99 latency", o.P99, m.P99, all.P99, 10}, {"p999 latency", o.P999, m.P999, all.P999, 1},
	}
}

// atMost bounds the percentiles of all requests where only those of committed ones are known. With
// C committed and F failed, the p-th of all is the p (C+F)/C-th of the committed, and so at most
// the next percentile that is known. 0: none is.
func (m Measured) atMost() Percentiles {
	known := []struct {
		slower int64
		seen   time.Duration
	}{{500, m.P50}, {100, m.P90}, {10, m.P99}, {1, m.P999}}
	next := func(slower int64) time.Duration {
		for _, k := range known {
			// so many are slower than the percentile of all, and k.slower of 1000 committed than
			// the known one
			if (m.Committed+m.Failed)*slower-1000*m.Failed >= m.Committed*k.slower && k.seen > 0 {
				return k.seen
			}
		}
		return 0
	}
	return Percentiles{P50: next(500), P90: next(100), P99: next(10), P999: next(1)}
}

// mostFailed is the share of requests, of 1000, that may fail where the mean latency of the others
// is bounded.
const mostFailed = 10

// slowerSamples is how many transactions must be slower than a percentile for it to be known, as in
// claims.
const slowerSamples = 10

// enough reports whether there are as many transactions as the percentile takes.
func (l latency) enough(committed int64) bool {
	return l.slower == 0 || committed*min(l.slower, 1000-l.slower) >= slowerSamples*1000
}

// ErrUnknown is the error of Met for a trial without the measurement that the objective needs.
var ErrUnknown = errors.New("not known")

// Met says whether a trial met the objective. One that committed nothing did not. Percentiles are
// of all requests: one that failed was slower than all that committed, or never ended. Where a
// trial knows only those of committed transactions, and not that the one of all is within the
// bound, it did not meet it. A mean is that of committed transactions, so that of all requests at
// most 1% may fail. It fails where the trial does not know what is asked: a percentile takes ten
// transactions that are slower, and ten that are not.
func (o Objective) Met(m Measured) (bool, error) {
	if m.Committed == 0 {
		return false, nil
	}
	met := true
	for _, l := range o.latencies(m) {
		switch {
		case l.bound == 0:
		case l.seen == 0:
			return false, fmt.Errorf("the %s is %w", l.name, ErrUnknown)
		case l.slower > 0 && m.Failed*1000 > (m.Committed+m.Failed)*l.slower, l.slower == 0 && m.Failed*1000 > (m.Committed+m.Failed)*mostFailed:
			met = false
		case !l.enough(m.Committed):
			return false, fmt.Errorf("the %s of %d transactions is %w: it takes %d; measure for longer", l.name, m.Committed, ErrUnknown, slowerSamples*1000/min(l.slower, 1000-l.slower))
		default:
			met = met && 0 < l.ofAll && l.ofAll <= l.bound
		}
	}
	if o.Goodput > 0 {
		if m.Offered == 0 {
			return false, fmt.Errorf("the number of offered requests is %w", ErrUnknown)
		}
		met = met && float64(m.Committed) >= o.Goodput*float64(m.Offered)
	}
	return met, nil
}

// String writes the objective as a reader has it: "p99 latency at most 20ms and goodput at least
// 95%".
func (o Objective) String() string {
	var parts []string
	for _, l := range o.latencies(Measured{}) {
		if l.bound > 0 {
			parts = append(parts, fmt.Sprintf("%s at most %s", l.name, l.bound))
		}
	}
	if o.Knee > 0 {
		parts = append(parts, fmt.Sprintf("mean latency at most %.4g times that at the lowest load", o.Knee))
	}
	if o.Goodput > 0 {
		parts = append(parts, fmt.Sprintf("goodput at least %.4g%%", 100*o.Goodput))
	}
	return strings.Join(parts, " and ")
}
