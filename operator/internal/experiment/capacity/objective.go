package capacity

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Objective is what a trial must measure to carry its load. A field of 0 has no effect. All other
// fields must hold.
type Objective struct {
	// Mean, P50, P90, P99 and P999 bound the mean and these percentiles of the latency. The mean is
	// that of committed transactions. It counts only if at least 99% of the requests committed. The
	// percentiles are of all requests.
	Mean, P50, P90, P99, P999 time.Duration
	// Knee bounds the mean latency relative to the mean latency at the lowest load: 2. When that
	// latency is known, Mean gets the bound: see WithReference.
	Knee float64
	// Goodput is the least share of the offered requests that must commit in the window, from 0 to
	// 1.
	Goodput float64
}

// WithReference returns the objective with the bound of the knee, given the mean latency at the
// lowest load.
func (o Objective) WithReference(mean time.Duration) Objective {
	bound := time.Duration(o.Knee * float64(mean))
	if o.Mean == 0 || bound < o.Mean {
		o.Mean = bound
	}
	o.Knee = 0
	return o
}

// Measured has the measurements of a trial's window. A latency of 0 is unknown.
type Measured struct {
	// Committed transactions. Failed counts requests that ended with an error or a timeout, or that
	// no client was free to send.
	Committed, Failed int64
	// Offered requests of an open loop; 0: unknown.
	Offered                   int64
	Mean, P50, P90, P99, P999 time.Duration
	// OfAll are the percentiles of committed and failed requests together. Nil: no request failed,
	// or the percentiles are unknown.
	OfAll *Percentiles
}

// Percentiles of all requests. 0: the percentile lies among the failed requests.
type Percentiles struct{ P50, P90, P99, P999 time.Duration }

// latency is a latency that an objective bounds.
type latency struct {
	name        string
	bound, seen time.Duration
	ofAll       time.Duration
	// slower is how many of 1000 transactions are slower than the percentile; 0 for the mean.
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

// atMost bounds the percentiles of all requests when only those of committed requests are known.
// With C committed and F failed, percentile p of all is percentile p (C+F)/C of the committed. So
// it is at most the next known percentile. 0: there is none.
func (m Measured) atMost() Percentiles {
	known := []struct {
		slower int64
		seen   time.Duration
	}{{500, m.P50}, {100, m.P90}, {10, m.P99}, {1, m.P999}}
	next := func(slower int64) time.Duration {
		for _, k := range known {
			// Both sides are 1000 times a number of committed requests: those slower than the
			// percentile of all, and those slower than the known percentile.
			if (m.Committed+m.Failed)*slower-1000*m.Failed >= m.Committed*k.slower && k.seen > 0 {
				return k.seen
			}
		}
		return 0
	}
	return Percentiles{P50: next(500), P90: next(100), P99: next(10), P999: next(1)}
}

// mostFailed is how many of 1000 requests may fail if the mean latency of the others is bounded.
const mostFailed = 10

// slowerSamples is how many transactions must be slower than a percentile to know the percentile,
// as in claims.
const slowerSamples = 10

// enough reports whether there are enough transactions for the percentile.
func (l latency) enough(committed int64) bool {
	return l.slower == 0 || committed*min(l.slower, 1000-l.slower) >= slowerSamples*1000
}

// ErrUnknown says that a trial lacks a measurement that the objective needs.
var ErrUnknown = errors.New("not known")

// Met reports whether a trial met the objective. A trial that committed nothing did not meet it.
//
// Percentiles are of all requests: a failed request counts as slower than all committed ones. A
// trial may know only the percentiles of committed requests. It then met the objective only if
// these show that the percentile of all is within the bound. A mean is that of committed
// transactions, so at most 1% of all requests may fail.
//
// Met fails if the trial lacks a measurement: a percentile needs ten transactions that are slower,
// and ten that are not.
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

// String writes the objective for people: "p99 latency at most 20ms and goodput at least 95%".
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
