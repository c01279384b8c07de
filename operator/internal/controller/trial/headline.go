package trial

import (
	"math"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// maxHeadlineRecoveries keeps a trial's status small; claims are about the first times of faults.
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

// worstShares are the greatest shares of throttling and steal of any pod, by the million; nil if no pod was measured.
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
