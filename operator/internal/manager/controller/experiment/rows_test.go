package experiment

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
)

// A trial of a script has a line for each point for which the script should write a row.
func TestRowsOfAScriptAreLines(t *testing.T) {
	rows := []v1alpha1.Point{
		{Index: 0, Coordinates: map[string]string{"policy": "lock"}}, {Index: 1, Coordinates: map[string]string{"policy": "queue"}},
	}
	for name, tc := range map[string]struct {
		outcome string
		status  []v1alpha1.RowStatus
		want    []string
	}{
		"both rows": {v1alpha1.ReasonSucceeded, []v1alpha1.RowStatus{
			{Point: rows[0], Headline: &v1alpha1.Headline{RunSummary: true, ThroughputMilli: 5000}}, {Point: rows[1], Headline: &v1alpha1.Headline{RunSummary: true, ThroughputMilli: 7000}},
		}, []string{"t.0 lock Succeeded 5 ", "t.1 queue Succeeded 7 "}},
		"a row is missing": {v1alpha1.ReasonSucceeded, []v1alpha1.RowStatus{
			{Point: rows[0], Headline: &v1alpha1.Headline{RunSummary: true, ThroughputMilli: 5000}}, {Point: rows[1], Missing: "no row with policy=queue"},
		}, []string{"t.0 lock Succeeded 5 ", "t.1 queue Invalid 0 no row with policy=queue"}},
		"the trial failed": {v1alpha1.ReasonFailed, nil, []string{"t.0 lock Failed 0 the script ended", "t.1 queue Failed 0 the script ended"}},
	} {
		t.Run(name, func(t *testing.T) {
			trial := v1alpha1.Trial{Spec: v1alpha1.TrialSpec{Script: &v1alpha1.TrialScript{Rows: rows}}}
			trial.Name, trial.Status.Rows = "t", tc.status
			trial.Status.Conditions = []metav1.Condition{
				{Type: v1alpha1.TrialComplete, Status: metav1.ConditionTrue, Reason: tc.outcome},
				{Type: v1alpha1.TrialValid, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClientFailed, Message: "the script ended"},
			}
			var got []string
			for _, l := range trialLines([]v1alpha1.Trial{trial}) {
				got = append(got, l.Name+" "+l.Coordinates["policy"]+" "+l.Outcome+" "+number(l.Throughput)+" "+l.Message)
				if l.Script != "t" {
					t.Errorf("line %s does not say that it is a row of t", l.Name)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
