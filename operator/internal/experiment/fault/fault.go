// Package fault knows the kinds of faults: their meaning, their actions on pods over time, and the
// things they can be combined with. One file is for each kind. No other package asks of which kind
// a fault is; docs/extending.md says how a kind is added. Agents, and readers of their records, see
// its actions only (package timeline).
//
// It is pure: no clock, no client; what is drawn at random follows from the trial's seed.
package fault

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/timeline"
)

// kind is one fault, seen as what its kind makes of it.
type kind interface {
	// dated reports whether something happens at an instant.
	dated() bool
	// targets are all that it has; nil where it leaves one out.
	targets() []*v1alpha1.Target
	// begin returns the actions that begin one time of it, without ID and instant. Its picks are
	// drawn from the salt.
	begin(salt string, cast Cast) ([]timeline.Action, error)
	// check adds the fault's errors to the findings of the checker. It returns the replicas whose
	// processes the fault may stop.
	check(e *checker, path *field.Path, c targetCheck) map[placement.Place]bool
}

// always is part of every kind that acts at instants.
type always struct{}

func (always) dated() bool { return true }

// A kind may say more than that.
type (
	// defaulting fills in what the fault leaves out.
	defaulting interface{ setDefaults() }
	// forRoles reports whether who is stopped is known at the instant only.
	forRoles interface{ role() bool }
	// flapping says how the fault comes and goes within one time of it; nil: it does not.
	flapping interface{ flap() *v1alpha1.Flap }
	// needingNodes says why one machine without a cluster cannot do it; empty: it can.
	needingNodes interface{ notOnOneMachine() string }
)

// kinds of faults, by the field of a Fault that says what such a fault does. The file of each kind
// adds it, so that a new kind is one file here and the field.
var kinds = map[string]func(*v1alpha1.Fault) kind{}

// add adds a kind. of returns nil for a fault that does not set the field.
func add(field string, of func(*v1alpha1.Fault) kind) { kinds[field] = of }

// allNames are the fields of which a fault sets one, in the order of the API.
var allNames = sync.OnceValue(func() []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[v1alpha1.Fault]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); kinds[name] != nil {
			names = append(names, name)
		}
	}
	return names
})

// kindsOf are all kinds that a fault is of, in the order of the fields: one, if it is right.
func kindsOf(f *v1alpha1.Fault) []kind {
	var set []kind
	for _, name := range allNames() {
		if k := kinds[name](f); k != nil {
			set = append(set, k)
		}
	}
	return set
}

// of is the kind of a fault, or nil if it says nothing to do.
func of(f *v1alpha1.Fault) kind {
	if all := kindsOf(f); len(all) > 0 {
		return all[0]
	}
	return nil
}

// namesOf are the fields that a fault sets.
func namesOf(f *v1alpha1.Fault) []string {
	return slices.DeleteFunc(slices.Clone(allNames()), func(name string) bool { return kinds[name](f) == nil })
}

// KillsPods reports whether the fault kills the processes of replicas, and no machine.
func KillsPods(f *v1alpha1.Fault) bool {
	k, ok := of(f).(kill)
	return ok && !k.machine()
}

// ResetsMachines reports whether any of the faults resets nodes.
func ResetsMachines(faults []v1alpha1.Fault) bool {
	return slices.ContainsFunc(faults, func(f v1alpha1.Fault) bool { k, ok := of(&f).(kill); return ok && k.machine() })
}

// ShapesLinks reports whether any of the faults makes links worse.
func ShapesLinks(faults []v1alpha1.Fault) bool {
	return slices.ContainsFunc(faults, func(f v1alpha1.Fault) bool { return f.Degrade != nil })
}

// UsesChaosMesh reports whether Chaos Mesh carries out any of the faults.
func UsesChaosMesh(faults []v1alpha1.Fault) bool {
	return slices.ContainsFunc(faults, func(f v1alpha1.Fault) bool { return f.ChaosMesh != nil })
}

// SetDefaults fills in what faults leave out.
func SetDefaults(faults []v1alpha1.Fault) {
	for i := range faults {
		for _, k := range kindsOf(&faults[i]) {
			if d, ok := k.(defaulting); ok {
				d.setDefaults()
			}
		}
	}
}

// Targets are all targets that a fault has; nil where it leaves one out.
func Targets(f *v1alpha1.Fault) []*v1alpha1.Target {
	if k := of(f); k != nil {
		return k.targets()
	}
	return nil
}

// NotOnOneMachine says why one machine without a cluster cannot carry the fault out; empty: it can.
func NotOnOneMachine(f *v1alpha1.Fault) string {
	if k, ok := of(f).(needingNodes); ok {
		return k.notOnOneMachine()
	}
	return ""
}
