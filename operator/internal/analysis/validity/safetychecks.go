package validity

import (
	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// SafetyChecks are those of a trial's status, as results have them.
func SafetyChecks(said []v1alpha1.CheckStatus) (all []results.Check) {
	for _, c := range said {
		all = append(all, results.Check{Name: c.Name, Verdict: string(c.Verdict), Message: c.Message})
	}
	return all
}
