package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
)

// checkSizes bounds the numbers from which the expansion makes lists. The API server has done so
// for its objects. A file, or a bundle that is run again, may never have reached an API server.
// checkSizes reports whether the expansion may go on.
func (e *fieldChecker) checkSizes() bool {
	spec, s := field.NewPath("spec"), e.spec
	before := len(e.errs)
	for _, size := range []struct {
		at        *field.Path
		value     int32
		low, high int32
	}{
		{spec.Child("clients", "nodes"), s.Clients.Nodes, 1, 256},
		{spec.Child("clients", "count"), s.Clients.Count, 1, 100_000},
		{spec.Child("topology", "f"), s.Topology.F, 0, 33},
		{spec.Child("topology", "shards"), s.Topology.Shards, 1, 64},
		{spec.Child("repetitions", "min"), s.Repetitions.Min, 1, 100},
		{spec.Child("additionalRepetitions"), s.AdditionalRepetitions, 0, 99},
	} {
		if size.value < size.low || size.value > size.high {
			e.add(field.Invalid(size.at, size.value, fmt.Sprintf("must be from %d to %d", size.low, size.high)))
		}
	}
	for i, region := range s.Topology.Regions {
		if region.Replicas < 0 || region.Replicas > MaxReplicas {
			e.add(field.Invalid(spec.Child("topology", "regions").Index(i).Child("replicas"), region.Replicas, fmt.Sprintf("must be from 0 to %d", MaxReplicas)))
		}
	}
	if len(s.Systems) == 0 {
		e.add(field.Required(spec.Child("systems"), "name one System at least"))
	}
	return len(e.errs) == before
}

// hasContainers refuses a System without containers. Only a file that never reached an API server
// may have none.
func (e *fieldChecker) hasContainers(path *field.Path, name string, system *v1alpha1.SystemSpec) bool {
	if len(system.Replicas.Containers) > 0 && len(system.Clients.Containers) > 0 {
		return true
	}
	e.add(field.Invalid(path, name, fmt.Sprintf("System %q has no container for its replicas or its clients", name)))
	return false
}
