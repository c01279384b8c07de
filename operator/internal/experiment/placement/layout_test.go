package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
)

func TestLongNamesFitAndDiffer(t *testing.T) {
	long := strings.Repeat("x", 60)
	a, b := shortName(long+"a"), shortName(long+"b")
	if len(a) > statefulSetNameLimit || a == b {
		t.Errorf("names %q and %q: want at most %d characters each, and two of them", a, b, statefulSetNameLimit)
	}
}

// If regions choose nodes, each region's clients have a Job of their own, and every client keeps
// its number.
func TestClientsOfRegionsHaveJobsOfTheirOwn(t *testing.T) {
	for name, tc := range map[string]struct {
		by   *v1alpha1.RegionNodes
		want []string // name, region and number of each client pod
		jobs int
	}{
		"regions choose no nodes": {nil, []string{"t-c-0 east 0", "t-c-1 west 1", "t-c-2 east 2"}, 1},
		"regions choose nodes":    {&v1alpha1.RegionNodes{}, []string{"t-c-east-0 east 0", "t-c-west-0 west 1", "t-c-east-1 east 2"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLayout("ns", "t", &v1alpha1.TrialSpec{
				Clients: v1alpha1.Clients{Count: 7, Nodes: 3, Regions: []string{"east", "west"}}, Placement: v1alpha1.Placement{ByRegion: tc.by},
			}, &v1alpha1.SystemSpec{})
			var got []string
			for _, c := range l.Clients {
				got = append(got, fmt.Sprintf("%s %s %d", c.Name, c.Region, c.Index))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("clients %q, want %q", got, tc.want)
			}
			if len(l.ClientSets) != tc.jobs {
				t.Errorf("%d Jobs, want %d", len(l.ClientSets), tc.jobs)
			}
			for _, set := range l.ClientSets {
				for index, i := range set.Clients {
					if c, ok := l.ClientOf(set.Name, index); !ok || c.Name != l.Clients[i].Name || c.Name != fmt.Sprintf("%s-%d", set.Name, index) {
						t.Errorf("index %d of Job %s is client %q (%v)", index, set.Name, c.Name, ok)
					}
				}
				if c, ok := l.ClientOf(set.Name, len(set.Clients)); ok {
					t.Errorf("Job %s has one client too many, %s", set.Name, c.Name)
				}
			}
		})
	}
}
