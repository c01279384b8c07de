package validity

import (
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
)

// A trial for flame graphs never counts, and any other failure comes before that reason.
func TestTrialsForFlameGraphsNeverCount(t *testing.T) {
	for asked, want := range map[v1alpha1.TrialPurpose]string{"": "", v1alpha1.PurposeMeasurement: "", v1alpha1.PurposeFlameGraphs: v1alpha1.ReasonNotMeasuring} {
		if f := purpose(&Observation{Trial: &v1alpha1.Trial{Spec: v1alpha1.TrialSpec{Purpose: asked}}}); f.Reason != want {
			t.Errorf("%q: %q %s; want %q", asked, f.Reason, f.Message, want)
		}
	}
	if last := AfterRun[len(AfterRun)-1]; last.Name != "purpose" {
		t.Errorf("the last check is %q", last.Name)
	}
}
