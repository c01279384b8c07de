package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// withProxies gives a System f+1 proxies.
func withProxies(s *v1alpha1.SystemSpec) {
	proxy := v1alpha1.Component{Name: "proxy", ReplicasSpec: *s.Replicas.DeepCopy()}
	proxy.Count = "f < 5 ? f+1 : 15"
	s.Components = []v1alpha1.Component{proxy}
}

func TestComponentsArePlaced(t *testing.T) {
	here := []v1alpha1.Region{{Name: "local", Replicas: 2}}
	apart := []v1alpha1.Region{{Name: "local", Replicas: 1}, {Name: "west", Replicas: 1}}
	for name, tc := range map[string]struct {
		change    func(*v1alpha1.ExperimentSpec)
		regions   []v1alpha1.Region
		pools     []string
		wantError string
	}{
		"in the replicas' first region": {func(*v1alpha1.ExperimentSpec) {}, here, nil, ""},
		"where the experiment says": {func(s *v1alpha1.ExperimentSpec) {
			s.Topology.Components = []v1alpha1.ComponentRegions{{Name: "proxy", Regions: apart}}
		}, apart, nil, ""},
		"on a pool": {func(s *v1alpha1.ExperimentSpec) {
			s.Placement = v1alpha1.Placement{Replicas: "r", Clients: "c", Components: []v1alpha1.ComponentPool{{Name: "proxy", Pool: "a"}}}
		}, here, []string{"a", "c", "r"}, ""},
		"too few": {func(s *v1alpha1.ExperimentSpec) {
			s.Topology.Components = []v1alpha1.ComponentRegions{{Name: "proxy", Regions: apart[:1]}}
		}, nil, nil, `spec.topology.components[0].regions: Invalid value: "1 pods"`},
		"very many": {func(s *v1alpha1.ExperimentSpec) { s.Topology.Shards, s.Topology.F = 38, 5 }, nil, nil, `System "echo" has 1003 replicas and pods of components for f = 5`},
		"of a profile": {func(s *v1alpha1.ExperimentSpec) {
			s.Profile, s.Profiles = "p", []v1alpha1.Profile{{Name: "p", Placement: &v1alpha1.Placement{Components: []v1alpha1.ComponentPool{{Name: "prxy", Pool: "a"}}}}}
		}, nil, nil, `spec.profiles[0].placement.components[0].name: Invalid value: "prxy"`},
	} {
		t.Run(name, func(t *testing.T) {
			system := builders.System("echo").Set(withProxies).Obj().Spec
			exp := builders.Experiment("exp").System("echo").Set(tc.change).Obj()
			p, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{"echo": system})
			if tc.wantError != "" {
				if err := errs.ToAggregate(); err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("error %v, want %q", err, tc.wantError)
				}
				return
			}
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			got := p.Points[0].Template
			want := []v1alpha1.ComponentRegions{{Name: "proxy", Regions: tc.regions}}
			if diff := cmp.Diff(want, got.Topology.Components); diff != "" {
				t.Errorf("components (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.pools, got.Placement.Pools()); diff != "" {
				t.Errorf("pools (-want +got):\n%s", diff)
			}
		})
	}
}

// Only one of two systems has the component. A trial has the components of its own system.
func TestComponentsOfOneOfTwoSystems(t *testing.T) {
	systems := map[string]v1alpha1.SystemSpec{"plain": builders.System("plain").Obj().Spec, "tiers": builders.System("tiers").Set(withProxies).Obj().Spec}
	exp := builders.Experiment("exp").System("plain").Set(func(s *v1alpha1.ExperimentSpec) {
		s.Systems = []v1alpha1.SystemReference{{Name: "plain"}, {Name: "tiers"}}
		s.Placement = v1alpha1.Placement{Replicas: "r", Clients: "c", Components: []v1alpha1.ComponentPool{{Name: "proxy", Pool: "a"}}}
	}).Obj()
	p, errs := plan.Expand(exp, systems)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	for i, want := range []int{0, 1} {
		got := p.Points[i].Template
		if len(got.Topology.Components) != want || len(got.Placement.Components) != want {
			t.Errorf("the trials of %s have the components %v on %v, want %d", got.System.Name, got.Topology.Components, got.Placement.Components, want)
		}
	}
}

// A count may depend on a parameter that a sweep changes. The count is then a use of the parameter.
func TestCountsFollowParameters(t *testing.T) {
	one := builders.Value(1)
	system := builders.System("echo").Set(withProxies).Set(func(s *v1alpha1.SystemSpec) {
		s.Parameters = append(s.Parameters, v1alpha1.Parameter{Name: "proxies", Type: v1alpha1.ParameterInteger, Default: &one, Doc: "Proxies."}, v1alpha1.Parameter{Name: "spare", Type: v1alpha1.ParameterInteger, Default: &one, Doc: "Spare replicas."})
		s.Components[0].Count, s.Replicas.Count = "parameters.proxies * (f + 1)", "2*f + parameters.spare"
	}).Obj().Spec
	exp := builders.Experiment("exp").System("echo").Values("proxies", 1, 3).Parameter("spare", 2).Obj()
	p, errs := plan.Validate(exp, map[string]v1alpha1.SystemSpec{"echo": system}, plan.Checks{UnusedParameters: true})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	for i, want := range []int32{2, 6} {
		topology := p.Points[i].Template.Topology
		if got := topology.Components[0].Regions[0].Replicas; got != want || p.Points[i].Replicas != 4 {
			t.Errorf("with proxies=%s there are %d proxies and %d replicas, want %d and 4", p.Points[i].Template.Point.Coordinates["proxies"], got, p.Points[i].Replicas, want)
		}
	}
	for name, tc := range map[string]struct {
		count, want string
		value       any
	}{
		"none of them":           {"parameters.proxies", `components[0].count "parameters.proxies" gives 0 replicas for f = 1; 1 to 200 are possible`, 0},
		"no such parameter":      {"parameters.proxis", "is not a CEL expression over f such as 3*f+1, or over parameters of type Integer (parameters.batch, parameters.proxies, parameters.spare): undeclared reference", 1},
		"one of another type":    {"parameters.fastPath", "undeclared reference", 1},
		"a text of some numbers": {"string(parameters.proxies)", "gives a string", 1},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := *system.DeepCopy()
			wrong.Components[0].Count = tc.count
			exp := builders.Experiment("exp").System("echo").Parameter("proxies", tc.value).Obj()
			_, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{"echo": wrong})
			if err := errs.ToAggregate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// A role belongs to the replicas or to a component. A target of another group cannot have it.
func TestRolesOfComponents(t *testing.T) {
	system := builders.System("echo").Set(withProxies).Set(func(s *v1alpha1.SystemSpec) {
		s.Roles = []v1alpha1.Role{{Name: "leader", Command: []string{"leads"}}, {Name: "active", Component: "proxy", Command: []string{"active"}}}
	}).Obj().Spec
	for name, tc := range map[string]struct {
		target     v1alpha1.Target
		field, err string
	}{
		"of a component":           {target: v1alpha1.Target{Component: "proxy", Role: "active"}},
		"of a component, in pods":  {target: v1alpha1.Target{Component: "proxy", Role: "active", Pods: []int32{0, 1}}},
		"of replicas":              {target: v1alpha1.Target{Role: "leader"}},
		"of replicas, a component": {v1alpha1.Target{Component: "proxy", Role: "leader"}, "spec.faults[0].pause.target.role", `declares no role of component proxy "leader"; there are: active`},
		"of a component, replicas": {v1alpha1.Target{Role: "active"}, "spec.faults[0].pause.target.role", `declares no role of replicas "active"; there are: leader`},
		"with shards":              {v1alpha1.Target{Component: "proxy", Role: "active", Shards: []int32{0}}, "spec.faults[0].pause.target.component", "choose those by pods, regions, role, pick"},
	} {
		t.Run(name, func(t *testing.T) {
			exp := builders.Experiment("exp").System("echo").Set(func(s *v1alpha1.ExperimentSpec) {
				s.Faults = []v1alpha1.Fault{{Name: "f", At: "1s", EveryPoint: true, Pause: &v1alpha1.Pause{Target: tc.target}}}
			}).Obj()
			_, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{"echo": system})
			switch {
			case tc.err == "" && len(errs) > 0:
				t.Error(errs.ToAggregate())
			case tc.err != "" && (len(errs) != 1 || errs[0].Field != tc.field || !strings.Contains(errs[0].Error(), tc.err)):
				t.Errorf("got %v, want %q at %s", errs.ToAggregate(), tc.err, tc.field)
			}
		})
	}
}
