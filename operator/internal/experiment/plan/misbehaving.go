package plan

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
)

// maxMisbehavingLength is the longest clients.misbehaving, in characters.
const maxMisbehavingLength = 256

// clientVariables are the names that clients.misbehaving may use, besides parameters.
var clientVariables = []string{"client", "clients", "pod", "pods", "index"}

// compileMisbehaving compiles a System's clients.misbehaving. The expression says of one client
// whether the program itself makes it misbehave.
func compileMisbehaving(text string, parameters []string) (*arithmetic, error) {
	return compileArithmetic(text, maxMisbehavingLength, cel.BoolType, "index * pods + pod < clients * 3 / 10", clientVariables, parameters)
}

// checkMisbehaving checks clients.misbehaving of a System.
func (s *systemCheck) checkMisbehaving(at *field.Path, c v1alpha1.ClientsTemplate) {
	if c.Misbehaving == "" {
		return
	}
	if c.Driver != nil {
		s.add(field.Forbidden(at, "with a driver, a fault makes clients misbehave (clientBehavior): remove it"))
		return
	}
	if _, err := compileMisbehaving(c.Misbehaving, integers(s.spec)); err != nil {
		s.add(field.Invalid(at, c.Misbehaving, err.Error()))
	}
}

// resolveMisbehaving counts, for each client pod, the clients that the program itself makes
// misbehave. Nil: no client.
func (e *expansion) resolveMisbehaving(s system, trial *v1alpha1.TrialSpec) []int32 {
	if s.misbehaving == nil {
		return nil
	}
	at := e.origin.nodes()
	refuse := func(format string, args ...any) []int32 {
		e.add(field.Invalid(at, trial.Clients.Count, fmt.Sprintf("System %q: clients.misbehaving %q ", s.name, s.spec.Clients.Misbehaving)+fmt.Sprintf(format, args...)))
		return nil
	}
	variables, err := s.misbehaving.values(trial.Parameters)
	if err != nil {
		return refuse("%v", err)
	}
	spread := placement.Spread(int(trial.Clients.Nodes), int(trial.Clients.Count))
	variables["pods"], variables["clients"] = int64(len(spread)), int64(trial.Clients.Count)
	counts, total, client := make([]int32, len(spread)), int32(0), int64(0)
	for pod, n := range spread {
		for index := range n {
			variables["pod"], variables["index"], variables["client"] = int64(pod), int64(index), client
			client++
			out, _, err := s.misbehaving.program.Eval(variables)
			if err != nil {
				return refuse("fails for client %d of pod %d: %v", index, pod, err)
			}
			if yes, ok := out.Value().(bool); ok && yes {
				counts[pod]++
				total++
			}
		}
	}
	switch total {
	case 0:
		return nil
	case trial.Clients.Count:
		return refuse("makes all %d clients misbehave; at least one must not, since only that is measured", total)
	}
	return counts
}
