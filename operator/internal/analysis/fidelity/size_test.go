package fidelity_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/fidelity"
	"assay.dev/assay/operator/internal/results"
)

// Profiles reduce searches, phases, faults and repetitions, too.
func TestSizeOfARichEvaluation(t *testing.T) {
	search := func(lowest int64) *v1alpha1.CapacitySearch {
		return &v1alpha1.CapacitySearch{From: lowest, To: 100}
	}
	for name, tc := range map[string]struct {
		full   func(*v1alpha1.ExperimentSpec)
		change func(*v1alpha1.Profile)
		want   string
	}{
		"nothing": {nil, func(*v1alpha1.Profile) {}, ""},
		"phases": {nil, func(p *v1alpha1.Profile) { p.Phases = []v1alpha1.LoadPhase{{For: "5s"}} },
			"clients.phases[0].for: 5s in place of none"},
		"faults": {func(s *v1alpha1.ExperimentSpec) {
			s.Faults = []v1alpha1.Fault{{Name: "a", At: "1s"}, {Name: "b", At: "2s"}}
		},
			func(p *v1alpha1.Profile) { p.Faults = []v1alpha1.Fault{{Name: "b", At: "3s"}, {Name: "a", At: "1s"}} }, "faults.b.at: 3s in place of 2s"},
		"an axis that is added": {nil, func(p *v1alpha1.Profile) { p.Sweep = []v1alpha1.Axis{{Axis: "f", Values: values("1")}} }, "axis f is added"},
		"a search": {func(s *v1alpha1.ExperimentSpec) { s.Sweep[0].Values, s.Sweep[0].Search = nil, search(1) },
			func(p *v1alpha1.Profile) { p.Sweep = []v1alpha1.Axis{{Axis: "clients", Search: search(5)}} }, "axis clients, search.from: 5 in place of 1"},
		"values in place of a search": {func(s *v1alpha1.ExperimentSpec) { s.Sweep[0].Values, s.Sweep[0].Search = nil, search(1) },
			func(p *v1alpha1.Profile) { p.Sweep = []v1alpha1.Axis{{Axis: "clients", Values: values("5")}} }, "axis clients, search.from: none in place of 1; axis clients, search.precision: none in place of 5%; axis clients, search.to: none in place of 100; axis clients, search.trials: none in place of 60"},
		"a schedule that is not read":  {func(s *v1alpha1.ExperimentSpec) { s.Schedule.Drain = "a" }, func(p *v1alpha1.Profile) { p.Schedule = &v1alpha1.Schedule{Measure: "60s", Drain: "b"} }, "schedule.drain: b in place of a"},
		"a schedule written otherwise": {nil, func(p *v1alpha1.Profile) { p.Schedule = &v1alpha1.Schedule{Measure: "1m"} }, ""},
		"at most as often":             {func(s *v1alpha1.ExperimentSpec) { s.Repetitions = v1alpha1.Repetitions{Min: 3, Max: new(int32(9))} }, func(p *v1alpha1.Profile) { p.Repetitions = &v1alpha1.Repetitions{Min: 3, Max: new(int32(9))} }, ""},
		"at most less often": {func(s *v1alpha1.ExperimentSpec) { s.Repetitions = v1alpha1.Repetitions{Min: 3, Max: new(int32(9))} },
			func(p *v1alpha1.Profile) { p.Repetitions = &v1alpha1.Repetitions{Min: 3, Max: new(int32(8))} }, "repetitions: at most 8 in place of 9"},
		"at most more often": {func(s *v1alpha1.ExperimentSpec) { s.Repetitions = v1alpha1.Repetitions{Min: 3, Max: new(int32(9))} }, func(p *v1alpha1.Profile) { p.Repetitions = &v1alpha1.Repetitions{Min: 3, Max: new(int32(10))} }, ""},
		"until another": {until(9), func(p *v1alpha1.Profile) {
			p.Repetitions = &v1alpha1.Repetitions{Min: 3, Max: new(int32(9)), Until: &v1alpha1.StoppingRule{}}
		}, "repetitions: until is another"},
		"until the same": {until(9), func(p *v1alpha1.Profile) {
			p.Repetitions = &v1alpha1.Repetitions{Min: 3, Max: new(int32(9)), Until: &v1alpha1.StoppingRule{RelativeCI: "5%"}}
		}, ""},
		"until another, always as often": {until(9), func(p *v1alpha1.Profile) { p.Repetitions = &v1alpha1.Repetitions{Min: 9} }, ""},
		"until nothing":                  {until(4), func(p *v1alpha1.Profile) { p.Repetitions = &v1alpha1.Repetitions{Min: 3, Max: new(int32(4))} }, "repetitions: until is another"},
	} {
		s := spec("hats")
		if tc.full != nil {
			tc.full(&s)
		}
		p := v1alpha1.Profile{Name: "smoke"}
		tc.change(&p)
		s.Profile, s.Profiles = "smoke", []v1alpha1.Profile{p}
		f := fidelity.Describe(s, systems)
		if got := strings.Join(f.Changes, "; "); got != tc.want || (f.Size == fidelity.Reduced) != (tc.want != "") {
			t.Errorf("%s: size %s, changes %q; want %q", name, f.Size, got, tc.want)
		}
	}
}

func until(most int32) func(*v1alpha1.ExperimentSpec) {
	return func(s *v1alpha1.ExperimentSpec) {
		s.Repetitions = v1alpha1.Repetitions{Min: 3, Max: &most, Until: &v1alpha1.StoppingRule{RelativeCI: "5%"}}
	}
}

// A parameter of a System or of the workload is not one of the experiment.
func TestParametersOfSystemsAndWorkload(t *testing.T) {
	s := spec("hats")
	s.Systems[0].Parameters = map[string]v1alpha1.Value{"sync": v1alpha1.NewValue("true")}
	s.Workload.Parameters = map[string]v1alpha1.Value{"keys": v1alpha1.NewValue("100")}
	s.Profile = "smoke"
	s.Profiles = []v1alpha1.Profile{{Name: "smoke", Parameters: map[string]v1alpha1.Value{"sync": v1alpha1.NewValue("false"), "keys": v1alpha1.NewValue("5")}}}
	want := "parameters.hats.sync: none in place of true; parameters.keys: 5 in place of none; parameters.sync: false in place of none; parameters.workload.keys: none in place of 100"
	if got := strings.Join(fidelity.Describe(s, systems).Changes, "; "); got != want {
		t.Errorf("changes %q, want %q", got, want)
	}
}

func TestWordsForWhatRan(t *testing.T) {
	standIn := results.SystemFidelity{System: "c", Program: "Cassandra", Version: "5", Class: fidelity.StandIn, InPlaceOf: "HATS"}
	other := results.SystemFidelity{System: "e", Program: "etcd", Class: fidelity.StandIn, InPlaceOf: "HATS"}
	for name, tc := range map[string]struct {
		f                           results.Fidelity
		distance, programs, summary string
	}{
		"at full size":    {results.Fidelity{Size: fidelity.Full, Class: fidelity.StandIn, Systems: []results.SystemFidelity{standIn}}, "Cassandra 5 in place of HATS; a statement of profile p", "Cassandra 5", "Cassandra 5 in place of HATS; profile p, at full size"},
		"at reduced size": {results.Fidelity{Size: fidelity.Reduced, Class: fidelity.StandIn, Systems: []results.SystemFidelity{standIn, standIn}}, "Cassandra 5 in place of HATS; reduced size (profile p)", "Cassandra 5", "Cassandra 5 in place of HATS; profile p, at reduced size"},
		"elsewhere": {results.Fidelity{Size: fidelity.Unknown, Class: fidelity.StandIn, Systems: []results.SystemFidelity{standIn, other}},
			"Cassandra 5 in place of HATS; etcd in place of HATS; measured elsewhere, at a size that Assay does not know", "Cassandra 5 and etcd", "Cassandra 5 and etcd in place of HATS; profile p, at a size that Assay does not know"},
		"of no source": {results.Fidelity{Size: fidelity.Reduced, Systems: []results.SystemFidelity{{System: "e", Program: "etcd"}}}, "a statement of profile p", "etcd", "etcd; profile p, at reduced size"},
	} {
		if got := fidelity.Distance(&tc.f, []string{"c", "e"}, "p", true); got != tc.distance {
			t.Errorf("%s: the distance is %q, want %q", name, got, tc.distance)
		}
		if got := fidelity.Programs(&tc.f); got != tc.programs {
			t.Errorf("%s: the programs are %q, want %q", name, got, tc.programs)
		}
		if got := fidelity.Summary(&tc.f, "p"); got != tc.summary {
			t.Errorf("%s: in all it is %q, want %q", name, got, tc.summary)
		}
	}
	alone := results.Fidelity{Size: fidelity.Full, Systems: []results.SystemFidelity{{System: "e", Program: "etcd"}}}
	if got := fidelity.Summary(&alone, ""); got != "etcd; at full size" {
		t.Errorf("without a profile it is %q", got)
	}
}

// A sentence names three of the programs that do not run, and counts the others.
func TestProgramsThatDoNotRun(t *testing.T) {
	for n, want := range map[int]string{1: "Cassandra 5 in place of a", 3: "Cassandra 5 in place of a, b and c", 4: "Cassandra 5 in place of a, b, c and 1 more", 6: "Cassandra 5 in place of a, b, c and 3 more"} {
		s := spec("cassandra")
		s.Source.Systems = nil
		for _, name := range "abcdef"[:n] {
			s.Source.Systems = append(s.Source.Systems, v1alpha1.SourceSystem{Name: string(name)})
		}
		if got := fidelity.Ran(fidelity.Describe(s, systems)); got != want {
			t.Errorf("of %d programs, none of which runs: %q, want %q", n, got, want)
		}
	}
	// An experiment is as far from its source as the furthest of its systems, in either order.
	for _, order := range [][]string{{"cassandra", "hats"}, {"hats", "hats-go", "cassandra"}, {"hats-go", "hats"}, {"hats", "hats-go"}} {
		want := fidelity.Reimplementation
		if strings.Contains(strings.Join(order, " "), "cassandra") {
			want = fidelity.StandIn
		}
		if got := fidelity.Describe(spec(order...), systems).Class; got != want {
			t.Errorf("%v: class %s, want %s", order, got, want)
		}
	}
	s := spec("postgres")
	s.Source.Systems[2].Version = ""
	if got := fidelity.Describe(s, systems).Systems[0].SourceVersion; got != "" {
		t.Errorf("the source tells no version, and it is %q", got)
	}
	s.Source.Systems[2].Version = "15"
	if got := fidelity.Describe(s, systems).Systems[0].SourceVersion; got != "" {
		t.Errorf("the source has the same version, and %q is said", got)
	}
}

func TestClaimsThatAreRewritten(t *testing.T) {
	one, same, two := v1alpha1.NewValue("1"), v1alpha1.NewValue("1"), v1alpha1.NewValue("2")
	claim := v1alpha1.Claim{Statement: "s", Expr: "e", Within: "1%", Reported: &one, Expected: &one}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Claim)
		want   bool
	}{
		"nothing": {func(c *v1alpha1.Claim) { c.Reported, c.Expected = &same, &same }, false}, "the statement": {func(c *v1alpha1.Claim) { c.Statement = "t" }, true},
		"the expression": {func(c *v1alpha1.Claim) { c.Expr = "f" }, true}, "within": {func(c *v1alpha1.Claim) { c.Within = "2%" }, true},
		"reported": {func(c *v1alpha1.Claim) { c.Reported = &two }, true}, "expected": {func(c *v1alpha1.Claim) { c.Expected = &two }, true},
		"nothing reported": {func(c *v1alpha1.Claim) { c.Reported = nil }, true}, "nothing expected": {func(c *v1alpha1.Claim) { c.Expected = nil }, true},
	} {
		changed := claim
		tc.change(&changed)
		if fidelity.Rewritten(claim, changed) != tc.want || fidelity.Rewritten(changed, claim) != tc.want {
			t.Errorf("%s differs: it is rewritten: %t", name, !tc.want)
		}
	}
	plain := v1alpha1.Claim{}
	if fidelity.Rewritten(plain, plain) || !fidelity.Rewritten(plain, v1alpha1.Claim{Reported: &one}) {
		t.Error("claims without numbers are compared wrongly")
	}
}
