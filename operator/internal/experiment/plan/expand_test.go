package plan_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/builders"
)

var valueText = cmp.AllowUnexported(v1alpha1.Value{})

// failover is the experiment that most tests change. It has two axes. One has named points, and one
// of these a fault.
func failover() *builders.ExperimentBuilder {
	return builders.Experiment("failure-fp").System("basil").
		Values("clients", 10, 20).
		Points("variant",
			v1alpha1.AxisPoint{Name: "ideal"},
			v1alpha1.AxisPoint{Name: "nofp", Parameters: map[string]v1alpha1.Value{"fastPath": builders.Value(false)}, Faults: []string{"crash"}}).
		NodeKill("crash", "-2s", 5)
}

func TestExpandPoints(t *testing.T) {
	p := expand(t, failover())
	wantAxes := []results.Axis{{Name: "clients", Values: []string{"10", "20"}}, {Name: "variant", Values: []string{"ideal", "nofp"}}}
	if diff := cmp.Diff(wantAxes, p.Axes); diff != "" {
		t.Errorf("axes (-want +got):\n%s", diff)
	}
	var got []string
	for i, point := range p.Points {
		s := point.Template
		if int(s.Point.Index) != i {
			t.Errorf("point %d has index %d", i, s.Point.Index)
		}
		got = append(got, fmt.Sprintf("%v clients=%d fastPath=%s faults=%d", s.Point.Coordinates, s.Clients.Count, s.Parameters["fastPath"], len(s.Faults)))
	}
	want := []string{
		"map[clients:10 variant:ideal] clients=10 fastPath=true faults=0",
		"map[clients:10 variant:nofp] clients=10 fastPath=false faults=1",
		"map[clients:20 variant:ideal] clients=20 fastPath=true faults=0",
		"map[clients:20 variant:nofp] clients=20 fastPath=false faults=1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	first := p.Points[0].Template
	if diff := cmp.Diff([]v1alpha1.Region{{Name: "local", Replicas: 6}}, first.Topology.Regions); diff != "" {
		t.Errorf("regions (-want +got):\n%s", diff)
	}
	wantParameters := map[string]v1alpha1.Value{"fastPath": builders.Value(true), "fastPathTimeout": builders.Value("4ms"),
		"batch": builders.Value(1), "distribution": builders.Value("uniform")}
	if diff := cmp.Diff(wantParameters, first.Parameters, valueText); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
}

func TestExpandComparesSystems(t *testing.T) {
	p := expand(t, builders.Experiment("e").System("basil").System("tapir").Values("f", 1, 2))
	var got []string
	for _, point := range p.Points {
		got = append(got, fmt.Sprintf("%s f=%s: %d", point.Template.System.Name, point.Template.Point.Coordinates["f"], point.Replicas))
	}
	want := []string{"basil f=1: 6", "basil f=2: 11", "tapir f=1: 3", "tapir f=2: 5"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
}

// Systems that need different numbers of replicas for the same f are compared in the same regions.
func TestExpandRegionsOfEachSystem(t *testing.T) {
	p := expand(t, builders.Experiment("e").System("basil").System("tapir").Set(func(s *v1alpha1.ExperimentSpec) {
		s.Topology.Regions = []v1alpha1.Region{{Name: "east", Replicas: 3}, {Name: "west", Replicas: 3}}
		s.Systems[1].Regions = []v1alpha1.Region{{Name: "east", Replicas: 2}, {Name: "west", Replicas: 1}}
	}))
	var got []string
	for _, point := range p.Points {
		got = append(got, fmt.Sprintf("%s %v", point.Template.System.Name, point.Template.Topology.Regions))
	}
	want := []string{"basil [{east 3} {west 3}]", "tapir [{east 2} {west 1}]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("regions (-want +got):\n%s", diff)
	}
}

// A trial gets the settings of its point, and nothing else changes.
func TestExpandClientsRateAndShards(t *testing.T) {
	p := expand(t, builders.Experiment("e").System("tapir").Values("rate", 100).Values("shards", 1, 2).
		Points("size", v1alpha1.AxisPoint{Name: "small"}, v1alpha1.AxisPoint{Name: "large", Clients: ptr(int32(50))}).
		Set(func(s *v1alpha1.ExperimentSpec) { s.Clients.Loop, s.Clients.Count = v1alpha1.LoopOpen, 5 }))
	var got []string
	for _, point := range p.Points {
		c := point.Template.Clients
		got = append(got, fmt.Sprintf("rate=%d shards=%d clients=%d %s", *c.Rate, point.Template.Topology.Shards, c.Count, *c.Arrivals))
	}
	want := []string{"rate=100 shards=1 clients=5 Poisson", "rate=100 shards=1 clients=50 Poisson",
		"rate=100 shards=2 clients=5 Poisson", "rate=100 shards=2 clients=50 Poisson"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
}

func TestParameterPrecedence(t *testing.T) {
	set := func(v int) map[string]v1alpha1.Value { return map[string]v1alpha1.Value{"batch": builders.Value(v)} }
	layers := []func(*v1alpha1.ExperimentSpec){
		func(*v1alpha1.ExperimentSpec) {}, // the System's default, 1
		func(s *v1alpha1.ExperimentSpec) { s.Parameters = set(2) },
		func(s *v1alpha1.ExperimentSpec) { s.Systems[0].Parameters = set(3) },
		func(s *v1alpha1.ExperimentSpec) { s.Workload.Parameters = set(4) },
		func(s *v1alpha1.ExperimentSpec) {
			s.Profiles = []v1alpha1.Profile{{Name: "smoke", Parameters: set(5)}}
			s.Profile = "smoke"
		},
		func(s *v1alpha1.ExperimentSpec) {
			s.Sweep = []v1alpha1.Axis{{Axis: "batch", Values: builders.Values(6)}}
		},
	}
	b := builders.Experiment("e").System("basil")
	for i, layer := range layers {
		b = b.Clone().Set(layer)
		p := expand(t, b)
		if got, want := p.Points[0].Template.Parameters["batch"].String(), fmt.Sprint(i+1); got != want {
			t.Errorf("layer %d: batch = %s, want %s", i, got, want)
		}
	}
}

func TestApplyProfile(t *testing.T) {
	within := "50%"
	exp := failover().Set(func(s *v1alpha1.ExperimentSpec) {
		s.Claims = []v1alpha1.Claim{
			{Name: "cost", Statement: "It costs.", Expr: "1", Reported: ptr(builders.Value("4ms")), Within: "25%"},
			{Name: "huge", Statement: "It is huge.", Expr: "2"},
		}
		s.Tolerances = v1alpha1.Tolerances{Steal: "2%", Throttling: "3%"}
		s.Profile = "smoke"
		s.Profiles = []v1alpha1.Profile{{
			Name: "smoke", Sweep: []v1alpha1.Axis{{Axis: "clients", Values: builders.Values(2)}},
			Schedule: &v1alpha1.Schedule{WarmUp: "2s", Measure: "5s"}, Repetitions: &v1alpha1.Repetitions{Min: 1},
			Topology: &v1alpha1.Topology{F: 2}, Nodes: func() *int32 { n := int32(2); return &n }(),
			Tolerances: &v1alpha1.Tolerances{Steal: "20%"},
			Claims:     []v1alpha1.ProfileClaim{{Name: "cost", Within: within}, {Name: "huge", Skip: "Too small."}},
		}}
	}).Obj()
	got := plan.ApplyProfile(exp.Spec)
	type sizes struct {
		Clients, Variants, Reps  int
		WarmUp, Measure, Drain   v1alpha1.Duration
		F, Shards, Nodes         int32
		Within, Expr, SkipReason string
		Steal, Throttling        v1alpha1.Percentage
	}
	want := sizes{1, 2, 1, "2s", "5s", "10s", 2, 1, 2, "50%", "1", "Too small.", "20%", "1%"}
	have := sizes{len(got.Sweep[0].Values), len(got.Sweep[1].Points), int(got.Repetitions.Min), got.Schedule.WarmUp, got.Schedule.Measure, got.Schedule.Drain,
		got.Topology.F, got.Topology.Shards, got.Clients.Nodes, got.Claims[0].Within, got.Claims[0].Expr, plan.SkippedClaims(got)["huge"], got.Tolerances.Steal, got.Tolerances.Throttling}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got, plan.ApplyProfile(got), valueText); diff != "" {
		t.Errorf("applied twice (-once +twice):\n%s", diff)
	}
	if len(exp.Spec.Sweep[0].Values) != 2 {
		t.Error("ApplyProfile changed its argument")
	}
}

// TestExpandErrors makes one mistake at a time in the valid experiment. The error must name the
// field, the value and the correct form.
func TestExpandErrors(t *testing.T) {
	profile := func(p v1alpha1.Profile) func(*v1alpha1.ExperimentSpec) {
		return func(s *v1alpha1.ExperimentSpec) {
			p.Name = "smoke"
			s.Profile = "smoke"
			s.Profiles = []v1alpha1.Profile{p}
		}
	}
	kill := func(change func(*v1alpha1.Fault)) func(*v1alpha1.ExperimentSpec) {
		return func(s *v1alpha1.ExperimentSpec) { change(&s.Faults[0]) }
	}
	tests := map[string]struct {
		change func(*v1alpha1.ExperimentSpec)
		want   []string // all in one error
	}{
		"unknown system":              {func(s *v1alpha1.ExperimentSpec) { s.Systems[0].Name = "bazil" }, []string{"spec.systems[0].name", `"bazil"`, "apply it"}},
		"unknown workload":            {func(s *v1alpha1.ExperimentSpec) { s.Workload.Name = "ecko" }, []string{"spec.workload.name", `"ecko"`, `did you mean "echo"?`}},
		"unknown parameter":           {func(s *v1alpha1.ExperimentSpec) { s.Parameters = params("fastPth", true) }, []string{"spec.parameters[fastPth]", `"true"`, `did you mean "fastPath"?`, "batch, distribution, fastPath, fastPathTimeout"}},
		"unknown parameter of point":  {func(s *v1alpha1.ExperimentSpec) { s.Sweep[1].Points[0].Parameters = params("bath", 2) }, []string{"spec.sweep[1].points[0].parameters[bath]", `"2"`, `did you mean "batch"?`}},
		"unknown parameter of system": {func(s *v1alpha1.ExperimentSpec) { s.Systems[0].Parameters = params("x", 2) }, []string{"spec.systems[0].parameters[x]", `"2"`, "there are: batch"}},
		"wrong type":                  {func(s *v1alpha1.ExperimentSpec) { s.Parameters = params("batch", "many") }, []string{"spec.parameters[batch]", `"many"`, "takes an Integer, at least 1, at most 64"}},
		"too large":                   {func(s *v1alpha1.ExperimentSpec) { s.Workload.Parameters = params("batch", 65) }, []string{"spec.workload.parameters[batch]", `"65"`, "at most 64"}},
		"not allowed":                 {func(s *v1alpha1.ExperimentSpec) { s.Parameters = params("distribution", "zipfian") }, []string{"spec.parameters[distribution]", `"zipfian"`, "one of: uniform, zipf"}},
		"not a boolean":               {func(s *v1alpha1.ExperimentSpec) { s.Parameters = params("fastPath", 1) }, []string{"spec.parameters[fastPath]", `"1"`, "true or false"}},
		"not a duration":              {func(s *v1alpha1.ExperimentSpec) { s.Parameters = params("fastPathTimeout", 4) }, []string{"spec.parameters[fastPathTimeout]", `"4"`, "such as 4ms"}},
		"profile's parameter":         {profile(v1alpha1.Profile{Parameters: params("batch", 0)}), []string{"spec.profiles[0].parameters[batch]", `"0"`, "at least 1"}},
		"negative measure":            {func(s *v1alpha1.ExperimentSpec) { s.Schedule.Measure = "-5s" }, []string{"spec.schedule.measure", `"-5s"`, "from 1s to 24h"}},
		"long warm-up":                {func(s *v1alpha1.ExperimentSpec) { s.Schedule.WarmUp = "61m" }, []string{"spec.schedule.warmUp", `"61m"`, "from 0s to 1h"}},
		"overflowing duration":        {func(s *v1alpha1.ExperimentSpec) { s.Schedule.Drain = "99999999999h" }, []string{"spec.schedule.drain", `"99999999999h"`, "duration such as"}},
		"profile's schedule":          {profile(v1alpha1.Profile{Schedule: &v1alpha1.Schedule{Measure: "1ms"}}), []string{"spec.profiles[0].schedule.measure", `"1ms"`, "from 1s"}},
		"fault on missing replica":    {kill(func(f *v1alpha1.Fault) { f.NodeKill.Target.Replicas = []int32{0, 6} }), []string{"spec.faults[0].nodeKill.target.replicas[1]", ": 6:", "5*f+1 = 6 replicas", "0 to 5"}},
		"fault on missing shard":      {kill(func(f *v1alpha1.Fault) { f.NodeKill.Target.Shards = []int32{1} }), []string{"spec.faults[0].nodeKill.target.shards[0]", ": 1:", "0 to 0"}},
		"fault in missing region":     {kill(func(f *v1alpha1.Fault) { f.NodeKill.Target.Regions = []string{"locl"} }), []string{"spec.faults[0].nodeKill.target.regions[0]", `"locl"`, `did you mean "local"?`}},
		"fault that hits nothing": {func(s *v1alpha1.ExperimentSpec) {
			s.Topology.Regions = []v1alpha1.Region{{Name: "east", Replicas: 5}, {Name: "west", Replicas: 1}}
			s.Faults[0].NodeKill.Target.Regions = []string{"east"}
		}, []string{"spec.faults[0].nodeKill.target", "replicas [5], regions [east]", "east has 0 to 4, west has 5 to 5"}},
		"fault before the start":   {kill(func(f *v1alpha1.Fault) { f.At = "-6s" }), []string{"spec.faults[0].at", `"-6s"`, "from -5s", "to before 22s"}},
		"fault after the end":      {kill(func(f *v1alpha1.Fault) { f.At = "22s" }), []string{"spec.faults[0].at", `"22s"`, "from -5s"}},
		"fault for no time":        {kill(func(f *v1alpha1.Fault) { f.For = duration("0s") }), []string{"spec.faults[0].for", `"0s"`, "more than 0 and at most 34s"}},
		"fault for too long":       {kill(func(f *v1alpha1.Fault) { f.For = duration("35s") }), []string{"spec.faults[0].for", `"35s"`, "at most 34s"}},
		"fault that does nothing":  {kill(func(f *v1alpha1.Fault) { f.NodeKill = nil }), []string{"spec.faults[0]", `"crash"`, "set exactly one of nodeKill"}},
		"unknown fault in a point": {func(s *v1alpha1.ExperimentSpec) { s.Sweep[1].Points[1].Faults = []string{"crsh"} }, []string{"spec.sweep[1].points[1].faults[0]", `"crsh"`, `did you mean "crash"?`}},
		"faults that overlap": {func(s *v1alpha1.ExperimentSpec) {
			again := *s.Faults[0].DeepCopy()
			again.Name, again.At, again.EveryPoint = "again", "3s", true
			s.Faults = append(s.Faults, again)
		}, []string{"spec.faults[1]", `"again"`, `fault "crash"`, "choose another replica"}},
		"unknown axis":               {func(s *v1alpha1.ExperimentSpec) { s.Sweep[0].Axis = "client" }, []string{"spec.sweep[0].axis", `"client"`, `did you mean "clients"?`, "rate, shards"}},
		"axis of a taken name":       {func(s *v1alpha1.ExperimentSpec) { s.Sweep[0].Axis = "system" }, []string{"spec.sweep[0].axis", `"system"`, "is taken"}},
		"axis twice":                 {func(s *v1alpha1.ExperimentSpec) { s.Sweep[1].Axis = "clients" }, []string{"spec.sweep[1].axis", "Duplicate", `"clients"`}},
		"value twice":                {func(s *v1alpha1.ExperimentSpec) { s.Sweep[0].Values = builders.Values(10, "010") }, []string{"spec.sweep[0].values[1]", "Duplicate", `"010"`}},
		"axis value of a wrong type": {func(s *v1alpha1.ExperimentSpec) { s.Sweep[0].Values = builders.Values(0) }, []string{"spec.sweep[0].values[0]", `"0"`, "from 1 to 100000"}},
		"parameter set twice": {func(s *v1alpha1.ExperimentSpec) {
			s.Sweep = append(s.Sweep, v1alpha1.Axis{Axis: "fastPath", Values: builders.Values(true)})
		}, []string{"spec.sweep[2].values[0]", `"true"`, `axis "variant" sets too`}},
		"unbounded sweep": {func(s *v1alpha1.ExperimentSpec) {
			s.Sweep[0].Values = manyValues(64)
			s.Sweep = append(s.Sweep, v1alpha1.Axis{Axis: "batch", Values: manyValues(64)})
		}, []string{"spec.sweep", "clients (64) x variant (2) x batch (64)", "more than 1024 points"}},
		"more numbers than a ConfigMap holds": {func(s *v1alpha1.ExperimentSpec) {
			s.Sweep[0].Values = manyValues(500)
			for i := range 8 {
				s.Measurements = append(s.Measurements, v1alpha1.Measurement{Name: fmt.Sprintf("m%d", i), Query: "up"})
			}
		}, []string{"spec.measurements", "Too many: 8", "at most 7"}},
		"too many trials": {func(s *v1alpha1.ExperimentSpec) {
			s.Sweep[0].Values = manyValues(60)
			s.Repetitions.Min = 100
		}, []string{"spec.repetitions.min", ": 100:", "120 points make 12000 trials", "at most 83 repetitions"}},
		"regions that do not add up": {func(s *v1alpha1.ExperimentSpec) {
			s.Topology.Regions = []v1alpha1.Region{{Name: "east", Replicas: 3}, {Name: "west", Replicas: 2}}
		}, []string{"spec.topology.regions", `"5 replicas"`, "must add up to 6"}},
		"a system's own regions that do not add up": {func(s *v1alpha1.ExperimentSpec) {
			s.Systems[0].Regions = []v1alpha1.Region{{Name: "east", Replicas: 3}}
		}, []string{"spec.systems[0].regions", `"3 replicas"`, "must add up to 6"}},
		"too many replicas":          {func(s *v1alpha1.ExperimentSpec) { s.Topology.F, s.Topology.Shards = 33, 64 }, []string{"spec.topology.shards", ": 64:", "at most 1000"}},
		"open loop without a rate":   {func(s *v1alpha1.ExperimentSpec) { s.Clients.Loop = v1alpha1.LoopOpen }, []string{"spec.clients.rate", "requests per second", `axis "rate"`}},
		"closed loop with a rate":    {func(s *v1alpha1.ExperimentSpec) { s.Clients.Rate = ptr(int64(7)) }, []string{"spec.clients.rate", ": 7:", "set loop: Open"}},
		"rate axis of a closed loop": {func(s *v1alpha1.ExperimentSpec) { s.Sweep[0].Axis = "rate" }, []string{"spec.sweep[0].axis", `"rate"`, "loop: Open"}},
		"fewer clients than pods":    {func(s *v1alpha1.ExperimentSpec) { s.Clients.Nodes = 15 }, []string{"spec.sweep[0].values[0]", ": 10:", "15 client pods"}},
		"backoff beyond its limit":   {func(s *v1alpha1.ExperimentSpec) { s.Clients.Retry.Backoff = "1s" }, []string{"spec.clients.retry.maxBackoff", `"300ms"`, "at least retry.backoff, 1s"}},
		"long thoughts":              {func(s *v1alpha1.ExperimentSpec) { s.Clients.ThinkTime = "11m" }, []string{"spec.clients.thinkTime", `"11m"`, "from 0s to 10m"}},
		"open loop that thinks": {func(s *v1alpha1.ExperimentSpec) {
			s.Clients.Loop, s.Clients.Rate, s.Clients.ThinkTime = v1alpha1.LoopOpen, ptr(int64(7)), "1s"
		}, []string{"spec.clients.thinkTime", `"1s"`, "set loop: Closed"}},
		"short timeout":              {func(s *v1alpha1.ExperimentSpec) { s.Clients.Timeout = "1us" }, []string{"spec.clients.timeout", `"1us"`, "from 1ms to 10m"}},
		"no tolerance":               {func(s *v1alpha1.ExperimentSpec) { s.Tolerances.StartSpread = "0s" }, []string{"spec.tolerances.startSpread", `"0s"`, "from 1µs"}},
		"unknown profile":            {func(s *v1alpha1.ExperimentSpec) { s.Profile = "smoke" }, []string{"spec.profile", `"smoke"`, "there are none"}},
		"profile's tolerance":        {profile(v1alpha1.Profile{Tolerances: &v1alpha1.Tolerances{Steal: "101%"}}), []string{"spec.profiles[0].tolerances.steal", `"101%"`, "0% to 100%"}},
		"profile with another axis":  {profile(v1alpha1.Profile{Sweep: []v1alpha1.Axis{{Axis: "varian", Values: builders.Values(1)}}}), []string{"spec.profiles[0].sweep[0].axis", `"varian"`, `did you mean "variant"?`}},
		"profile with another claim": {profile(v1alpha1.Profile{Claims: []v1alpha1.ProfileClaim{{Name: "x", Skip: "s"}}}), []string{"spec.profiles[0].claims[0].name", `"x"`, "there are none"}},
		"reported without within": {func(s *v1alpha1.ExperimentSpec) {
			s.Claims = []v1alpha1.Claim{{Name: "c", Expr: "x", Reported: ptr(builders.Value("4ms"))}}
		}, []string{"spec.claims[0].within", "Required", "reports 4ms", "such as 25%"}},
		"within without reported": {func(s *v1alpha1.ExperimentSpec) {
			s.Claims = []v1alpha1.Claim{{Name: "c", Expr: "x", Within: "25%"}}
		}, []string{"spec.claims[0].reported", "Required", "tolerance 25%", "such as 4.1ms"}},
		"profile that changes nothing of a claim": {func(s *v1alpha1.ExperimentSpec) {
			s.Claims = []v1alpha1.Claim{{Name: "c", Expr: "x"}}
			profile(v1alpha1.Profile{Claims: []v1alpha1.ProfileClaim{{Name: "c"}}})(s)
		}, []string{"spec.profiles[0].claims[0]", `claim "c"`, "set skip"}},
		"reported along no axis": {func(s *v1alpha1.ExperimentSpec) {
			s.Reported = []v1alpha1.ReportedSeries{{Name: "r", Axis: "client", Unit: "ms"}}
		}, []string{"spec.reported[0].axis", `"client"`, `did you mean "clients"?`}},
		"reported at no axis": {func(s *v1alpha1.ExperimentSpec) {
			s.Reported = []v1alpha1.ReportedSeries{{Name: "r", Axis: "clients", Unit: "ms", At: params("kind", "ideal")}}
		}, []string{"spec.reported[0].at[kind]", `"ideal"`, "clients, variant"}},
		"reported measurement that does not exist": {func(s *v1alpha1.ExperimentSpec) {
			s.Measurements = []v1alpha1.Measurement{{Name: "disk", Counter: "diskMicros", Unit: "us"}}
			s.Reported = []v1alpha1.ReportedSeries{{Name: "r", Axis: "clients", Metric: "Measurement", Measurement: "disc", Unit: "us"}}
		}, []string{"spec.reported[0].measurement", `"disc"`, `did you mean "disk"?`}},
		"reported measurement in another unit": {func(s *v1alpha1.ExperimentSpec) {
			s.Measurements = []v1alpha1.Measurement{{Name: "disk", Counter: "diskMicros", Unit: "us"}}
			s.Reported = []v1alpha1.ReportedSeries{{Name: "r", Axis: "clients", Metric: "Measurement", Measurement: "disk", Unit: "ms"}}
		}, []string{"spec.reported[0].unit", `"ms"`, `measurement disk, "us"`}},
		"stack of what is not measured": {stack("disk", "memory"), []string{"spec.figures[0].stack.parts[1]", `"memory"`, "there are: disk, log"}},
		"stack of two units":            {stack("disk", "log"), []string{"spec.figures[0].stack.parts[1]", `"log"`, `log is in "ms", disk in "us"`}},
		"speed-up over no axis": {func(s *v1alpha1.ExperimentSpec) {
			s.Figures = []v1alpha1.Figure{{Name: "f", SpeedUp: &v1alpha1.SpeedUp{Over: params("varian", "ideal")}}}
		}, []string{"spec.figures[0].speedUp.over[varian]", `"ideal"`, `did you mean "variant"?`}},
		"speed-up over no value": {func(s *v1alpha1.ExperimentSpec) {
			s.Figures = []v1alpha1.Figure{{Name: "f", SpeedUp: &v1alpha1.SpeedUp{Over: params("clients", "11")}}}
		}, []string{"spec.figures[0].speedUp.over[clients]", `"11"`, "axis clients has no value"}},
		"reported that is no number": {func(s *v1alpha1.ExperimentSpec) {
			s.Reported = []v1alpha1.ReportedSeries{{Name: "r", Axis: "clients", Unit: "ms", Values: []v1alpha1.ReportedValue{{X: builders.Value(1), Y: builders.Value("4ms")}}}}
		}, []string{"spec.reported[0].values[0].value", `"4ms"`, "a number, in ms"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, errs := plan.Expand(failover().Set(tc.change).Obj(), systems(builders.System("basil")))
			if p != nil || len(errs) == 0 {
				t.Fatal("accepted")
			}
			if !anyContainsAll(errs, tc.want) {
				t.Errorf("no error has all of %q:\n%v", tc.want, errs.ToAggregate())
			}
		})
	}
}

func TestExpandRequiredParameter(t *testing.T) {
	system := builders.System("basil").Parameter(v1alpha1.Parameter{Name: "tables", Type: v1alpha1.ParameterInteger, Doc: "How many."})
	_, errs := plan.Expand(failover().Obj(), systems(system))
	if !anyContainsAll(errs, []string{"spec.parameters[tables]", "Required", "no default", "takes an Integer"}) {
		t.Errorf("got %v", errs.ToAggregate())
	}
	if _, errs := plan.Expand(failover().Parameter("tables", 3).Obj(), systems(system)); len(errs) > 0 {
		t.Errorf("with a value: %v", errs.ToAggregate())
	}
}

func TestExpandNames(t *testing.T) {
	for name, ok := range map[string]bool{"a": true, "fig-5a": true, "a.b": false, "5a": false, "Abc": false, "a-": false,
		strings.Repeat("a", 24): true, strings.Repeat("a", 25): false} {
		exp := failover().Obj()
		exp.Name = name
		_, errs := plan.Expand(exp, systems(builders.System("basil")))
		if (len(errs) == 0) != ok {
			t.Errorf("name %q: %v", name, errs.ToAggregate())
		}
	}
}

func TestCount(t *testing.T) {
	tests := map[string]struct {
		f    int32
		want int32
		err  string
	}{
		"5*f+1":                     {f: 1, want: 6},
		"f > 0 ? 3*f+1 : 1":         {f: 0, want: 1},
		"1":                         {f: 9, want: 1},
		"f-1":                       {f: 1, err: "gives 0 replicas for f = 1; 1 to 200"},
		"100*f+1":                   {f: 2, err: "gives 201 replicas"},
		"10/(f-1)":                  {f: 1, err: "division by zero"},
		"9223372036854775807*(f+1)": {f: 1, err: "overflow"},
		"5*g+1":                     {f: 1, err: "undeclared reference to 'g'"},
		"5*f+":                      {f: 1, err: "Syntax error"},
		"f > 0":                     {f: 1, err: "gives a bool"},
		"5.0":                       {f: 1, err: "gives a double"},
		"[1,2].map(x, x).size()":    {f: 1, err: "undeclared reference"},
	}
	for expr, tc := range tests {
		t.Run(expr, func(t *testing.T) {
			exp := builders.Experiment("e").System("s").Set(func(s *v1alpha1.ExperimentSpec) { s.Topology.F = tc.f }).Obj()
			p, errs := plan.Expand(exp, systems(builders.System("s").Count(expr)))
			if tc.err != "" {
				if !anyContainsAll(errs, []string{tc.err}) {
					t.Errorf("want an error with %q, got %v", tc.err, errs.ToAggregate())
				}
				return
			}
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			if p.Points[0].Replicas != tc.want {
				t.Errorf("%d replicas, want %d", p.Points[0].Replicas, tc.want)
			}
		})
	}
}

func TestValidateMakesChecks(t *testing.T) {
	exp := failover().Set(func(s *v1alpha1.ExperimentSpec) {
		s.Claims = []v1alpha1.Claim{{Name: "good", Expr: "good"}, {Name: "bad", Expr: "bad"}, {Name: "skipped", Expr: "bad"}}
		s.Profile = "smoke"
		s.Profiles = []v1alpha1.Profile{{Name: "smoke", Claims: []v1alpha1.ProfileClaim{{Name: "skipped", Skip: "Too small."}}}}
	}).Obj()
	checks := plan.Checks{
		Claim: func(c v1alpha1.Claim, axes []results.Axis, _ []string, _ ...string) error {
			if c.Expr == "bad" {
				return fmt.Errorf("%s has %d axes", c.Name, len(axes))
			}
			return nil
		},
		Templates: func(_ v1alpha1.SystemSpec, trial v1alpha1.TrialSpec) (int, error) {
			if trial.Clients.Count == 20 {
				return 1, errors.New("20 clients")
			}
			return 1, nil
		},
	}
	_, errs := plan.Validate(exp, systems(builders.System("basil")), checks)
	if len(errs) != 2 || !anyContainsAll(errs, []string{"spec.claims[1].expr", `"bad"`, "bad has 2 axes"}) ||
		!anyContainsAll(errs, []string{"spec.systems[0].name", `"basil"`, "20 clients"}) {
		t.Errorf("got %v", errs.ToAggregate())
	}
}

// The templates of a large plan are rendered for some of its points only, so that validation ends.
// Pods of components count, too.
func TestTemplatesOfALargePlan(t *testing.T) {
	var clients []any
	for n := range 20 {
		clients = append(clients, n+1)
	}
	for pods, want := range map[string]int{"1": 20, "200": 10} {
		system := builders.System("basil").Set(withProxies).Set(func(s *v1alpha1.SystemSpec) { s.Components[0].Count = pods })
		rendered := 0
		_, errs := plan.Validate(builders.Experiment("e").System("basil").Values("clients", clients...).Obj(), systems(system), plan.Checks{
			Templates: func(v1alpha1.SystemSpec, v1alpha1.TrialSpec) (int, error) { rendered++; return 1, nil },
		})
		if len(errs) > 0 || rendered != want {
			t.Errorf("a component of %s: %d points of 20, want %d (%v)", pods, rendered, want, errs.ToAggregate())
		}
	}
}

// A System that cannot be read is the only mistake that is reported: its parameters are not known.
func TestNothingIsSaidOfParametersOfWrongSystems(t *testing.T) {
	wrong := builders.System("tapir").Count("f == 1").Parameter(v1alpha1.Parameter{Name: "batch", Type: v1alpha1.ParameterInteger})
	exp := builders.Experiment("e").System("basil").System("tapir").Values("batch", 1, 2).Obj()
	_, errs := plan.Expand(exp, systems(builders.System("basil"), wrong))
	if len(errs) != 1 || !anyContainsAll(errs, []string{"spec.systems[1].name", `System "tapir": replicas.count "f == 1"`}) {
		t.Errorf("got %v", errs.ToAggregate())
	}
}

func TestUnusedFaultWarns(t *testing.T) {
	p := expand(t, failover().NodeKill("unused", "1s", 0))
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], `fault "unused" acts in no point`) {
		t.Errorf("warnings %q", p.Warnings)
	}
}

func TestDecodeExperiment(t *testing.T) {
	exp, err := plan.DecodeExperiment([]byte(`
apiVersion: assay.dev/v1alpha1
kind: Experiment
metadata: {name: e}
spec:
  topology: {shards: 2}
  profiles: [{name: smoke, topology: {}}, {name: zero, topology: {f: 0}}]
`))
	if err != nil {
		t.Fatal(err)
	}
	got := []int32{exp.Spec.Topology.F, exp.Spec.Profiles[0].Topology.F, exp.Spec.Profiles[1].Topology.F}
	if diff := cmp.Diff([]int32{1, 1, 0}, got); diff != "" {
		t.Errorf("f (-want +got):\n%s", diff)
	}
	if _, err := plan.DecodeExperiment([]byte("spec: {topologi: {}}")); err == nil || !strings.Contains(err.Error(), "topologi") {
		t.Errorf("an unknown field gives %v", err)
	}
}

// FuzzExpand checks that Expand and Next answer for any experiment, without a panic.
func FuzzExpand(f *testing.F) {
	f.Add("clients", "10", "-2s", int32(5), int32(1), "5*f+1")
	f.Add("batch", "", "1h", int32(-1), int32(1<<30), "f/0")
	f.Fuzz(func(t *testing.T, axis, value, at string, replica, f int32, count string) {
		exp := builders.Experiment("e").System("s").Values(axis, value).NodeKill("k", at, replica).
			Set(func(s *v1alpha1.ExperimentSpec) { s.Topology.F = f; s.Faults[0].EveryPoint = true }).Obj()
		p, errs := plan.Expand(exp, systems(builders.System("s").Count(count)))
		if (p == nil) == (len(errs) == 0) {
			t.Fatalf("plan %v with errors %v", p, errs)
		}
		if p != nil && plan.Next(p, 1, nil).Create == nil {
			t.Fatal("a plan without trials gives no first trial")
		}
	})
}

// stack declares a figure of these parts. disk and log are measurements, in two units.
func stack(parts ...string) func(*v1alpha1.ExperimentSpec) {
	return func(s *v1alpha1.ExperimentSpec) {
		s.Measurements = []v1alpha1.Measurement{{Name: "disk", Counter: "diskMicros", Unit: "us"}, {Name: "log", Counter: "logMillis", Unit: "ms"}}
		s.Figures = []v1alpha1.Figure{{Name: "f", Stack: &v1alpha1.Stack{Parts: parts}}}
	}
}

func anyContainsAll(errs field.ErrorList, want []string) bool {
	for _, err := range errs {
		all := true
		for _, w := range want {
			all = all && strings.Contains(err.Error(), w)
		}
		if all {
			return true
		}
	}
	return false
}

func params(name string, v any) map[string]v1alpha1.Value {
	return map[string]v1alpha1.Value{name: builders.Value(v)}
}

func manyValues(n int) []v1alpha1.Value {
	out := make([]v1alpha1.Value, n)
	for i := range out {
		out[i] = builders.Value(i + 1)
	}
	return out
}

func duration(d string) *v1alpha1.Duration { v := v1alpha1.Duration(d); return &v }

func ptr[T any](v T) *T { return &v }

// Clients that Assay paces need settings that a script does not need. A System with one workload
// needs no name of it.
func TestWhatExperimentsWithoutScriptsMustSay(t *testing.T) {
	exp, one := failover().Obj(), builders.System("basil").Obj().Spec
	exp.Spec.Workload.Name, one.Workloads = "", one.Workloads[:1]
	if _, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{"basil": one}); len(errs) > 0 {
		t.Errorf("the only workload is not taken: %v", errs.ToAggregate())
	}
	exp.Spec.Clients.Loop, exp.Spec.Schedule.Measure = "", ""
	one.Workloads = append(one.Workloads, v1alpha1.Workload{Name: "other"})
	_, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{"basil": one})
	for _, want := range []string{"spec.workload.name: Required value: the systems have several workloads", "spec.clients.loop: Required value", "spec.schedule.measure: Required value"} {
		if len(errs) != 3 || !strings.Contains(errs.ToAggregate().Error(), want) {
			t.Errorf("the problems are %v; want %q, and three in all", errs.ToAggregate(), want)
		}
	}
}
