package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/network"
)

// Each shard draws for itself. If all shards lost the replica of one index, their faults would not
// be independent.
func TestShardsDrawApart(t *testing.T) {
	const shards = 40
	l := NewLayout("ns", "t", &v1alpha1.TrialSpec{
		Seed: 7, Topology: v1alpha1.Topology{F: 1, Shards: shards, Regions: []v1alpha1.Region{{Name: "east", Replicas: 5}}},
	}, &v1alpha1.SystemSpec{})
	picked := map[string]int{}
	for _, pod := range l.Choose(v1alpha1.Target{Pick: new(intstr.FromInt32(1))}, "crash/1", nil) {
		picked[pod[strings.LastIndex(pod, "-")+1:]]++
	}
	n := 0
	for _, times := range picked {
		n += times
	}
	if n != shards || len(picked) != 5 {
		t.Errorf("%d shards lose replicas of the indexes %v; want %d shards, and all of 5 indexes", n, picked, shards)
	}
}

// Each fault draws for itself. If all faults of a trial lost the same replica, the second one would
// find it lost.
func TestFaultsDrawApart(t *testing.T) {
	l := NewLayout("ns", "t", &v1alpha1.TrialSpec{
		Seed: 7, Topology: v1alpha1.Topology{F: 1, Shards: 1, Regions: []v1alpha1.Region{{Name: "east", Replicas: 5}}},
	}, &v1alpha1.SystemSpec{})
	picked := map[string]bool{}
	for i := range 40 {
		for _, pod := range l.Choose(v1alpha1.Target{Pick: new(intstr.FromInt32(1))}, fmt.Sprintf("crash-%d/1", i), nil) {
			picked[pod] = true
		}
	}
	if len(picked) != 5 {
		t.Errorf("40 faults lose %d of 5 replicas", len(picked))
	}
}

// A pod has no link with itself. So a region with one pod has no link within.
func TestDirections(t *testing.T) {
	one, two := Place{Index: 0}, Place{Index: 1}
	for name, tc := range map[string]struct {
		from, to Ends
		want     []network.Direction
	}{
		"a pod and itself":          {Ends{"east": {one}}, Ends{"east": {one}}, nil},
		"two pods of a region":      {Ends{"east": {one}}, Ends{"east": {two}}, []network.Direction{{From: "east", To: "east"}}},
		"a pod and those beside it": {Ends{"east": {one}}, Ends{"east": {one, two}}, []network.Direction{{From: "east", To: "east"}}},
		"pods of two regions":       {Ends{"east": {one}}, Ends{"east": {one}, "west": {two}}, []network.Direction{{From: "east", To: "west"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Directions(tc.from, tc.to); !slices.Equal(got, tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
