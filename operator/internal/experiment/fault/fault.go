// Package fault knows the kinds of faults: what each means, what it does to which pods at which
// instants, and what it goes together with. One file is for each kind. No other package asks of
// which kind a fault is. Agents, and readers of their records, see its actions only (package
// timeline).
//
// It is pure: no clock, no client; what is drawn at random follows from the trial's seed.
package fault

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/timeline"
)

// kind is one fault, seen as what its kind makes of it.
type kind interface {
	// name of the field that says what such a fault does.
	name() string
	// dated reports whether something happens at an instant.
	dated() bool
	// begin returns the actions that begin one time of it, without ID and instant. Its picks are
	// drawn from the salt.
	begin(salt string, cast Cast) ([]timeline.Action, error)
	// check adds what is wrong with it to what the checker found, and returns the replicas whose
	// processes it may stop.
	check(e *checker, path *field.Path, c targetCheck) map[placement.Place]bool
}

// always is part of every kind that acts at instants.
type always struct{}

func (always) dated() bool { return true }

// kindsOf are all kinds that a fault is of, in the order of the fields: one, if it is right.
func kindsOf(f *v1alpha1.Fault) []kind {
	var set []kind
	if f.NodeKill != nil {
		set = append(set, kill{k: f.NodeKill})
	}
	if f.Pause != nil {
		set = append(set, pause{p: f.Pause})
	}
	if f.Partition != nil {
		set = append(set, partition{p: f.Partition})
	}
	if f.Degrade != nil {
		set = append(set, degrade{d: f.Degrade})
	}
	if f.ChaosMesh != nil {
		set = append(set, chaos{f: f})
	}
	if f.ClientBehavior != nil {
		set = append(set, behavior{b: f.ClientBehavior})
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

// allNames are the fields of which a fault sets one.
var allNames = []string{kill{}.name(), pause{}.name(), partition{}.name(), degrade{}.name(), chaos{}.name(), behavior{}.name()}

func names(kinds []kind) []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.name())
	}
	return out
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
		if k := faults[i].NodeKill; k != nil {
			k.Mode, k.Disk = cmp.Or(k.Mode, v1alpha1.KillPods), cmp.Or(k.Disk, "Keep")
		}
		if p := faults[i].Partition; p != nil {
			p.Clients = cmp.Or(p.Clients, "Everyone")
		}
	}
}
