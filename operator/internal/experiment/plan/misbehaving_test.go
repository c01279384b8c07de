package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// faulty returns a System whose client program makes the first clients of all pods faulty, as in
// the Pequin artifact.
func faulty(expr string) *builders.SystemBuilder {
	none := builders.Value(0)
	return builders.System("s").Set(func(s *v1alpha1.SystemSpec) {
		s.Parameters = []v1alpha1.Parameter{{Name: "faulty", Type: v1alpha1.ParameterInteger, Default: &none, Doc: "Percent of faulty clients."}}
		s.Clients.Misbehaving = expr
	})
}

// Two clients that an artifact's program made faulty once counted as correct, so numbers by correct
// client were half of the right ones.
func TestClientsThatTheirProgramMakesMisbehave(t *testing.T) {
	const firstOfAllPods = "index * pods + pod < clients * parameters.faulty / 100"
	for name, tc := range map[string]struct {
		expr           string
		clients, pods  int32
		percent        int
		misbehavingIn  []int32
		wantErr, field string
	}{
		"none":                  {expr: firstOfAllPods, clients: 4, pods: 2},
		"half":                  {expr: firstOfAllPods, clients: 4, pods: 2, percent: 50, misbehavingIn: []int32{1, 1}},
		"rounded down":          {expr: firstOfAllPods, clients: 10, pods: 4, percent: 39, misbehavingIn: []int32{1, 1, 1, 0}},
		"a pod more than one":   {expr: firstOfAllPods, clients: 10, pods: 3, percent: 80, misbehavingIn: []int32{3, 3, 2}},
		"by index over all":     {expr: "client < parameters.faulty", clients: 10, pods: 3, percent: 5, misbehavingIn: []int32{4, 1, 0}},
		"fewer clients than":    {expr: "pod == 0", clients: 2, pods: 2, misbehavingIn: []int32{1, 0}},
		"all of them":           {expr: "client >= 0", clients: 2, pods: 2, wantErr: `clients.misbehaving "client >= 0" makes all 2 clients misbehave; at least one must not`, field: "spec.clients.nodes"},
		"a division by nothing": {expr: "clients / parameters.faulty > 1", clients: 2, pods: 2, wantErr: "fails for client 0 of pod 0: division by zero", field: "spec.clients.nodes"},
		"no such variable":      {expr: "thread < 1", clients: 2, pods: 2, wantErr: "is not a CEL expression over client, clients, pod, pods, index such as", field: "spec.systems[0].name"},
		"a number":              {expr: "clients / 2", clients: 2, pods: 2, wantErr: "gives a int; write a CEL expression over client, clients, pod, pods, index that gives a bool", field: "spec.systems[0].name"},
	} {
		t.Run(name, func(t *testing.T) {
			exp := builders.Experiment("e").System("s").Parameter("faulty", tc.percent).Set(func(s *v1alpha1.ExperimentSpec) {
				s.Clients.Count, s.Clients.Nodes = tc.clients, tc.pods
			}).Obj()
			p, errs := plan.Expand(exp, systems(faulty(tc.expr)))
			if tc.wantErr != "" {
				if len(errs) != 1 || !strings.Contains(errs[0].Detail, tc.wantErr) || errs[0].Field != tc.field {
					t.Errorf("got %v, want %q at %s", errs.ToAggregate(), tc.wantErr, tc.field)
				}
				return
			}
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			if diff := cmp.Diff(tc.misbehavingIn, p.Points[0].Template.MisbehavingClients); diff != "" {
				t.Errorf("misbehaving clients by pod (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMisbehavingIsAUseOfItsParameters(t *testing.T) {
	exp := builders.Experiment("e").System("s").Parameter("faulty", 50).Set(func(s *v1alpha1.ExperimentSpec) { s.Clients.Count = 4 }).Obj()
	if _, errs := plan.Validate(exp, systems(faulty("client < parameters.faulty / 50")), plan.Checks{UnusedParameters: true}); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
}
