package validity

import (
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

// Note words the outcome of one action of a trial's faults. The result done says whether there is a
// record of the action.
func Note(trial string, a timeline.Action, record *protocol.ActionRecord) (done bool, note string) {
	who := a.Pod
	if a.Kind.By() == timeline.MachineAgent {
		who = "the machine of " + a.Pod
	}
	if a.Role != "" {
		who += ", which had the role " + a.Role
	}
	b := &strings.Builder{}
	what := string(a.Kind)
	if a.Object != "" {
		what += " (" + a.Object + ")"
	}
	fmt.Fprintf(b, "Trial %s, fault %s: %s of %s, planned for %.3f s", trial, a.Fault, what, who, a.At.Seconds())
	switch {
	case record == nil:
		fmt.Fprintf(b, ", is not known to have happened: %s.", Unreported(a))
		return false, b.String()
	case record.Error != "":
		fmt.Fprintf(b, ", failed: %s.", record.Error)
		return false, b.String()
	}
	fmt.Fprintf(b, ", begun at %.3f s, confirmed at %.3f s", record.Started.Seconds(), record.Confirmed.Seconds())
	if a.Kind == timeline.Kill && a.WithoutSilence {
		b.WriteString(", without silence")
	}
	b.WriteString(". Times are relative to t = 0.")
	return true, b.String()
}
