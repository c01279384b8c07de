package model

import (
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/fidelity"
	"assay.dev/assay/operator/internal/results"
)

// The source's own program without a profile makes a verdict Reproduced. A result that was measured
// elsewhere does not, since its size is unknown.
func TestImportedTrialsAreOfUnknownSize(t *testing.T) {
	spec := v1alpha1.ExperimentSpec{
		Source:  &v1alpha1.Source{Title: "A paper", Systems: []v1alpha1.SourceSystem{{Name: "etcd"}}},
		Systems: []v1alpha1.SystemReference{{Name: "etcd"}},
	}
	systems := map[string]v1alpha1.SystemSpec{"etcd": {Program: &v1alpha1.Program{Name: "etcd"}}}
	for name, tc := range map[string]struct {
		line results.TrialLine
		want v1alpha1.Verdict
	}{
		"run by Assay": {results.TrialLine{}, v1alpha1.VerdictReproduced},
		"imported":     {results.TrialLine{Imported: &results.Imported{}}, v1alpha1.VerdictConsistent},
	} {
		t.Run(name, func(t *testing.T) {
			f := whatRanOf(spec, systems, []results.TrialLine{tc.line})
			got := fidelity.Word(v1alpha1.VerdictHolds, fidelity.Facts{Basis: v1alpha1.BasisSource, Class: f.Class, Size: f.Size})
			if got != tc.want {
				t.Errorf("class %s, size %s: %s, want %s", f.Class, f.Size, got, tc.want)
			}
		})
	}
}
