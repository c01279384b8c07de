package validity

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Headline has the main numbers of a trial, in the integers of a status.
func Headline(t *results.Trial) *v1alpha1.Headline {
	s := t.Summary
	h := &v1alpha1.Headline{
		Committed: s.Committed, Aborted: s.Aborted, Errors: s.Errors, Timeouts: s.Timeouts,
		Offered: s.Offered, GivenUp: s.GivenUp, Unsent: s.Unsent, Unreported: s.Unreported, RunSummary: s.RunSummary,
		ThroughputMilli:         thousandths(s.Throughput),
		MeanLatencyMicroseconds: thousandths(s.MeanMillis), P10LatencyMicroseconds: thousandths(s.P10Millis),
		P50LatencyMicroseconds: thousandths(s.P50Millis), P90LatencyMicroseconds: thousandths(s.P90Millis),
		P99LatencyMicroseconds: thousandths(s.P99Millis), P999LatencyMicroseconds: thousandths(s.P999Millis),
		CorrectClients: t.CorrectClients, Recoveries: headlineRecoveries(t.Recovery), Measurements: headlineMeasurements(t.Measurements),
	}
	for _, name := range slices.Sorted(maps.Keys(s.Percentiles)) {
		h.Percentiles = append(h.Percentiles, v1alpha1.HeadlinePercentile{Name: name, Microseconds: thousandths(s.Percentiles[name])})
	}
	if p := s.OfAll; p != nil {
		h.OfAll = &v1alpha1.PercentilesOfAll{P10Microseconds: thousandths(p.P10Millis), P50Microseconds: thousandths(p.P50Millis), P90Microseconds: thousandths(p.P90Millis),
			P99Microseconds: thousandths(p.P99Millis), P999Microseconds: thousandths(p.P999Millis), P75Microseconds: thousandths(p.P75Millis), P95Microseconds: thousandths(p.P95Millis),
			P9999Microseconds: thousandths(p.P9999Millis), P99999Microseconds: thousandths(p.P99999Millis)}
	}
	h.Unsteady = unsteady(stats.CheckWindow(*t))
	h.ThrottledPerMillion, h.StealPerMillion = worstShares(t.Pods)
	h.ContendedPerMillion = worstContention(t.Machines)
	h.ClientTimePerMillion, h.ClientBusyPerMillion = perMillion(stats.ClientTime(*t)), perMillion(stats.ClientBusy(*t))
	return h
}

// unsteady says in integers how a window was not steady.
func unsteady(w results.WindowCheck) (out []v1alpha1.UnsteadyWindow) {
	for _, part := range []struct {
		of    string
		level *results.Transient
	}{{results.OfThroughput, w.Throughput}, {results.OfLatency, w.Latency}} {
		if cause := part.level.Cause(); cause != "" {
			out = append(out, v1alpha1.UnsteadyWindow{Of: part.of, Cause: v1alpha1.WindowCause(cause), MovesPerMillion: thousandths(part.level.Moves() * 1000)})
		}
	}
	return out
}

// perMillion writes a share as an integer, if there is one. A share above 1000 becomes 1000.
func perMillion(share *float64) *int32 {
	if share == nil {
		return nil
	}
	n := int32(math.Round(math.Min(*share, 1000) * 1e6))
	return &n
}

func thousandths(x float64) int64 { return int64(math.Round(x * 1000)) }

// maxHeadlineRecoveries keeps a trial's status small; claims are about the first occurrences of
// faults.
const maxHeadlineRecoveries = 16

// headlineRecoveries are the first recoveries, in the integers of a status.
func headlineRecoveries(measured []results.Recovery) []v1alpha1.FaultRecovery {
	var out []v1alpha1.FaultRecovery
	for _, r := range measured[:min(len(measured), maxHeadlineRecoveries)] {
		f := v1alpha1.FaultRecovery{Fault: r.Fault, Time: int32(r.Time), Outcome: v1alpha1.RecoveryRecovered, DetectMicroseconds: thousandths(r.DetectMillis),
			DepthPerMillion: thousandths(r.Depth * 1000), RecoverMicroseconds: thousandths(r.RecoverMillis), LostMilli: thousandths(r.LostTransactions),
			LeastDipPerMillion: thousandths(r.LeastDip * 1000), ResolvedMicroseconds: thousandths(r.ResolvedMillis)}
		switch {
		case r.Error != "":
			f.Outcome = v1alpha1.RecoveryUnknown
		case !r.Dipped:
			f.Outcome = v1alpha1.RecoveryNoDip
		case !r.Recovered:
			f.Outcome = v1alpha1.RecoveryNotRecovered
		}
		out = append(out, f)
	}
	return out
}

// worstContention is the greatest share of any machine, by the million; nil if none is known.
func worstContention(machines []results.MachineUse) (worst *int32) {
	for _, m := range machines {
		if m.ContendedShare == nil {
			continue
		}
		if perMillion := int32(math.Round(*m.ContendedShare * 1e6)); worst == nil || perMillion > *worst {
			worst = &perMillion
		}
	}
	return worst
}

// worstShares are the greatest shares of throttling and steal of any pod, by the million; nil if no
// pod was measured.
func worstShares(pods []results.Pod) (throttled, stolen *int32) {
	worst := func(old *int32, share float64) *int32 {
		perMillion := int32(math.Round(share * 1e6))
		if old != nil && *old >= perMillion {
			return old
		}
		return &perMillion
	}
	for _, p := range pods {
		if p.Resources != nil {
			throttled, stolen = worst(throttled, p.Resources.ThrottledShare), worst(stolen, p.Resources.Node.StealShare)
		}
	}
	return throttled, stolen
}

// headlineMeasurements puts the numbers into a status, which has no floating-point numbers.
func headlineMeasurements(measured []results.Measurement) []v1alpha1.MeasuredValue {
	var out []v1alpha1.MeasuredValue
	for _, m := range measured {
		v := v1alpha1.MeasuredValue{Name: m.Name, Reason: m.Reason}
		if m.Value != nil {
			v.Value = strconv.FormatFloat(*m.Value, 'g', -1, 64)
		}
		out = append(out, v)
	}
	return out
}

// MeanText words the mean latency, if it is known.
func MeanText(s results.Summary) string {
	if s.RunSummary && s.MeanMillis == 0 {
		return ""
	}
	return fmt.Sprintf(", mean latency %.3f ms", s.MeanMillis)
}
