package safety

import (
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

func TestVerdicts(t *testing.T) {
	check := v1alpha1.SafetyCheck{Name: "linear", Command: []string{"/check"}, ViolatedExitCode: 3, Timeout: "30s"}
	command := protocol.Command{ID: "check/linear"}
	pod := func(name string, done ...protocol.CommandResult) Pod {
		for i := range done {
			done[i].ID = command.ID
		}
		return Pod{Name: name, Checks: map[string]protocol.Command{"linear": command}, Report: &protocol.Report{Commands: done}}
	}
	holds, violated := protocol.CommandResult{Output: "fine"}, protocol.CommandResult{ExitCode: 3, Output: " lost write 7\n"}
	for name, tc := range map[string]struct {
		pods    []Pod
		want    v1alpha1.SafetyVerdict
		message string
		waiting string
	}{
		"holds":                      {[]Pod{pod("a", holds), pod("b", holds)}, v1alpha1.SafetyHolds, "", ""},
		"violated in one":            {[]Pod{pod("a", holds), pod("b", violated)}, v1alpha1.SafetyViolated, "In b. It printed: lost write 7", ""},
		"violated, and one unknown":  {[]Pod{pod("a", violated), pod("b", protocol.CommandResult{ExitCode: 1})}, v1alpha1.SafetyViolated, "In a.", ""},
		"another exit code":          {[]Pod{pod("a", protocol.CommandResult{ExitCode: 1, Output: "no file"})}, v1alpha1.SafetyUnknown, "In a it exited with 1, which is neither 0 nor violatedExitCode (3). It printed: no file", ""},
		"too slow":                   {[]Pod{pod("a", protocol.CommandResult{Error: "did not end within 30s"})}, v1alpha1.SafetyUnknown, "In a: did not end within 30s.", ""},
		"not over":                   {[]Pod{pod("a", holds), pod("b")}, v1alpha1.SafetyUnknown, "In b it has not ended.", "the check linear in b"},
		"an agent that says nothing": {[]Pod{{Name: "a", Checks: map[string]protocol.Command{"linear": command}}}, v1alpha1.SafetyUnknown, "In a it has not ended.", "the check linear in a"},
		"no pod":                     {[]Pod{{Name: "a"}}, v1alpha1.SafetyUnknown, "There is no pod", ""},
		"much output":                {[]Pod{pod("a", protocol.CommandResult{ExitCode: 3, Output: strings.Repeat("é", 4000)})}, v1alpha1.SafetyViolated, "In a. It printed: éé", ""},
	} {
		all, waiting := Judge([]v1alpha1.SafetyCheck{check}, tc.pods)
		if waiting != tc.waiting || len(all) != 1 || all[0].Name != "linear" || all[0].Verdict != tc.want || !strings.HasPrefix(all[0].Message, tc.message) || len(all[0].Message) > 1024 {
			t.Errorf("%s: %+v, waiting for %q; want %s: %s, waiting for %q", name, all, waiting, tc.want, tc.message, tc.waiting)
		}
	}
	if got := Limit([]v1alpha1.SafetyCheck{check, check}); got != 75*time.Second || Limit(nil) != 0 {
		t.Errorf("two checks of 30 s may take %v, none %v", got, Limit(nil))
	}
}
