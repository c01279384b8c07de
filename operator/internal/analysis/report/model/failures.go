package model

import (
	"cmp"
	"slices"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Failures are what went wrong at a point: requests of its valid trials, and trials that do not
// count.
type Failures struct {
	Attempts, Left int
	Reasons        map[string]int
	// Requests that ended in the windows of the valid trials, with any outcome, and requests that
	// were never sent.
	Ended, Unsent int64
	// uncounted: a script's table gave rates, and no count of requests.
	Uncounted                          bool
	aborted, errors, timeouts, givenUp int64
	// ClientTime are the shares of the clients' time that are in the numbers of the valid trials,
	// and apart is how many of them do not fit Little's law.
	ClientTime []float64
	Apart      int
	// unreported are the counters that some client does not know.
	unreported []string
}

// FailuresAt adds up the lines of a point. It is false if lines of its trials are missing.
func FailuresAt(e results.Experiment, p results.PointResult) (Failures, bool) {
	f := Failures{Attempts: p.Valid + p.Invalid + p.Failed, Left: p.Invalid + p.Failed, Reasons: map[string]int{}}
	lines := 0
	for _, l := range e.Trials {
		if l.PointIndex != p.Index {
			continue
		}
		lines++
		if l.Outcome != stats.Succeeded {
			f.Reasons[cmp.Or(l.Reason, l.Outcome)]++
			continue
		}
		f.Ended, f.Unsent = f.Ended+stats.Ended(l), f.Unsent+l.Unsent
		f.Uncounted = f.Uncounted || l.Script != "" && stats.Ended(l) == 0
		f.aborted, f.errors, f.timeouts, f.givenUp = f.aborted+l.Aborted, f.errors+l.Errors, f.timeouts+l.Timeouts, f.givenUp+l.GivenUp
		f.unreported = append(f.unreported, l.Unreported...)
		if l.ClientTimeShare != nil {
			f.ClientTime = append(f.ClientTime, *l.ClientTimeShare)
		}
		if !stats.ClientTimeFits(l) {
			f.Apart++
		}
	}
	return f, lines == f.Attempts
}

// Reports says whether all clients report a counter.
func (f Failures) Reports(counter string) bool { return !slices.Contains(f.unreported, counter) }

// Of is a share of all requests: the ended ones and the ones never sent.
func (f Failures) Of(n int64) float64 { return float64(n) / float64(f.Ended+f.Unsent) }

// Failed is the share of requests that had no result, and whether it is known.
func (f Failures) Failed() (share float64, known bool) {
	known = f.Ended+f.Unsent > 0 && (f.Reports(results.CounterErrors) || f.Reports(results.CounterTimeouts))
	if !known {
		return 0, false
	}
	return f.Of(f.errors + f.timeouts + f.Unsent), true
}

// FailureCounters are those of failures, as they are shown.
var FailureCounters = []struct {
	Counter, Column string
	Of              func(Failures) int64
}{
	{results.CounterErrors, "errors %", func(f Failures) int64 { return f.errors }},
	{results.CounterTimeouts, "timeouts %", func(f Failures) int64 { return f.timeouts }},
	{results.CounterUnsent, "unsent %", func(f Failures) int64 { return f.Unsent }},
	{results.CounterGivenUp, "given up %", func(f Failures) int64 { return f.givenUp }},
}
