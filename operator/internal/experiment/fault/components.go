package fault

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/text/suggest"
)

// checkComponent checks a target of pods of a component, as checkTarget checks a target of
// replicas.
func (e *checker) checkComponent(c targetCheck, t v1alpha1.Target) (map[placement.Place]bool, bool) {
	names := make([]string, len(e.Spec.Components))
	for i, component := range e.Spec.Components {
		names[i] = component.Name
	}
	switch {
	case t.Component == "":
		e.add(field.Invalid(c.path.Child("pods"), fmt.Sprint(t.Pods), "are those of a component: name it by component, or choose replicas by replicas"))
		return nil, false
	case len(t.Replicas) > 0 || len(t.Shards) > 0:
		e.add(field.Invalid(c.path.Child("component"), t.Component, "replicas and shards choose replicas, not pods of a component: choose those by pods, regions, role, pick"))
		return nil, false
	case e.Spec.Group(t.Component) == nil:
		e.add(field.Invalid(c.path.Child("component"), t.Component, fmt.Sprintf("System %q ", e.System)+suggest.Unknown("has no component", t.Component, names)))
		return nil, false
	}
	n := placement.Size(c.topology, t.Component)
	ok := e.checkRegions(c, t, fmt.Sprintf("component %s is in no region", t.Component))
	if t.Role != "" {
		ok = e.checkRole(c, t) && ok
	}
	for j, i := range t.Pods {
		if i < 0 || i >= n {
			ok = false
			e.add(field.Invalid(c.path.Child("pods").Index(j), i, fmt.Sprintf("component %s has %d pods for f = %d: 0 to %d", t.Component, n, c.topology.F, n-1)))
		}
	}
	if !ok {
		return nil, false
	}
	candidates := placement.Targets(t, c.topology)
	if len(candidates) == 0 {
		e.add(field.Invalid(c.path, describeTarget(t), "chooses no pod: no pod of these indexes is in these regions; "+describeRegions(c.topology.RegionsOf(t.Component))))
		return nil, false
	}
	return candidates, t.Pick == nil || e.checkPick(c, t, candidates)
}

// things names the kind of pods that a target chooses.
func things(t v1alpha1.Target) string {
	if t.Component != "" {
		return "pods"
	}
	return "replicas"
}

// group names the group from which a target chooses.
func group(t v1alpha1.Target) string {
	if t.Component != "" {
		return "component " + t.Component
	}
	return "replicas"
}

// unitName names the unit from which a target picks.
func unitName(t v1alpha1.Target) string {
	if t.Component != "" {
		return "component " + t.Component
	}
	return "a shard"
}
