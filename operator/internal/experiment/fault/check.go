package fault

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
)

// Point is a point of an experiment. Its faults are checked against its system, topology and
// clients.
type Point struct {
	Times
	Trial *v1alpha1.TrialSpec
	// System is the name of the System, Spec its spec, Count its expression for the replicas of a
	// shard.
	System string
	Spec   *v1alpha1.SystemSpec
	Count  string
	// Parameter checks the value of a parameter, and returns its canonical form.
	Parameter func(name string, value v1alpha1.Value) (v1alpha1.Value, error)
}

// checker collects the mistakes in the faults of a point.
type checker struct {
	Point
	name      string // of the fault that is being checked
	behaviors int    // number of faults so far that change the behavior of clients
	errs      field.ErrorList
}

func (e *checker) add(errs ...*field.Error) { e.errs = append(e.errs, errs...) }

// unshaped says that a fault needs a capability that pods lack with network.shaping: None.
const unshaped = "needs the capability NET_ADMIN, which network.shaping: None does without; nodeKill, pause and clientBehavior do not; or set shaping: Auto"

// Check checks the faults of one point. Each fault has one kind. Check puts the parameters of
// clients that behave otherwise into canonical form.
func Check(p Point) field.ErrorList {
	e := &checker{Point: p}
	stopped := make([]map[placement.Place]bool, len(p.Trial.Faults)) // replicas that each fault may stop
	e.checkDegrades()
	for i := range p.Trial.Faults {
		f := &p.Trial.Faults[i]
		path := e.Path(f.Name)
		e.name = f.Name
		e.checkReplaced(path, f)
		e.checkMark(path, f)
		if k := of(f); k != nil {
			stopped[i] = k.check(e, path, targetCheck{topology: p.Trial.Topology})
		}
		for j := range i {
			if overlap(p.Trial.Faults[j], *f) && !hasRole(&p.Trial.Faults[j]) && !hasRole(f) && intersect(stopped[j], stopped[i]) {
				e.add(field.Invalid(path, f.Name, fmt.Sprintf("stops a replica that fault %q of the same point has stopped, or may have; "+
					"let the first be over before, or choose another replica", p.Trial.Faults[j].Name)))
			}
		}
	}
	return e.errs
}

// hasRole reports whether a role chooses the target, so that the stopped replica is known only at
// the instant of the fault.
func hasRole(f *v1alpha1.Fault) bool {
	k, ok := of(f).(forRoles)
	return ok && k.role()
}
