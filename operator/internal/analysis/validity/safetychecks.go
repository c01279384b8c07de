package validity

import (
	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// SafetyChecks converts the checks of a trial's status to those of results.
func SafetyChecks(said []v1alpha1.CheckStatus) (all []results.Check) {
	for _, c := range said {
		all = append(all, results.Check{Name: c.Name, Verdict: string(c.Verdict), Message: c.Message})
	}
	return all
}

// printed returns the numbers that a check printed, by pod. Nil: there are none, or the check's
// verdict is unknown. Then some of the pods' numbers may be missing.
func (o *Observation) printed(c results.Check) map[string]map[string]float64 {
	if c.Verdict == string(v1alpha1.SafetyUnknown) {
		return nil
	}
	byPod, some := map[string]map[string]float64{}, false
	for i := range o.Pods {
		if done := o.Pods[i].Report.Command(protocol.CheckID(c.Name)); done != nil {
			byPod[o.Pods[i].Name] = results.CheckNumbers(done.Output)
			some = some || len(byPod[o.Pods[i].Name]) > 0
		}
	}
	if !some {
		return nil
	}
	return byPod
}
