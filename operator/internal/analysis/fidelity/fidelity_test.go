package fidelity_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/fidelity"
	"assay.dev/assay/operator/internal/results"
)

func program(name, version, reimplements string) v1alpha1.SystemSpec {
	return v1alpha1.SystemSpec{Program: &v1alpha1.Program{Name: name, Version: version, Reimplements: reimplements}}
}

var systems = map[string]v1alpha1.SystemSpec{
	"hats": program("HATS", "", ""), "cassandra": program("Cassandra", "5", ""), "hats-go": program("assay-hats", "1", "HATS"),
	"postgres": program("PostgreSQL", "15", ""), "unknown": {},
}

func spec(names ...string) v1alpha1.ExperimentSpec {
	s := v1alpha1.ExperimentSpec{
		Source:   &v1alpha1.Source{Title: "A paper", Systems: []v1alpha1.SourceSystem{{Name: "HATS"}, {Name: "mLSM"}, {Name: "PostgreSQL", Version: "12"}}},
		Schedule: v1alpha1.Schedule{Measure: "60s"},
		Sweep:    []v1alpha1.Axis{{Axis: "clients", Values: values("1", "10", "100")}, {Axis: "variant", Points: []v1alpha1.AxisPoint{{Name: "a"}, {Name: "b"}}}},
	}
	for _, n := range names {
		s.Systems = append(s.Systems, v1alpha1.SystemReference{Name: n})
	}
	return s
}

func values(texts ...string) []v1alpha1.Value {
	var all []v1alpha1.Value
	for _, t := range texts {
		all = append(all, v1alpha1.NewValue(t))
	}
	return all
}

// The program of each System, and the programs that the source measured, decide what ran.
func TestWhatRan(t *testing.T) {
	for name, tc := range map[string]struct {
		systems  []string
		change   func(*v1alpha1.ExperimentSpec)
		class    string
		distance string
		ran      string
	}{
		"the source's own":  {[]string{"hats"}, nil, fidelity.Original, "", "HATS, the source's own program"},
		"another version":   {[]string{"postgres"}, nil, fidelity.Original, "PostgreSQL 15 where the source has 12", "PostgreSQL 15, the source's own program (the source measured 12)"},
		"re-implemented":    {[]string{"hats-go"}, nil, fidelity.Reimplementation, "assay-hats 1, a re-implementation of HATS", "assay-hats 1, a re-implementation of HATS"},
		"another program":   {[]string{"cassandra"}, nil, fidelity.StandIn, "Cassandra 5 in place of HATS, mLSM and PostgreSQL", "Cassandra 5 in place of HATS, mLSM and PostgreSQL"},
		"beside the own":    {[]string{"hats", "cassandra"}, nil, fidelity.StandIn, "Cassandra 5 in place of mLSM and PostgreSQL", "Cassandra 5 in place of mLSM and PostgreSQL; HATS, the source's own program"},
		"unknown program":   {[]string{"unknown"}, nil, fidelity.StandIn, "System unknown in place of HATS, mLSM and PostgreSQL", "System unknown in place of HATS, mLSM and PostgreSQL"},
		"no such System":    {[]string{"gone"}, nil, fidelity.StandIn, "System gone in place of HATS, mLSM and PostgreSQL", "System gone in place of HATS, mLSM and PostgreSQL"},
		"source of unknown": {[]string{"hats"}, func(s *v1alpha1.ExperimentSpec) { s.Source.Systems = nil }, fidelity.StandIn, "HATS in place of what the source measured", "HATS in place of what the source measured"},
		"no source":         {[]string{"cassandra"}, func(s *v1alpha1.ExperimentSpec) { s.Source = nil }, "", "", "Cassandra 5"},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec(tc.systems...)
			if tc.change != nil {
				tc.change(&s)
			}
			f := fidelity.Describe(s, systems)
			if f.Class != tc.class || f.Size != fidelity.Full {
				t.Errorf("class %q, size %q; want %q at full size", f.Class, f.Size, tc.class)
			}
			if got := fidelity.Distance(f, tc.systems, "", false); got != tc.distance {
				t.Errorf("distance %q, want %q", got, tc.distance)
			}
			if got := fidelity.Ran(f); got != tc.ran {
				t.Errorf("ran %q, want %q", got, tc.ran)
			}
		})
	}
}

// Each change of a profile that takes something away from the full evaluation reduces it.
func TestSize(t *testing.T) {
	wan := v1alpha1.Network{Profile: "wan"}
	for name, tc := range map[string]struct {
		profile v1alpha1.Profile
		reduced bool
		change  string
	}{
		"nothing":             {v1alpha1.Profile{}, false, ""},
		"other machines":      {v1alpha1.Profile{Placement: &v1alpha1.Placement{Replicas: "servers"}}, false, ""},
		"looser tolerances":   {v1alpha1.Profile{Tolerances: &v1alpha1.Tolerances{Steal: "40%"}}, false, "tolerances.steal: 40% in place of 1%"},
		"disturbances":        {v1alpha1.Profile{Disturbances: &v1alpha1.Disturbances{IdleThreshold: "90%"}}, false, ""},
		"fewer points":        {v1alpha1.Profile{Sweep: []v1alpha1.Axis{{Axis: "clients", Values: values("1", "10")}}}, true, "axis clients: 2 of 3 values (1, 10)"},
		"other points":        {v1alpha1.Profile{Sweep: []v1alpha1.Axis{{Axis: "clients", Values: values("2")}}}, true, "axis clients: 2 in place of 1, 10, 100"},
		"more points":         {v1alpha1.Profile{Sweep: []v1alpha1.Axis{{Axis: "clients", Values: values("1", "10", "50", "100")}}}, false, ""},
		"a point with less":   {v1alpha1.Profile{Sweep: []v1alpha1.Axis{{Axis: "variant", Points: []v1alpha1.AxisPoint{{Name: "a", Clients: new(int32(1))}, {Name: "b"}}}}}, true, "axis variant, point a.clients: 1 in place of none"},
		"topology":            {v1alpha1.Profile{Topology: &v1alpha1.Topology{F: 1}}, true, "topology.f: 1 in place of 0"},
		"network":             {v1alpha1.Profile{Network: &wan}, true, "network.profile: wan in place of lan"},
		"client nodes":        {v1alpha1.Profile{Nodes: new(int32(3))}, true, "clients.nodes: 3 in place of 1"},
		"think time":          {v1alpha1.Profile{ThinkTime: new(v1alpha1.Duration("30ms"))}, true, "clients.thinkTime: 30ms in place of 0s"},
		"parameters":          {v1alpha1.Profile{Parameters: map[string]v1alpha1.Value{"fsync": v1alpha1.NewValue("false")}}, true, "parameters.fsync: false in place of none"},
		"shorter":             {v1alpha1.Profile{Schedule: &v1alpha1.Schedule{Measure: "20s"}}, true, "schedule.measure: 20s in place of 60s"},
		"longer":              {v1alpha1.Profile{Schedule: &v1alpha1.Schedule{Measure: "90s"}}, false, ""},
		"fewer repetitions":   {v1alpha1.Profile{Repetitions: &v1alpha1.Repetitions{Min: 2}}, true, "repetitions: 2 in place of 3"},
		"more repetitions":    {v1alpha1.Profile{Repetitions: &v1alpha1.Repetitions{Min: 5}}, false, ""},
		"how delays are made": {v1alpha1.Profile{Network: &v1alpha1.Network{Profile: "lan", Backend: "TC"}}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec("hats")
			tc.profile.Name, s.Profile = "smoke", "smoke"
			s.Profiles = []v1alpha1.Profile{tc.profile}
			f := fidelity.Describe(s, systems)
			if (f.Size == fidelity.Reduced) != tc.reduced {
				t.Errorf("size %s, want reduced: %t", f.Size, tc.reduced)
			}
			if got := strings.Join(f.Changes, "; "); got != tc.change {
				t.Errorf("changes %q, want %q", got, tc.change)
			}
		})
	}
}

// The word for each combination of facts. Reproduced takes the source's own program at full size,
// and Replicated a re-implementation at full size.
func TestWord(t *testing.T) {
	for _, basis := range []v1alpha1.ClaimBasis{v1alpha1.BasisSource, v1alpha1.BasisOwn} {
		for _, class := range []string{"", fidelity.Original, fidelity.Reimplementation, fidelity.StandIn} {
			for _, size := range []string{fidelity.Full, fidelity.Reduced} {
				for _, rewritten := range []bool{false, true} {
					want := [2]v1alpha1.Verdict{v1alpha1.VerdictConsistent, v1alpha1.VerdictContradicted}
					switch {
					case basis == v1alpha1.BasisOwn:
						want = [2]v1alpha1.Verdict{v1alpha1.VerdictHolds, v1alpha1.VerdictFails}
					case size == fidelity.Reduced || rewritten:
					case class == fidelity.Original:
						want = [2]v1alpha1.Verdict{v1alpha1.VerdictReproduced, v1alpha1.VerdictNotReproduced}
					case class == fidelity.Reimplementation:
						want = [2]v1alpha1.Verdict{v1alpha1.VerdictReplicated, v1alpha1.VerdictNotReplicated}
					}
					facts := fidelity.Facts{Basis: basis, Class: class, Size: size, Rewritten: rewritten}
					got := [2]v1alpha1.Verdict{fidelity.Word(v1alpha1.VerdictHolds, facts), fidelity.Word(v1alpha1.VerdictFails, facts)}
					if got != want {
						t.Errorf("%+v: %v, want %v", facts, got, want)
					}
					for _, open := range []v1alpha1.Verdict{v1alpha1.VerdictInconclusive, v1alpha1.VerdictNotEvaluated} {
						if got := fidelity.Word(open, facts); got != open {
							t.Errorf("%+v: %s became %s", facts, open, got)
						}
					}
				}
			}
		}
	}
}

// A claim is judged by the systems that it reads, in the profile's words, with the full
// evaluation's claim beside them.
func TestSay(t *testing.T) {
	s := spec("hats", "cassandra")
	reported, expected := v1alpha1.NewValue("2"), v1alpha1.NewValue("3")
	s.Claims = []v1alpha1.Claim{
		{Name: "own program", Statement: "HATS is fast.", Expr: "throughput(system='hats', clients=1, variant='a') > 1"},
		{Name: "both", Statement: "HATS is faster.", Expr: "throughput(system='hats', clients=1, variant='a') > throughput(system='cassandra', clients=1, variant='a')"},
		{Name: "any", Statement: "Some are fast.", Expr: "max_throughput() > 1"},
		{Name: "rewritten", Statement: "HATS is twice as fast.", Expr: "max_throughput(system='hats')", Reported: &reported, Within: "10%"},
		{Name: "ours", Statement: "We think so.", Expr: "max_throughput(system='hats')", Expected: &expected, Within: "10%"},
		{Name: "said to be ours", Statement: "We think so.", Basis: v1alpha1.BasisOwn, Expr: "max_throughput(system='hats') > 1"},
		{Name: "skipped", Statement: "HATS peaks.", Expr: "max_throughput(system='hats') > 1000"},
	}
	s.Profile = "testbed"
	s.Profiles = []v1alpha1.Profile{{Name: "laptop", Claims: []v1alpha1.ProfileClaim{
		{Name: "rewritten", Statement: "HATS is faster.", Within: "60%", WiderBecause: "the network is another"},
	}}, {Name: "testbed", Claims: []v1alpha1.ProfileClaim{
		{Name: "rewritten", Statement: "HATS is faster by half or more.", Within: "30%", WiderBecause: "the disks are others"}, {Name: "skipped", Skip: "no peak is reached"},
	}}}
	f := fidelity.Describe(s, systems)
	var judged []results.ClaimResult
	for _, c := range s.Claims {
		judged = append(judged, results.ClaimResult{Name: c.Name, Verdict: string(v1alpha1.VerdictHolds)})
	}
	fidelity.Say(s, f, judged)
	got := map[string]string{}
	for _, r := range judged {
		got[r.Name] = strings.Trim(r.Verdict+" | "+r.Distance, " |")
	}
	standIn := "Consistent | Cassandra 5 in place of mLSM and PostgreSQL"
	want := map[string]string{
		"own program": "Reproduced", "both": standIn, "any": standIn, "rewritten": "Consistent | a statement of profile testbed", "ours": "Holds", "said to be ours": "Holds", "skipped": "NotEvaluated",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	rewritten, skipped := judged[3], judged[6]
	if rewritten.Full == nil || rewritten.Full.Within != "10%" || rewritten.Full.Statement != "HATS is twice as fast." || rewritten.Full.WiderBecause != "the disks are others" {
		t.Errorf("what the full evaluation says: %+v", rewritten.Full)
	}
	if skipped.Skipped != "no peak is reached" || !strings.Contains(skipped.Message, "profile testbed skips it") {
		t.Errorf("a claim that is skipped: %+v", skipped)
	}
	if slices.ContainsFunc(judged, func(r results.ClaimResult) bool { return r.Basis == "" }) {
		t.Error("a claim does not say whose it is")
	}
}
