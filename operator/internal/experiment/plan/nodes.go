package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
)

// resolveNodes sets the value of the nodes' label for every region that holds pods, if regions
// choose nodes. It removes the values of other regions.
func (e *expansion) resolveNodes(trial *v1alpha1.TrialSpec) {
	by := trial.Placement.ByRegion
	if by == nil {
		return
	}
	path := e.origin.placement().Child("byRegion")
	if by.Label == v1alpha1.LabelPool { // for a file that never reached an API server
		e.add(field.Invalid(path.Child("label"), by.Label, "says the pool of a node; name the label that says its region"))
		return
	}
	used := placement.ServerRegions(trial.Topology)
	for _, region := range trial.Clients.Regions {
		if !slices.Contains(used, region) {
			used = append(used, region)
		}
	}
	values := make([]v1alpha1.RegionValue, 0, len(used))
	for _, region := range used {
		value, ok := by.Of(region)
		if len(by.Values) == 0 {
			value, ok = region, true
		}
		if !ok {
			e.add(field.Required(path.Child("values").Key(region), fmt.Sprintf(
				"region %s holds pods, and nothing says which nodes are in it; add {region: %s, value: the nodes' value of %s}", region, region, by.Label)))
			return
		}
		values = append(values, v1alpha1.RegionValue{Region: region, Value: value})
	}
	by.Values = values
}
