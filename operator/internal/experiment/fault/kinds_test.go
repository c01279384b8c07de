package fault

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
)

func commandOf(at string, target v1alpha1.Target, timeout v1alpha1.Duration) v1alpha1.Fault {
	return v1alpha1.Fault{Name: "x", At: v1alpha1.Duration(at), RunCommand: &v1alpha1.Command{Target: target, Run: []string{"flush"}, Timeout: timeout}}
}

func flameGraphOf(length string, change func(f *v1alpha1.Fault)) v1alpha1.Fault {
	f := v1alpha1.Fault{Name: "x", At: "1s", FlameGraph: &v1alpha1.FlameGraph{Target: indexes(0), Tool: v1alpha1.ProfilerPerf}}
	if length != "" {
		f.For = lasting(length)
	}
	if change != nil {
		change(&f)
	}
	return f
}

// Each kind of fault lists its targets, and says whether one machine without a cluster can do it.
func TestTargetsOfEachKind(t *testing.T) {
	a, b, c := indexes(0), indexes(1), picking(2)
	machine := killOf("x", "1s", a)
	machine.NodeKill.Mode = v1alpha1.KillMachine
	chaos := chaosOf("NetworkChaos", `{"action":"partition"}`, "1s", "1s", a)
	alone := *chaos.DeepCopy()
	chaos.ChaosMesh.Peers = &b
	for name, tc := range map[string]struct {
		fault         v1alpha1.Fault
		targets       []*v1alpha1.Target
		needsMachines string
	}{
		"a kill":                {fault: killOf("x", "1s", a), targets: []*v1alpha1.Target{&a}},
		"a kill of a machine":   {machine, []*v1alpha1.Target{&a}, "mode Machine would reset the machine that measures; mode Pods kills the replica's processes and cuts it off"},
		"a pause":               {fault: v1alpha1.Fault{Pause: &v1alpha1.Pause{Target: c}}, targets: []*v1alpha1.Target{&c}},
		"a command":             {fault: commandOf("1s", a, ""), targets: []*v1alpha1.Target{&a}},
		"a flame graph":         {fault: flameGraphOf("5s", nil), targets: []*v1alpha1.Target{&a}},
		"a degrade":             {fault: v1alpha1.Fault{Degrade: &v1alpha1.Degrade{Target: &a}}, targets: []*v1alpha1.Target{&a, nil, nil}},
		"a degrade one way":     {fault: v1alpha1.Fault{Degrade: &v1alpha1.Degrade{From: &a, To: &b}}, targets: []*v1alpha1.Target{nil, &a, &b}},
		"an isolation":          {fault: v1alpha1.Fault{Partition: &v1alpha1.Partition{Isolate: &a}}, targets: []*v1alpha1.Target{&a, nil, nil}},
		"a partition one way":   {fault: v1alpha1.Fault{Partition: &v1alpha1.Partition{From: &a, To: &b}}, targets: []*v1alpha1.Target{nil, &a, &b}},
		"a partition in groups": {fault: v1alpha1.Fault{Partition: &v1alpha1.Partition{Groups: []v1alpha1.Target{a, c}}}, targets: []*v1alpha1.Target{nil, nil, nil, &a, &c}},
		"Chaos Mesh":            {chaos, []*v1alpha1.Target{&a, &b}, "Chaos Mesh needs a cluster"},
		"Chaos Mesh at one end": {alone, []*v1alpha1.Target{&a, nil}, "Chaos Mesh needs a cluster"},
		"clients":               {fault: v1alpha1.Fault{ClientBehavior: &v1alpha1.ClientBehavior{}}},
		"nothing":               {},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.targets, Targets(&tc.fault)); d != "" {
				t.Errorf("targets (-want +got):\n%s", d)
			}
			if got := NotOnOneMachine(&tc.fault); got != tc.needsMachines {
				t.Errorf("on one machine: %q, want %q", got, tc.needsMachines)
			}
		})
	}
}

func TestDefaultsOfEachKind(t *testing.T) {
	profiler := func(g v1alpha1.FlameGraph) v1alpha1.Fault { return v1alpha1.Fault{FlameGraph: &g} }
	partition := func(clients string) v1alpha1.Fault {
		return v1alpha1.Fault{Partition: &v1alpha1.Partition{Clients: clients}}
	}
	kill := func(mode, disk string) v1alpha1.Fault {
		return v1alpha1.Fault{NodeKill: &v1alpha1.NodeKill{Mode: mode, Disk: disk}}
	}
	for name, tc := range map[string]struct{ fault, want v1alpha1.Fault }{
		"a kill":                    {kill("", ""), kill(v1alpha1.KillPods, "Keep")},
		"a kill that says it":       {kill(v1alpha1.KillMachine, "Lose"), kill(v1alpha1.KillMachine, "Lose")},
		"a partition":               {partition(""), partition("Everyone")},
		"a partition of clients":    {partition("FirstGroup"), partition("FirstGroup")},
		"a command":                 {commandOf("1s", indexes(0), ""), commandOf("1s", indexes(0), "60s")},
		"a command that says it":    {commandOf("1s", indexes(0), "5s"), commandOf("1s", indexes(0), "5s")},
		"pprof":                     {profiler(v1alpha1.FlameGraph{Tool: v1alpha1.ProfilerPprof}), profiler(v1alpha1.FlameGraph{Tool: v1alpha1.ProfilerPprof, Path: "/debug/pprof/profile"})},
		"pprof elsewhere":           {profiler(v1alpha1.FlameGraph{Tool: v1alpha1.ProfilerPprof, Path: "/p"}), profiler(v1alpha1.FlameGraph{Tool: v1alpha1.ProfilerPprof, Path: "/p"})},
		"perf":                      {profiler(v1alpha1.FlameGraph{Tool: v1alpha1.ProfilerPerf}), profiler(v1alpha1.FlameGraph{Tool: v1alpha1.ProfilerPerf, Frequency: 99})},
		"async-profiler, often":     {profiler(v1alpha1.FlameGraph{Tool: v1alpha1.ProfilerAsyncProfiler, Frequency: 499}), profiler(v1alpha1.FlameGraph{Tool: v1alpha1.ProfilerAsyncProfiler, Frequency: 499})},
		"a pause, which has none":   {v1alpha1.Fault{Pause: &v1alpha1.Pause{Target: indexes(0)}}, v1alpha1.Fault{Pause: &v1alpha1.Pause{Target: indexes(0)}}},
		"a fault that does nothing": {v1alpha1.Fault{Name: "x"}, v1alpha1.Fault{Name: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			faults := []v1alpha1.Fault{{Name: "before it"}, tc.fault}
			SetDefaults(faults)
			if d := cmp.Diff(tc.want, faults[1]); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestCheckCommandsAndFlameGraphs(t *testing.T) {
	timeout := "faults[x].command.timeout: must be a duration from 1ms to 1h, such as 30s"
	whole := "faults[x].for: profilers sample for whole seconds, from 1s to 10m"
	for name, tc := range map[string]struct {
		fault v1alpha1.Fault
		want  []string
	}{
		"a command":                    {commandOf("1s", indexes(0), "60s"), nil},
		"a command of a role":          {commandOf("1s", v1alpha1.Target{Role: "leader"}, "60s"), nil},
		"a command of no replica":      {commandOf("1s", indexes(4), "60s"), []string{"faults[x].command.target.replicas[0]: 0 to 3"}},
		"the shortest timeout":         {commandOf("1s", indexes(0), "1ms"), nil},
		"the longest timeout":          {commandOf("1s", indexes(0), "1h"), nil},
		"a timeout that is too short":  {commandOf("1s", indexes(0), "999us"), []string{timeout}},
		"a timeout that is too long":   {commandOf("1s", indexes(0), "61m"), []string{timeout}},
		"a timeout that is no time":    {commandOf("1s", indexes(0), "soon"), []string{timeout}},
		"a flame graph":                {flameGraphOf("5s", nil), nil},
		"a second":                     {flameGraphOf("1s", nil), nil},
		"ten minutes":                  {flameGraphOf("10m", nil), nil},
		"a flame graph of a role":      {flameGraphOf("5s", func(f *v1alpha1.Fault) { f.FlameGraph.Target = v1alpha1.Target{Role: "leader"} }), nil},
		"a flame graph of no replica":  {flameGraphOf("5s", func(f *v1alpha1.Fault) { f.FlameGraph.Target = indexes(-1) }), []string{"faults[x].flameGraph.target.replicas[0]: 0 to 3"}},
		"less than a second":           {flameGraphOf("999ms", nil), []string{whole}},
		"a broken second":              {flameGraphOf("1500ms", nil), []string{whole}},
		"more than ten minutes":        {flameGraphOf("601s", nil), []string{whole}},
		"a length that is no time":     {flameGraphOf("long", nil), []string{whole}},
		"no length":                    {flameGraphOf("", nil), []string{"faults[x].for: how long the profiler samples, such as 5s"}},
		"at every point of the faults": {flameGraphOf("5s", func(f *v1alpha1.Fault) { f.EveryPoint = true }), []string{"faults[x].everyPoint: flameGraph.points says which points are profiled"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := point()
			p.Trial.Faults = []v1alpha1.Fault{*tc.fault.DeepCopy()}
			wantErrors(t, Check(p), tc.want)
		})
	}
}

// A command ends by itself, so it may repeat without a length.
func TestTimesOfCommands(t *testing.T) {
	long := commandOf("1s", indexes(0), "60s")
	long.For = lasting("1s")
	again := commandOf("1s", indexes(0), "60s")
	again.Repeat = &v1alpha1.Repeat{Every: "2s", Times: 3}
	late := *again.DeepCopy()
	late.Repeat.Times = 7
	for name, tc := range map[string]struct {
		fault v1alpha1.Fault
		want  []string
	}{
		"once":                     {commandOf("1s", indexes(0), "60s"), nil},
		"repeated":                 {again, nil},
		"repeated beyond the load": {late, []string{"faults[x].repeat.times: the last time would begin at 13s"}},
		"for a time":               {long, []string{"faults[x].for: a command ends by itself; leave for out"}},
	} {
		t.Run(name, func(t *testing.T) {
			wantErrors(t, CheckTimes([]v1alpha1.Fault{tc.fault}, times()), tc.want)
		})
	}
}

func TestActionsOfCommandsAndFlameGraphs(t *testing.T) {
	role := v1alpha1.Target{Role: "leader", Replicas: []int32{0, 1}}
	command := commandOf("2s", role, "60s")
	graph := flameGraphOf("5s", func(f *v1alpha1.Fault) {
		f.Name, f.FlameGraph.Target, f.FlameGraph.Program, f.FlameGraph.Frequency = "g", indexes(2), "/opt/perf", 49
	})
	pprof := flameGraphOf("2s", func(f *v1alpha1.Fault) {
		f.Name, f.FlameGraph = "p", &v1alpha1.FlameGraph{Target: role, Tool: v1alpha1.ProfilerPprof, Port: 6060, Path: "/p"}
	})
	want := []timeline.Action{
		{ID: "g/1/sample/r2", Fault: "g", Time: 1, Pod: "r2", Kind: timeline.Sample, At: time.Second, Profiler: &timeline.Profiler{Tool: "Perf", For: 5 * time.Second, Program: "/opt/perf", Frequency: 49}},
		{ID: "p/1/sample/r0", Fault: "p", Time: 1, Pod: "r0", Kind: timeline.Sample, At: time.Second, Role: "leader", Profiler: &timeline.Profiler{Tool: "Pprof", For: 2 * time.Second, Port: 6060, Path: "/p"}},
		{ID: "p/1/sample/r1", Fault: "p", Time: 1, Pod: "r1", Kind: timeline.Sample, At: time.Second, Role: "leader", Profiler: &timeline.Profiler{Tool: "Pprof", For: 2 * time.Second, Port: 6060, Path: "/p"}},
		{ID: "x/1/execute/r0", Fault: "x", Time: 1, Pod: "r0", Kind: timeline.Execute, At: 2 * time.Second, Role: "leader"},
		{ID: "x/1/execute/r1", Fault: "x", Time: 1, Pod: "r1", Kind: timeline.Execute, At: 2 * time.Second, Role: "leader"},
	}
	got, err := Build([]v1alpha1.Fault{command, graph, pprof}, windows, cast{})
	if err != nil {
		t.Fatal(err)
	}
	byID := func(actions []timeline.Action) map[string]timeline.Action {
		all := map[string]timeline.Action{}
		for _, a := range actions {
			all[a.ID] = a
		}
		return all
	}
	if d := cmp.Diff(byID(want), byID(got)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestOnlyCommandsAreRendered(t *testing.T) {
	faults := []v1alpha1.Fault{killOf("crash", "1s", indexes(0)), commandOf("1s", indexes(0), "60s"), flameGraphOf("5s", nil), commandOf("2s", indexes(1), "60s")}
	faults[3].Name = "y"
	var used []string
	use := func(name string, c *v1alpha1.Command) error { used = append(used, name+": "+c.Run[0]); return nil }
	if err := Commands(faults, use); err != nil || !cmp.Equal(used, []string{"x: flush", "y: flush"}) {
		t.Errorf("commands %v, %v; want those of x and y", used, err)
	}
	broken := errors.New("broken")
	calls := 0
	if err := Commands(faults, func(string, *v1alpha1.Command) error { calls++; return broken }); !errors.Is(err, broken) || calls != 1 {
		t.Errorf("%d calls, %v; want the first error", calls, err)
	}
}

// Trials that count have no profiler.
func TestFlameGraphsAreInTrialsOfTheirOwn(t *testing.T) {
	graph := flameGraphOf("5s", func(f *v1alpha1.Fault) {
		f.FlameGraph.Points = map[string]v1alpha1.Value{"clients": v1alpha1.NewValue("8")}
	})
	kill := killOf("crash", "1s", indexes(0))
	faults := []v1alpha1.Fault{graph, kill, graph}
	if got := WithoutFlameGraphs(faults); len(got) != 1 || got[0].Name != "crash" || len(faults) != 3 || faults[0].FlameGraph == nil {
		t.Errorf("%v of %v; want the kill alone, in a list of its own", got, faults)
	}
	if DrawsFlameGraph(&kill) || !DrawsFlameGraph(&graph) {
		t.Error("a kill has a profiler, or a flame graph has none")
	}
	if d := cmp.Diff(graph.FlameGraph.Points, ProfiledPoints(&graph), cmp.Comparer(func(a, b v1alpha1.Value) bool { return a.String() == b.String() })); d != "" || ProfiledPoints(&kill) != nil {
		t.Errorf("points of a kill: %v; of a flame graph (-want +got):\n%s", ProfiledPoints(&kill), d)
	}
}

// A role is looked up at the instant of the fault, so a fault on a role may hit any replica, also
// one that another fault hits.
func TestFaultsOnRolesMayMeetOthers(t *testing.T) {
	leader := v1alpha1.Target{Role: "leader"}
	stop := killOf("y", "1s", indexes(0))
	for name, f := range map[string]v1alpha1.Fault{
		"a kill":        killOf("x", "1s", leader),
		"a pause":       {Name: "x", At: "1s", For: lasting("1s"), Pause: &v1alpha1.Pause{Target: leader}},
		"a command":     commandOf("1s", leader, "60s"),
		"a flame graph": flameGraphOf("5s", func(f *v1alpha1.Fault) { f.FlameGraph.Target = leader }),
	} {
		t.Run(name, func(t *testing.T) {
			p := point()
			p.Trial.Faults = []v1alpha1.Fault{*f.DeepCopy(), *stop.DeepCopy()}
			wantErrors(t, Check(p), nil)
			if !hasRole(&f) || hasRole(&stop) {
				t.Error("the fault is on no role, or the other one is")
			}
		})
	}
}

// A delay that cannot be read is an error of the fault, even if admission accepted it.
func TestActionsOfADelayThatCannotBeRead(t *testing.T) {
	f := v1alpha1.Fault{Name: "x", At: "1s", Degrade: &v1alpha1.Degrade{Target: new(indexes(0)), LinkEffect: v1alpha1.LinkEffect{Delay: lasting("late")}}}
	if got, err := Build([]v1alpha1.Fault{f}, windows, cast{}); err == nil {
		t.Errorf("%v; want an error", got)
	}
}

// A group that picks does not pick pods of the groups before it.
func TestPicksOfGroups(t *testing.T) {
	pick := func(n int, regions ...string) v1alpha1.Target {
		return v1alpha1.Target{Regions: regions, Pick: new(intstr.FromInt(n))}
	}
	east := v1alpha1.Target{Regions: []string{"east"}}
	for name, tc := range map[string]struct {
		groups []v1alpha1.Target
		want   []string
	}{
		"all that is left":          {[]v1alpha1.Target{indexes(0), pick(3)}, nil},
		"more than is left":         {[]v1alpha1.Target{indexes(0), pick(4)}, []string{"faults[x].partition.groups[1].pick: picks 4 replicas of each shard, but only 3 match in shard 0"}},
		"of a region that is taken": {[]v1alpha1.Target{east, pick(1, "east")}, []string{"faults[x].partition.groups[1].pick: picks 1 replicas of each shard, but only 0 match in shard 0"}},
		"of the other region":       {[]v1alpha1.Target{east, pick(2, "west")}, nil},
		"two picks of all":          {[]v1alpha1.Target{pick(1), pick(3)}, nil},
		"two picks of too many":     {[]v1alpha1.Target{pick(2), pick(3)}, []string{"faults[x].partition.groups[1].pick: picks 3 replicas of each shard, but only 2 match in shard 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := point()
			p.Trial.Faults = []v1alpha1.Fault{{Name: "x", At: "1s", Partition: &v1alpha1.Partition{Groups: tc.groups}}}
			wantErrors(t, Check(p), tc.want)
		})
	}
}
