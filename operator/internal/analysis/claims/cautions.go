package claims

import (
	"fmt"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// fewFailures is the share of requests that may fail without a caveat at a verdict about mean
// latency: a timeout of a thousand mean latencies would double the mean.
const fewFailures = 0.001

// cautionAt is a caution about trials of a point that a verdict reads: how many trials it is about,
// and the worst of them.
type cautionAt struct {
	trials int
	worst  float64
}

func (c *cautionAt) see(x float64, worse bool) {
	if c.trials++; c.trials == 1 || worse {
		c.worst = x
	}
}

// cautions adds caveats for points where the clients may have determined the numbers, or where the
// numbers leave out failures. For each point of the claim, it checks whether client pods were full,
// and whether the numbers contain the clients' own time (Little's law). For latencies it checks
// whether requests failed.
func (r *recorder) cautions() {
	for _, p := range r.points {
		if !slices.Contains(r.looked, p.Index) {
			continue
		}
		var full, outside, failed cautionAt
		lines := r.samples[p.Index]
		for _, l := range lines {
			if b := l.ClientBusyShare; b != nil && *b >= stats.FullClients {
				full.see(*b, *b > full.worst)
			}
			if !stats.ClientTimeFits(l) {
				outside.see(*l.ClientTimeShare, farther(*l.ClientTimeShare, outside.worst))
			}
			if share, known := stats.FailedShare(l); known && share > fewFailures {
				failed.see(share, share > failed.worst)
			}
		}
		note := func(kind string, c cautionAt, format string, args ...any) {
			if c.trials > 0 {
				where := showPoint(p.Coordinates)
				r.caveat(kind, fmt.Sprintf("at %s in %d of %d trials ", where, c.trials, len(lines))+fmt.Sprintf(format, args...), where)
			}
		}
		note(CaveatSaturatedClients, full, "client pods or their nodes were %.0f%% busy or more, and may be what limits throughput and delays latency", 100*stats.FullClients)
		note(CaveatClientTime, outside, "the numbers account for %.0f%% of the clients' time, and by Little's law for all of it: %s", 100*outside.worst, whyOutside(outside.worst))
		if slices.Contains(r.latency, p.Index) {
			note(CaveatFailedRequests, failed, "up to %.2g%% of requests failed; latencies leave them out", 100*failed.worst)
		}
	}
}

// farther reports whether a share of the clients' time is farther from 1 than another share.
func farther(x, than float64) bool { return max(x-1, 1-x) > max(than-1, 1-than) }

// whyOutside gives possible reasons for a share below or above 1.
func whyOutside(share float64) string {
	if share > 1 {
		return "latencies hang over the start of the window, or are not those of these clients"
	}
	return "the rest went into transactions whose latency does not count, or into pauses that clients do not count"
}

// notSteady says in how many trials of points the measurement window was not steady, and how far
// that moves the mean of the window at most. There is one caveat each for throughput and latency.
func notSteady(r *readings, looked []int32) (found []results.Caveat) {
	for _, level := range []struct {
		name string
		of   func(*results.WindowCheck) *results.Transient
	}{
		{"throughput", func(w *results.WindowCheck) *results.Transient { return w.Throughput }},
		{"mean latency", func(w *results.WindowCheck) *results.Transient { return w.Latency }},
	} {
		trials, bad := 0, 0
		var at []int32
		worst := &results.Transient{Steady: true}
		for _, point := range looked {
			for _, l := range r.samples[point] {
				trials++
				if l.Window == nil {
					continue
				}
				t := level.of(l.Window)
				if t.Cause() == "" {
					continue
				}
				bad++
				if !slices.Contains(at, point) {
					at = append(at, point)
				}
				if worst.Steady || math.Abs(t.Moves()) > math.Abs(worst.Moves()) {
					worst = t
				}
			}
		}
		if bad > 0 {
			found = append(found, results.Caveat{Kind: CaveatNotSteady, Points: r.pointNames(at),
				Text: fmt.Sprintf("%s was not steady in the window of %d of %d trials: %s moves its mean by %+.0f%%, at most", level.name, bad, trials, causes[worst.Cause()], 100*worst.Moves())})
		}
	}
	return found
}

// causes of windows that are not steady, in words.
var causes = map[string]string{
	results.CauseStart: "a start that is unlike the rest", results.CauseDrift: "a drift from start to end",
	results.CauseChange: "a change of level", results.CauseEnd: "an end before the window's",
}

// isLatency reports whether a metric is one of committed transactions alone, so that failed
// requests are not in it. Percentiles take them into account (ofAll).
func (m metric) isLatency() bool { return m.name == stats.MeanLatency }

// noteLatency keeps a point at which a latency is read.
func (r *findings) noteLatency(p results.PointResult, m metric) {
	if m.isLatency() && !slices.Contains(r.latency, p.Index) {
		r.latency = append(r.latency, p.Index)
	}
}
