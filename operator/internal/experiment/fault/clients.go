package fault

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/network"
	"assay.dev/assay/operator/internal/model/timeline"
)

// behavior makes some clients behave otherwise during the whole trial. Nothing happens at an
// instant.
type behavior struct{ b *v1alpha1.ClientBehavior }

func init() {
	add("clientBehavior", func(f *v1alpha1.Fault) kind {
		if f.ClientBehavior == nil {
			return nil
		}
		return behavior{b: f.ClientBehavior}
	})
}

func (behavior) dated() bool { return false }

func (behavior) targets() []*v1alpha1.Target { return nil }

func (behavior) begin(string, Cast) ([]timeline.Action, error) {
	return nil, errors.New("clientBehavior has no instant: it is in force for the whole run")
}

// Behavior returns how some clients behave otherwise. Nil: no fault changes the behavior of
// clients.
func Behavior(faults []v1alpha1.Fault) *v1alpha1.ClientBehavior {
	for i := range faults {
		if b := faults[i].ClientBehavior; b != nil {
			return b
		}
	}
	return nil
}

// checkClientBehavior checks the clients that behave otherwise, and puts their parameters into
// canonical form.
func (e *checker) checkClientBehavior(path *field.Path, b *v1alpha1.ClientBehavior) {
	trial := e.Trial
	if d := e.Spec.Clients.Driver; d == nil || d.Protocol == "Echo" {
		e.add(field.Invalid(path, b.Share, fmt.Sprintf(
			"System %q has clients without a driver process: what some of them do cannot be told from what the others do, nor left out of the results; where the program itself makes some misbehave, turn its parameters, and say which in clients.misbehaving of the System", e.System)))
		return
	}
	share, err := network.Share(b.Share)
	if err != nil {
		e.add(field.Invalid(path.Child("share"), b.Share, "must be more than 0% and less than 100%"))
		return
	}
	if n := int32(math.Floor(share * float64(trial.Clients.Count))); n < 1 || n >= trial.Clients.Count {
		e.add(field.Invalid(path.Child("share"), b.Share, fmt.Sprintf(
			"is %d of %d clients; at least one must behave so, and at least one must not, since only that is measured", n, trial.Clients.Count)))
	}
	for _, name := range slices.Sorted(maps.Keys(b.Parameters)) {
		at := path.Child("parameters").Key(name)
		canonical, err := e.Parameter(name, b.Parameters[name])
		if err != nil {
			e.add(field.Invalid(at, b.Parameters[name].String(), err.Error()))
			continue
		}
		b.Parameters[name] = canonical
	}
}

func (k behavior) check(e *checker, path *field.Path, _ targetCheck) map[placement.Place]bool {
	if e.behaviors++; e.behaviors > 1 {
		e.add(field.Invalid(path, e.name, "another fault of the same point changes the behavior of clients already; only one can"))
	}
	e.checkClientBehavior(path.Child("clientBehavior"), k.b)
	return nil
}
