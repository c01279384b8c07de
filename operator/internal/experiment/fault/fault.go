// Package fault knows the kinds of faults: their meaning, their actions on pods over time, and the
// faults and settings that they can be combined with. Each kind has a file. No other package asks
// for the kind of a fault; docs/extending.md says how to add a kind. Agents, and readers of their
// records, see only its actions (package timeline).
//
// It is pure: it has no clock and no client, and random choices follow from the trial's seed.
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

// kind is a fault, in the form that its kind gives it.
type kind interface {
	// dated reports whether the fault acts at an instant.
	dated() bool
	// targets returns all targets of the fault. A target that it leaves out is nil.
	targets() []*v1alpha1.Target
	// begin returns the actions that begin one time of the fault, without ID and instant. Its picks
	// are drawn from the salt.
	begin(salt string, cast Cast) ([]timeline.Action, error)
	// check adds the fault's errors to the findings of the checker. It returns the replicas whose
	// processes the fault may stop.
	check(e *checker, path *field.Path, c targetCheck) map[placement.Place]bool
}

// always is embedded in every kind that acts at instants.
type always struct{}

func (always) dated() bool { return true }

// Further methods of some kinds.
type (
	// defaulting fills in the defaults of the fault.
	defaulting interface{ setDefaults() }
	// forRoles reports whether a role chooses the target, so that the stopped replica is known only
	// at the instant of the fault.
	forRoles interface{ role() bool }
	// flapping says how the fault comes and goes within one time of it. Nil: it does not flap.
	flapping interface{ flap() *v1alpha1.Flap }
	// needingNodes says why one machine without a cluster cannot carry the fault out. Empty: it
	// can.
	needingNodes interface{ notOnOneMachine() string }
)

// kinds of faults, by the field of a Fault that sets such a fault. The file of each kind adds the
// kind, so that a new kind needs one file here and the field.
var kinds = map[string]func(*v1alpha1.Fault) kind{}

// add adds a kind. of returns nil for a fault that does not set the field.
func add(field string, of func(*v1alpha1.Fault) kind) { kinds[field] = of }

// allNames are the fields that set a kind, in the order of the API. A fault has one of them.
var allNames = sync.OnceValue(func() []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[v1alpha1.Fault]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); kinds[name] != nil {
			names = append(names, name)
		}
	}
	return names
})

// kindsOf returns the kinds that a fault sets, in the order of the fields. A valid fault has one.
func kindsOf(f *v1alpha1.Fault) []kind {
	var set []kind
	for _, name := range allNames() {
		if k := kinds[name](f); k != nil {
			set = append(set, k)
		}
	}
	return set
}

// of returns the kind of a fault, or nil if the fault sets none.
func of(f *v1alpha1.Fault) kind {
	if all := kindsOf(f); len(all) > 0 {
		return all[0]
	}
	return nil
}

// namesOf returns the fields of kinds that a fault sets.
func namesOf(f *v1alpha1.Fault) []string {
	return slices.DeleteFunc(slices.Clone(allNames()), func(name string) bool { return kinds[name](f) == nil })
}

// KillsPods reports whether the fault kills the processes of replicas, but resets no machine.
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

// SetDefaults fills in the defaults of faults.
func SetDefaults(faults []v1alpha1.Fault) {
	for i := range faults {
		for _, k := range kindsOf(&faults[i]) {
			if d, ok := k.(defaulting); ok {
				d.setDefaults()
			}
		}
	}
}

// Targets returns all targets of a fault. A target that the fault leaves out is nil.
func Targets(f *v1alpha1.Fault) []*v1alpha1.Target {
	if k := of(f); k != nil {
		return k.targets()
	}
	return nil
}

// NotOnOneMachine says why one machine without a cluster cannot carry the fault out. Empty: it can.
func NotOnOneMachine(f *v1alpha1.Fault) string {
	if k, ok := of(f).(needingNodes); ok {
		return k.notOnOneMachine()
	}
	return ""
}
