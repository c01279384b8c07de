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
	// of committed transactions may be.
	Mean, P50, P90, P99, P999 time.Duration
	// Goodput is the least share of the offered requests that must commit in the window, from 0 to
	// 1.
	Goodput float64
}

// Measured is what a trial's window came to. A latency of 0 is not known.
type Measured struct {
	// Committed transactions, and requests that Failed: with an error, by a timeout, or since no
	// client was free to send them.
	Committed, Failed int64
	// Offered requests of an open loop; 0: not known.
	Offered                   int64
	Mean, P50, P90, P99, P999 time.Duration
}

// latency is one that an objective bounds.
type latency struct {
	name        string
	bound, seen time.Duration
	// slower is how many of 1000 transactions are slower than it; 0 for the mean.
	slower int64
}

func (o Objective) latencies(m Measured) []latency {
	return []latency{
		{"mean latency", o.Mean, m.Mean, 0}, {"p50 latency", o.P50, m.P50, 500}, {"p90 latency", o.P90, m.P90, 100},
		{"p99 latency", o.P99, m.P99, 10}, {"p999 latency", o.P999, m.P999, 1},
	}
}

// ErrUnknown is what Met gives for a trial that did not measure what the objective asks for.
var ErrUnknown = errors.New("not known")

// Met says whether a trial met the objective. One that committed nothing did not. Nor did one in
// which so many requests failed that a percentile of all requests lies among them: they were slower
// than all that committed, or never ended. It fails where the trial does not know what is asked.
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
		default:
			met = met && l.seen <= l.bound && (l.slower == 0 || m.Failed*1000 <= (m.Committed+m.Failed)*l.slower)
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
	if o.Goodput > 0 {
		parts = append(parts, fmt.Sprintf("goodput at least %.4g%%", 100*o.Goodput))
	}
	return strings.Join(parts, " and ")
}
