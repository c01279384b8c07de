// Package safety makes verdicts from the results of a System's checks. It is pure.
package safety

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine/conditions"
	"assay.dev/assay/operator/internal/node/protocol"
)

const (
	// reportGrace is how long after its timeout a check may take to report its end.
	reportGrace = 15 * time.Second
	// mostMessage is how many bytes the message of a check may have in a trial's status.
	mostMessage = 1024
)

// Pod is a pod in which checks may run.
type Pod struct {
	Name   string
	Checks map[string]protocol.Command // by check
	Report *protocol.Report
}

// Limit is how long all checks of a System may take, one after the other.
func Limit(checks []v1alpha1.SafetyCheck) time.Duration {
	if len(checks) == 0 {
		return 0
	}
	all := reportGrace
	for _, c := range checks {
		all += c.Timeout.OrZero()
	}
	return all
}

// Commands returns the commands of a pod, followed by those of its checks in the order of the
// System.
func Commands(steps []protocol.Command, checks []v1alpha1.SafetyCheck, here map[string]protocol.Command) []protocol.Command {
	all := slices.Clone(steps)
	for _, c := range checks {
		if command, ok := here[c.Name]; ok {
			all = append(all, command)
		}
	}
	return all
}

// Judge gives each check its verdict from the reports of the pods, and says which checks are still
// awaited. A check that has not ended is Unknown.
func Judge(checks []v1alpha1.SafetyCheck, pods []Pod) (all []v1alpha1.CheckStatus, waiting string) {
	for _, c := range checks {
		verdict := v1alpha1.CheckStatus{Name: c.Name, Verdict: v1alpha1.SafetyHolds}
		ran := 0
		for i := range pods {
			command, here := pods[i].Checks[c.Name]
			if !here {
				continue
			}
			ran++
			done := pods[i].Report.Command(command.ID)
			if done == nil && waiting == "" {
				waiting = fmt.Sprintf("the check %s in %s", c.Name, pods[i].Name)
			}
			verdict = worse(verdict, of(&c, pods[i].Name, done))
		}
		if ran == 0 {
			verdict = unknown(&c, "There is no pod for it to run in.")
		}
		all = append(all, verdict)
	}
	return all, waiting
}

// of returns the verdict of a check in one pod.
func of(c *v1alpha1.SafetyCheck, pod string, done *protocol.CommandResult) v1alpha1.CheckStatus {
	switch {
	case done == nil:
		return unknown(c, fmt.Sprintf("In %s it has not ended.", pod))
	case done.Error != "":
		return unknown(c, fmt.Sprintf("In %s: %s.%s", pod, done.Error, printed(done)))
	case done.ExitCode == 0:
		return v1alpha1.CheckStatus{Name: c.Name, Verdict: v1alpha1.SafetyHolds}
	case done.ExitCode == int(c.ViolatedExitCode):
		violated := unknown(c, fmt.Sprintf("In %s.%s", pod, printed(done)))
		violated.Verdict = v1alpha1.SafetyViolated
		return violated
	}
	return unknown(c, fmt.Sprintf("In %s it exited with %d, which is neither 0 nor violatedExitCode (%d).%s", pod, done.ExitCode, c.ViolatedExitCode, printed(done)))
}

func unknown(c *v1alpha1.SafetyCheck, why string) v1alpha1.CheckStatus {
	return v1alpha1.CheckStatus{Name: c.Name, Verdict: v1alpha1.SafetyUnknown, Message: conditions.Truncate(why, mostMessage)}
}

func printed(done *protocol.CommandResult) string {
	if text := strings.TrimSpace(done.Output); text != "" {
		return " It printed: " + text
	}
	return ""
}

// severity orders verdicts: a violation in one pod outweighs the verdicts of all other pods.
var severity = map[v1alpha1.SafetyVerdict]int{v1alpha1.SafetyHolds: 0, v1alpha1.SafetyUnknown: 1, v1alpha1.SafetyViolated: 2}

func worse(a, b v1alpha1.CheckStatus) v1alpha1.CheckStatus {
	if severity[b.Verdict] > severity[a.Verdict] {
		return b
	}
	return a
}
