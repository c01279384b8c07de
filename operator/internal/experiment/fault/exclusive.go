package fault

import (
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/chaosmesh"
)

// checkReplaced refuses what cannot be combined with a fault that replaces pods or restarts their
// containers. With its pod, an agent loses its state. With its container, a launcher loses its
// orders.
func (e *checker) checkReplaced(path *field.Path, f *v1alpha1.Fault) {
	trial := e.Trial
	replaces, restarts := chaosmesh.Replaces(f), chaosmesh.Restarts(f)
	if !replaces && !restarts {
		return
	}
	at, action := path.Child("chaosMesh", "spec"), chaosmesh.Action(f)
	if len(trial.Network.Links) > 0 && (replaces || chaosmesh.RestartsAgent(f)) {
		why := "the pod comes back with another address, to which no link has been shaped or proven"
		if restarts {
			why = "the agent, which shapes and measures the pod's links, is restarted with the pod's containers"
		}
		e.add(field.Forbidden(at, fmt.Sprintf("%s cannot be together with a shaped network: %s; choose profile: lan, or nodeKill", action, why)))
	}
	for i := range trial.Faults {
		other := &trial.Faults[i]
		if of(other) != nil && of(other).dated() && !chaosmesh.Replaces(other) && !chaosmesh.Restarts(other) {
			e.add(field.Forbidden(at, fmt.Sprintf("%s cannot be together with fault %s of the same point: a pod that is replaced, or whose containers restart, "+
				"forgets the faults in force and those to come; combine it only with clientBehavior or faults that also replace or restart; use nodeKill, or another point", action, other.Name)))
		}
	}
}

// span returns when a fault may be in force, from the first begin to the last end, with
// repetitions.
func span(f v1alpha1.Fault) (from, to time.Duration) {
	from = f.At.OrZero()
	if (chaos{f: &f}).oneShot() {
		return from, from + 1
	}
	if f.For == nil {
		return from, math.MaxInt64
	}
	to = from + f.For.OrZero()
	if f.Repeat != nil {
		to += time.Duration(f.Repeat.Times-1) * f.Repeat.Every.OrZero()
	}
	return from, to
}

// overlap reports whether two faults may be in force at the same instant. Faults that count from
// different marks never overlap here, since only the run shows when the marks come.
func overlap(a, b v1alpha1.Fault) bool {
	if !sameOrigin(a, b) {
		return false
	}
	fromA, toA := span(a)
	fromB, toB := span(b)
	return fromA < toB && fromB < toA
}
