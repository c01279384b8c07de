package validity

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

func TestJudgeClocks(t *testing.T) {
	pod := func(name string, offset, within float64) results.Pod {
		return results.Pod{Name: name, ClockOffsetMillis: offset, ClockErrorMillis: within}
	}
	for name, tc := range map[string]struct {
		pods    []results.Pod
		apart   v1alpha1.Duration
		reason  string
		message []string
	}{
		"known":                           {pods: []results.Pod{pod("a", 0, 1), pod("b", 5000, 10)}},
		"not known well":                  {pods: []results.Pod{pod("a", 0, 1), pod("b", 0, 10.1)}, reason: v1alpha1.ReasonClockUncertain, message: []string{"clock of b", "10.100 ms", "clockError is 10ms"}},
		"of a machine that was reset":     {pods: []results.Pod{pod("a", 0, 1), pod("reset", 0, 99)}},
		"apart as is tolerated":           {pods: []results.Pod{pod("a", 2, 1), pod("b", -5, 1), pod("c", 0, 1)}, apart: "9ms"},
		"further apart":                   {pods: []results.Pod{pod("a", 2, 1), pod("b", -5, 1.5), pod("c", 0, 1)}, apart: "9ms", reason: v1alpha1.ReasonClocksApart, message: []string{"a and b", "9.500 ms", "clockOffset is 9ms"}},
		"one pod is not apart":            {pods: []results.Pod{pod("a", 2, 5)}, apart: "9ms"},
		"no pod":                          {apart: "9ms"},
		"the error alone may be too much": {pods: []results.Pod{pod("a", 0, 5), pod("b", 0, 5)}, apart: "9ms", reason: v1alpha1.ReasonClocksApart},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &v1alpha1.TrialSpec{Tolerances: tolerances}
			spec.Tolerances.ClockOffset = tc.apart
			v := judgeClocks(spec, tc.pods, func(pod string) bool { return pod == "reset" })
			if v.Reason != tc.reason {
				t.Errorf("reason %q (%s), want %q", v.Reason, v.Message, tc.reason)
			}
			for _, want := range tc.message {
				if !strings.Contains(v.Message, want) {
					t.Errorf("the message is %q, want one with %q", v.Message, want)
				}
			}
		})
	}
}
