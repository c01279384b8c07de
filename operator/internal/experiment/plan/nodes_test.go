package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

func TestRegionsChooseNodes(t *testing.T) {
	value := func(region, value string) v1alpha1.RegionValue {
		return v1alpha1.RegionValue{Region: region, Value: value}
	}
	const cloud = "topology.kubernetes.io/region"
	for name, tc := range map[string]struct {
		by        v1alpha1.RegionNodes
		want      v1alpha1.RegionNodes
		wantError string
	}{
		"named like in the cloud": {v1alpha1.RegionNodes{}, v1alpha1.RegionNodes{Label: cloud, Values: []v1alpha1.RegionValue{value("east", "east"), value("west", "west"), value("north", "north")}}, ""},
		"called otherwise": {
			v1alpha1.RegionNodes{Label: "rack", Values: []v1alpha1.RegionValue{value("north", "r3"), value("mars", "r4"), value("west", "r1"), value("east", "r1")}},
			v1alpha1.RegionNodes{Label: "rack", Values: []v1alpha1.RegionValue{value("east", "r1"), value("west", "r1"), value("north", "r3")}}, "",
		},
		"a region of clients only is left out": {
			v1alpha1.RegionNodes{Values: []v1alpha1.RegionValue{value("east", "a"), value("west", "b")}}, v1alpha1.RegionNodes{},
			"spec.placement.byRegion.values[north]: Required value: region north holds pods, and nothing says which nodes are in it; add {region: north, value: the nodes' value of " + cloud + "}",
		},
		"the label of pools": {v1alpha1.RegionNodes{Label: "assay.dev/pool"}, v1alpha1.RegionNodes{}, `spec.placement.byRegion.label: Invalid value: "assay.dev/pool"`},
	} {
		t.Run(name, func(t *testing.T) {
			exp := builders.Experiment("exp").System("echo").Set(func(s *v1alpha1.ExperimentSpec) {
				s.Topology.Regions = []v1alpha1.Region{{Name: "east", Replicas: 4}, {Name: "west", Replicas: 2}, {Name: "south", Replicas: 0}}
				s.Clients.Regions, s.Placement.ByRegion = []string{"west", "north"}, &tc.by
			}).Obj()
			p, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{"echo": builders.System("echo").Obj().Spec})
			if tc.wantError != "" {
				if err := errs.ToAggregate(); err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("error %v, want %q", err, tc.wantError)
				}
				return
			}
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			if diff := cmp.Diff(&tc.want, p.Points[0].Template.Placement.ByRegion); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
