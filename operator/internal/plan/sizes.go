package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkSizes checks the numbers that the rest of the expansion makes lists of. The API server has
// refused them already; a file, or a bundle that is run again, may never have met one. It reports
// whether the expansion may go on.
func (e *expansion) checkSizes() bool {
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
	return len(e.errs) == before
}
