package validity

import (
	"cmp"
	"slices"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// maxRecoveries is the number of occurrences of faults whose recovery is measured. A fault that
// occurs more often is over within a second, each time.
const maxRecoveries = 100

// Recoveries measures the effect of each occurrence of each fault on throughput. It begins when the
// first of the fault's pods confirmed it. For a kind of fault with late confirmations, it begins
// when the fault started. Faults outside of the window are left out: there is nothing before or
// after them to compare.
func Recoveries(t *results.Trial) []results.Recovery {
	type occurrence struct {
		fault string
		time  int
	}
	first := map[occurrence]results.FaultRecord{}
	for _, f := range t.Faults {
		if f.Error != "" || f.Skipped || timeline.Kind(f.Kind).Ends() {
			continue
		}
		if timeline.Kind(f.Kind).ConfirmedLate() {
			// Clients noticed the fault before its confirmation, so the throughput before the start
			// is compared.
			f.ConfirmedMillis = f.StartedMillis
		}
		o := occurrence{f.Fault, f.Time}
		if earliest, seen := first[o]; !seen || f.ConfirmedMillis < earliest.ConfirmedMillis {
			first[o] = f
		}
	}
	window := float64(t.MeasureNanos) / 1e6
	var out []results.Recovery
	for o, f := range first {
		if f.ConfirmedMillis > 0 && f.ConfirmedMillis < window {
			out = append(out, results.Recovery{Fault: o.fault, Time: o.time, Kind: f.Kind, ConfirmedMillis: f.ConfirmedMillis})
		}
	}
	slices.SortFunc(out, func(a, b results.Recovery) int {
		return cmp.Or(cmp.Compare(a.ConfirmedMillis, b.ConfirmedMillis), cmp.Compare(a.Fault, b.Fault), cmp.Compare(a.Time, b.Time))
	})
	if len(out) > maxRecoveries {
		out = out[:maxRecoveries]
		t.LeftOut = append(t.LeftOut, "recovery: of the times after the first 100")
	}
	for i := range out {
		if t.Timeline == nil {
			out[i].Error = "the clients say nothing of what happened when"
			continue
		}
		measureRecovery(&out[i], *t.Timeline, window)
	}
	addDataRecovery(t, out)
	return out
}

func measureRecovery(r *results.Recovery, t results.Timeline, window float64) {
	m, err := stats.Recover(t, r.ConfirmedMillis, stats.RecoveryRule{ToMillis: window})
	if err != nil {
		r.Error = err.Error()
		return
	}
	r.ThroughputBefore, r.Dipped, r.DetectMillis, r.Depth = m.Before, m.Dipped, m.DetectMillis, m.Depth
	r.Recovered, r.RecoverMillis, r.LostTransactions = m.Recovered, m.RecoverMillis, m.Lost
	r.LeastDip, r.ResolvedMillis = m.LeastDip, m.ResolvedMillis
	for _, c := range m.Cautions {
		r.Cautions = append(r.Cautions, string(c))
	}
}
