package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/text/suggest"
)

// components checks the components of a System. The schema checks their names. This checks that
// names differ, for files that never reached an API server.
func (s *systemCheck) components(at *field.Path) {
	seen := map[string]bool{}
	for i, c := range s.spec.Components {
		if seen[c.Name] {
			s.add(field.Duplicate(at.Index(i).Child("name"), c.Name))
		}
		seen[c.Name] = true
		s.group(at.Index(i), c.ReplicasSpec)
	}
}

// countsOf compiles the counts of components.
func countsOf(spec *v1alpha1.SystemSpec) (map[string]*countExpression, error) {
	counts := map[string]*countExpression{}
	for i, c := range spec.Components {
		at := fmt.Sprintf("components[%d].count", i)
		count, err := compileCount(c.Count, integers(spec))
		if err != nil {
			return nil, fmt.Errorf("%s %q %w", at, c.Count, err)
		}
		count.field = at
		counts[c.Name] = count
	}
	return counts, nil
}

// checkComponents refuses places and pools for components that no system has.
func (e *systemChecker) checkComponents() {
	var known []string
	for _, s := range e.systems {
		for _, c := range s.spec.Components {
			if !slices.Contains(known, c.Name) {
				known = append(known, c.Name)
			}
		}
	}
	check := func(at *field.Path, name string) {
		if !slices.Contains(known, name) {
			e.add(field.Invalid(at.Child("name"), name, namesOf(e.systems)+" "+suggest.Unknown("has no component", name, known)))
		}
	}
	for i, c := range e.spec.Topology.Components {
		check(e.origin.topology().Child("components").Index(i), c.Name)
	}
	for i, c := range e.spec.Placement.Components {
		check(e.origin.placement().Child("components").Index(i), c.Name)
	}
	for i, set := range e.spec.Placement.Sets {
		for k, c := range set.Components {
			check(e.origin.placement().Child("sets").Index(i).Child("components").Index(k), c.Name)
		}
	}
}

// resolveComponents places the pods of every component of the system. It returns false after an
// error.
func (e *expansion) resolveComponents(s system, path *field.Path, topology *v1alpha1.Topology, parameters map[string]v1alpha1.Value) bool {
	written, ok := topology.Components, true
	topology.Components = nil
	for _, c := range s.spec.Components {
		n, err := s.counts[c.Name].replicas(topology.F, parameters)
		if err != nil {
			e.add(field.Invalid(path.Child("f"), topology.F, fmt.Sprintf("System %q: %v", s.name, err)))
			return false
		}
		resolved := v1alpha1.ComponentRegions{Name: c.Name, Regions: []v1alpha1.Region{{Name: placement.Regions(*topology)[0], Replicas: n}}}
		if i := slices.IndexFunc(written, func(w v1alpha1.ComponentRegions) bool { return w.Name == c.Name }); i >= 0 {
			resolved.Regions = slices.Clone(written[i].Regions)
			topology.Components = append(topology.Components, resolved)
			if placed := placement.Size(*topology, c.Name); placed != n {
				e.add(field.Invalid(path.Child("components").Index(i).Child("regions"), fmt.Sprintf("%d pods", placed), fmt.Sprintf(
					"component %s of System %q has %s = %d pods for f = %d; the regions' replicas must add up to %d", c.Name, s.name, c.Count, n, topology.F, n)))
				ok = false
			}
			continue
		}
		topology.Components = append(topology.Components, resolved)
	}
	pods := int(topology.Shards) * int(placement.Size(*topology, ""))
	for _, c := range topology.Components {
		pods += int(placement.Size(*topology, c.Name))
	}
	if pods > MaxReplicas {
		e.add(field.Invalid(path.Child("f"), topology.F, fmt.Sprintf("System %q has %d replicas and pods of components for f = %d; at most %d are possible", s.name, pods, topology.F, MaxReplicas)))
		return false
	}
	return ok
}

// ownPools returns the pools of the components that a system has.
func ownPools(s system, pools []v1alpha1.ComponentPool) []v1alpha1.ComponentPool {
	return slices.DeleteFunc(slices.Clone(pools), func(p v1alpha1.ComponentPool) bool { return s.spec.Group(p.Name) == nil })
}
