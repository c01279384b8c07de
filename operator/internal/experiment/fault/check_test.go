package fault

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/shaping"
)

// times are the windows of the other tests, with faults that may be 100 ms late.
func times() Times {
	return Times{Windows: windows, Lateness: 100 * time.Millisecond, Path: func(fault string) *field.Path { return field.NewPath("faults").Key(fault) }}
}

// chaosOf returns a fault that Chaos Mesh carries out.
func chaosOf(kind, spec string, at, length string, target v1alpha1.Target) v1alpha1.Fault {
	f := v1alpha1.Fault{Name: "cm", At: v1alpha1.Duration(at), ChaosMesh: &v1alpha1.ChaosMesh{Kind: kind, Target: target, Spec: runtime.RawExtension{Raw: []byte(spec)}}}
	if length != "" {
		f.For = lasting(length)
	}
	return f
}

func killOf(name, at string, target v1alpha1.Target) v1alpha1.Fault {
	return v1alpha1.Fault{Name: name, At: v1alpha1.Duration(at), NodeKill: &v1alpha1.NodeKill{Target: target}}
}

func picking(n int) v1alpha1.Target { return v1alpha1.Target{Pick: new(intstr.FromInt(n))} }

// wantErrors compares errors with the wanted ones, each "field: text", in order.
func wantErrors(t *testing.T, got field.ErrorList, want []string) {
	t.Helper()
	for i, err := range got {
		if i >= len(want) {
			t.Errorf("not expected: %v", err)
			continue
		}
		path, text, _ := strings.Cut(want[i], ": ")
		if err.Field != path || !strings.Contains(err.Error(), text) {
			t.Errorf("%v; want %s: ...%s...", err, path, text)
		}
	}
	for _, missing := range want[min(len(got), len(want)):] {
		t.Errorf("no error says %s", missing)
	}
}

func TestCheckTimes(t *testing.T) {
	flap := func(period, cut, at, length string, repeat *v1alpha1.Repeat) v1alpha1.Fault {
		f := v1alpha1.Fault{Name: "x", At: v1alpha1.Duration(at), Repeat: repeat, Partition: &v1alpha1.Partition{Isolate: new(indexes(0)), Flap: &v1alpha1.Flap{Period: v1alpha1.Duration(period)}}}
		if length != "" {
			f.For = lasting(length)
		}
		if cut != "" {
			f.Partition.Flap.Cut = lasting(cut)
		}
		return f
	}
	kill := func(at, length string, repeat *v1alpha1.Repeat) v1alpha1.Fault {
		f := killOf("x", at, indexes(0))
		if f.Repeat = repeat; length != "" {
			f.For = lasting(length)
		}
		return f
	}
	machine := kill("1s", "1s", nil)
	machine.NodeKill.Mode = v1alpha1.KillMachine
	both := kill("1s", "", nil)
	both.Pause = &v1alpha1.Pause{Target: indexes(1)}
	dated := v1alpha1.Fault{Name: "x", At: "1s", ClientBehavior: &v1alpha1.ClientBehavior{Share: "50%"}}
	for name, tc := range map[string]struct {
		fault v1alpha1.Fault
		want  []string
	}{
		"from the warm-up to the end":  {kill("-5s", "", nil), nil},
		"until the end of the drain":   {kill("0s", "15s", nil), nil},
		"before the warm-up":           {kill("-6s", "", nil), []string{"faults[x].at: from -5s (start of the warm-up) to before 12s"}},
		"after the last request":       {kill("12s", "", nil), []string{"faults[x].at: to before 12s (end of the cool-down)"}},
		"without a time":               {kill("", "", nil), []string{"faults[x].at: must be a time at which clients send"}},
		"no time":                      {kill("soon", "", nil), []string{"faults[x].at: must be a time at which clients send"}},
		"beyond the end of the drain":  {kill("1s", "15s", nil), []string{"faults[x].for: more than 0 and at most 14s"}},
		"for no time":                  {kill("1s", "0s", nil), []string{"faults[x].for: more than 0"}},
		"two things":                   {both, []string{"faults[x]: does 2 things: [nodeKill pause]; set exactly one of nodeKill, pause, partition"}},
		"nothing":                      {v1alpha1.Fault{Name: "x", At: "1s"}, []string{"faults[x]: does 0 things"}},
		"a machine for a time":         {machine, []string{"faults[x].for: comes back by itself, once"}},
		"clients at an instant":        {dated, []string{"faults[x].at: at, for and repeat must not be set"}},
		"clients":                      {v1alpha1.Fault{Name: "x", ClientBehavior: &v1alpha1.ClientBehavior{Share: "50%"}}, nil},
		"repeated until the drain":     {kill("1s", "1s", &v1alpha1.Repeat{Every: "2s", Times: 6}), nil},
		"repeated to the very end":     {kill("1s", "4s", &v1alpha1.Repeat{Every: "10s", Times: 2}), nil},
		"repeated too often":           {kill("1s", "1s", &v1alpha1.Repeat{Every: "2s", Times: 7}), []string{"faults[x].repeat.times: the last time would begin at 13s and end at 14s"}},
		"repeated without an end":      {kill("1s", "", &v1alpha1.Repeat{Every: "2s", Times: 2}), []string{"faults[x].for: must end before it begins again"}},
		"repeated while it lasts":      {kill("1s", "2s", &v1alpha1.Repeat{Every: "2s", Times: 2}), []string{"faults[x].repeat.every: more than the fault lasts (for: 2s)"}},
		"repeated at no interval":      {kill("1s", "2s", &v1alpha1.Repeat{Every: "often", Times: 2}), []string{"faults[x].repeat.every: more than the fault lasts"}},
		"flapping":                     {flap("1s", "400ms", "0s", "5s", nil), nil},
		"flapping to the last request": {flap("1s", "", "0s", "", nil), nil},
		"flapping at no period":        {flap("quickly", "", "0s", "5s", nil), []string{"faults[x].partition.flap.period: must be a duration such as 500ms"}},
		"flapping too quickly":         {flap("19ms", "", "0s", "5s", nil), []string{"faults[x].partition.flap.period: must be from 20ms to 1h"}},
		"flapping too slowly":          {flap("61m", "", "0s", "5s", nil), []string{"faults[x].partition.flap.period: must be from 20ms to 1h"}},
		"never whole":                  {flap("1s", "1s", "0s", "5s", nil), []string{"faults[x].partition.flap.cut: from 10ms to less than the period (1s)"}},
		"cuts that happen":             {flap("1s", "200ms", "0s", "5s", nil), nil},
		"a cut in an hour":             {flap("1h", "1s", "0s", "5s", nil), nil},
		"a cut that its end shortens": {flap("10s", "5s", "0s", "150ms", nil),
			[]string{"faults[x].partition.flap.cut: one of less than 200ms", "faults[x].partition.flap.period: its end shortens the last cut"}},
		"cuts that may not happen":     {flap("1s", "199ms", "0s", "5s", nil), []string{"faults[x].partition.flap.cut: one of less than 200ms may not happen at all"}},
		"halves that may not happen":   {flap("398ms", "", "0s", "398ms", nil), []string{"faults[x].partition.flap.period: one of less than 200ms may not happen at all"}},
		"a last cut that is too short": {flap("1s", "400ms", "0s", "5100ms", nil), []string{"faults[x].partition.flap.period: its end shortens the last cut"}},
	} {
		t.Run(name, func(t *testing.T) {
			wantErrors(t, CheckTimes([]v1alpha1.Fault{tc.fault}, times()), tc.want)
		})
	}
}

func TestHowOftenAPartitionFlaps(t *testing.T) {
	long := times()
	long.Lateness, long.Windows.Measure = 0, time.Minute
	for times, want := range map[int32][]string{
		2: nil, // a thousand times
		3: {"faults[x].partition.flap.period: makes 1500 cuts; at most 1000 are possible"},
	} {
		t.Run(fmt.Sprint(times), func(t *testing.T) {
			f := v1alpha1.Fault{Name: "x", At: "0s", For: lasting("10s"), Repeat: &v1alpha1.Repeat{Every: "11s", Times: times},
				Partition: &v1alpha1.Partition{Flap: &v1alpha1.Flap{Period: "20ms"}}}
			wantErrors(t, CheckTimes([]v1alpha1.Fault{f}, long), want)
		})
	}
}

// point has two shards of four replicas in two regions, three proxies in one of them, and four
// clients. Its links are not shaped.
func point() Point {
	trial := &v1alpha1.TrialSpec{
		Topology: v1alpha1.Topology{F: 1, Shards: 2, Regions: []v1alpha1.Region{{Name: "east", Replicas: 2}, {Name: "west", Replicas: 2}},
			Components: []v1alpha1.ComponentRegions{{Name: "proxy", Regions: []v1alpha1.Region{{Name: "west", Replicas: 3}}}}},
		Clients: v1alpha1.Clients{Count: 4, Regions: []string{"east"}},
	}
	system := &v1alpha1.SystemSpec{
		Roles:      []v1alpha1.Role{{Name: "leader"}, {Name: "router", Component: "proxy"}},
		Components: []v1alpha1.Component{{Name: "proxy", ReplicasSpec: v1alpha1.ReplicasSpec{Containers: []v1alpha1.Container{{Name: "main"}}}}},
		Replicas:   v1alpha1.ReplicasSpec{Containers: []v1alpha1.Container{{Name: "server"}}},
		Clients:    v1alpha1.ClientsTemplate{Driver: &v1alpha1.DriverSpec{Protocol: "NDJSON"}},
	}
	return Point{Times: times(), Trial: trial, System: "sys", Spec: system, Count: "3f+1", Parameter: func(name string, value v1alpha1.Value) (v1alpha1.Value, error) {
		if name != "rate" {
			return value, errors.New("declares no parameter " + name)
		}
		return v1alpha1.NewValue(strings.TrimSpace(value.String())), nil
	}}
}

func TestCheck(t *testing.T) {
	killing := func(target v1alpha1.Target) []v1alpha1.Fault { return []v1alpha1.Fault{killOf("x", "1s", target)} }
	parting := func(p v1alpha1.Partition) []v1alpha1.Fault {
		return []v1alpha1.Fault{{Name: "x", At: "1s", Partition: &p}}
	}
	grouping := func(groups ...v1alpha1.Target) []v1alpha1.Fault { return parting(v1alpha1.Partition{Groups: groups}) }
	machine := func(change func(k *v1alpha1.NodeKill)) v1alpha1.Fault {
		f := killOf("x", "1s", indexes(0))
		f.NodeKill.Mode = v1alpha1.KillMachine
		change(f.NodeKill)
		return f
	}
	as := func(*v1alpha1.NodeKill) {}
	shaped := func(p *Point) {
		p.Trial.Network.Links = []v1alpha1.RegionLink{{Between: []string{"east", "west"}, LinkEffect: v1alpha1.LinkEffect{Delay: lasting("10ms")}}}
	}
	unshaped := func(p *Point) { p.Trial.Network.Shaping = v1alpha1.ShapingNone }
	component := func(name string, pods ...int32) v1alpha1.Target { return v1alpha1.Target{Component: name, Pods: pods} }
	clients := func(share string) v1alpha1.Fault {
		return v1alpha1.Fault{Name: "x", ClientBehavior: &v1alpha1.ClientBehavior{Share: share, Parameters: map[string]v1alpha1.Value{"rate": v1alpha1.NewValue("1")}}}
	}
	podKill := func(target v1alpha1.Target) v1alpha1.Fault {
		return chaosOf("PodChaos", `{"action":"pod-kill"}`, "2s", "", target)
	}
	podFailure := chaosOf("PodChaos", `{"action":"pod-failure"}`, "2s", "1s", indexes(0))
	delayed := func(length string, target v1alpha1.Target, peers *v1alpha1.Target) v1alpha1.Fault {
		f := chaosOf("NetworkChaos", `{"action":"partition"}`, "2s", length, target)
		f.ChaosMesh.Peers = peers
		return f
	}
	for name, tc := range map[string]struct {
		faults []v1alpha1.Fault
		change func(p *Point)
		want   []string
	}{
		"nothing":                   {},
		"one of each":               {faults: []v1alpha1.Fault{killOf("x", "1s", indexes(0)), {Name: "y", At: "1s", Pause: &v1alpha1.Pause{Target: indexes(1)}}}},
		"a fault that says nothing": {faults: []v1alpha1.Fault{{Name: "x"}}}, // CheckTimes reports the mistake

		"no target":                 {faults: killing(v1alpha1.Target{}), want: []string{"faults[x].nodeKill.target: none of machine, replicas, regions, role, pick, component is set"}},
		"a replica too many":        {faults: killing(indexes(3, 4, -1)), want: []string{`faults[x].nodeKill.target.replicas[1]: System "sys" has 3f+1 = 4 replicas in a shard for f = 1: 0 to 3`, "faults[x].nodeKill.target.replicas[2]: 0 to 3"}},
		"a shard too many":          {faults: killing(v1alpha1.Target{Replicas: []int32{0}, Shards: []int32{1, 2}}), want: []string{"faults[x].nodeKill.target.shards[1]: there are 2 shards: 0 to 1"}},
		"a region that is not":      {faults: killing(v1alpha1.Target{Regions: []string{"eats"}}), want: []string{`faults[x].nodeKill.target.regions[0]: the topology has no region`}},
		"replicas of other regions": {faults: killing(v1alpha1.Target{Replicas: []int32{0}, Regions: []string{"west"}}), want: []string{"faults[x].nodeKill.target: chooses no replica: no replica of these indexes is in these regions; east has 0 to 1, west has 2 to 3"}},
		"replicas of a region":      {faults: killing(v1alpha1.Target{Replicas: []int32{2}, Regions: []string{"west"}})},
		"as many as there are":      {faults: killing(picking(4))},
		"more than there are":       {faults: killing(picking(5)), want: []string{"faults[x].nodeKill.target.pick: picks 5 replicas of each shard, but only 4 match in shard 0"}},
		"none":                      {faults: killing(v1alpha1.Target{Pick: new(intstr.FromString("f"))}), change: func(p *Point) { p.Trial.Topology.F = 0 }, want: []string{"faults[x].nodeKill.target.pick: picks 0 replicas: f is 0 and a shard has 4 replicas; nothing would happen"}},
		"the leader":                {faults: killing(v1alpha1.Target{Role: "leader"})},
		"a role that is not":        {faults: killing(v1alpha1.Target{Role: "leadre"}), want: []string{`faults[x].nodeKill.target.role: System "sys" declares no role of replicas`}},
		"a role of a component":     {faults: killing(v1alpha1.Target{Role: "router"}), want: []string{"faults[x].nodeKill.target.role: declares no role of replicas"}},
		"a component's role":        {faults: killing(v1alpha1.Target{Component: "proxy", Role: "router"})},
		"a component's other role":  {faults: killing(v1alpha1.Target{Component: "proxy", Role: "leader"}), want: []string{"faults[x].nodeKill.target.role: declares no role of component proxy"}},

		"pods of a component":                {faults: killing(component("proxy", 0, 2))},
		"a pod too many":                     {faults: killing(component("proxy", 3)), want: []string{"faults[x].nodeKill.target.pods[0]: component proxy has 3 pods for f = 1: 0 to 2"}},
		"pods of nothing":                    {faults: killing(component("", 1)), want: []string{"faults[x].nodeKill.target.pods: are those of a component"}},
		"a component that is not":            {faults: killing(component("prxy")), want: []string{`faults[x].nodeKill.target.component: System "sys" has no component`}},
		"replicas of a component":            {faults: killing(v1alpha1.Target{Component: "proxy", Replicas: []int32{0}}), want: []string{"faults[x].nodeKill.target.component: choose replicas, not pods of a component"}},
		"a component in a region without it": {faults: killing(v1alpha1.Target{Component: "proxy", Regions: []string{"east"}}), want: []string{"faults[x].nodeKill.target.regions[0]: component proxy is in no region"}},
		"a component that has no pod there": {faults: killing(v1alpha1.Target{Component: "proxy", Pods: []int32{0}, Regions: []string{"west2"}}),
			change: func(p *Point) {
				p.Trial.Topology.Components[0].Regions = append(p.Trial.Topology.Components[0].Regions, v1alpha1.Region{Name: "west2", Replicas: 1}, v1alpha1.Region{Name: "south"})
			},
			want: []string{"faults[x].nodeKill.target: chooses no pod: no pod of these indexes is in these regions; west has 0 to 2, west2 has 3 to 3"}},
		"all of a component":        {faults: killing(v1alpha1.Target{Component: "proxy", Pick: new(intstr.FromInt(3))})},
		"more than a component has": {faults: killing(v1alpha1.Target{Component: "proxy", Pick: new(intstr.FromInt(4))}), want: []string{"faults[x].nodeKill.target.pick: picks 4 pods of component proxy, but only 3 match"}},
		"none of a component": {faults: killing(v1alpha1.Target{Component: "proxy", Pick: new(intstr.FromString("f"))}), change: func(p *Point) { p.Trial.Topology.F = 0 },
			want: []string{"faults[x].nodeKill.target.pick: picks 0 pods: f is 0 and component proxy has 3 pods"}},

		"a machine":                  {faults: []v1alpha1.Fault{machine(as), clients("50%")}},
		"two machines":               {faults: []v1alpha1.Fault{machine(as), {Name: "y", At: "2s", NodeKill: &v1alpha1.NodeKill{Mode: v1alpha1.KillMachine, Target: indexes(1)}}}},
		"whose machine":              {faults: []v1alpha1.Fault{machine(func(k *v1alpha1.NodeKill) { k.Target = v1alpha1.Target{Role: "leader"} })}, want: []string{"faults[x].nodeKill.target.role: must be known before the run"}},
		"a machine without a disk":   {faults: []v1alpha1.Fault{machine(func(k *v1alpha1.NodeKill) { k.Disk = "Lose" })}, want: []string{"faults[x].nodeKill.disk: keeps its disks"}},
		"a machine and links":        {faults: []v1alpha1.Fault{machine(as)}, change: shaped, want: []string{"faults[x].nodeKill.mode: cannot be together with a shaped network"}},
		"a machine and other faults": {faults: []v1alpha1.Fault{machine(as), {Name: "gc", At: "9s", Pause: &v1alpha1.Pause{Target: indexes(1)}}}, want: []string{"faults[x].nodeKill.mode: cannot be together with fault gc"}},

		"the same replica at once": {faults: []v1alpha1.Fault{killOf("x", "1s", indexes(0, 1)), {Name: "y", At: "2s", Pause: &v1alpha1.Pause{Target: indexes(1)}}},
			want: []string{`faults[y]: stops a replica that fault "x" of the same point has stopped`}},
		"the same replica, perhaps": {faults: []v1alpha1.Fault{killOf("x", "1s", picking(1)), killOf("y", "2s", picking(1))}, want: []string{`faults[y]: has stopped, or may have`}},
		"the same replica later":    {faults: []v1alpha1.Fault{{Name: "x", At: "1s", For: lasting("1s"), Pause: &v1alpha1.Pause{Target: indexes(1)}}, killOf("y", "2s", indexes(1))}},
		"the same replica between repetitions": {faults: []v1alpha1.Fault{
			{Name: "x", At: "1s", For: lasting("1s"), Repeat: &v1alpha1.Repeat{Every: "3s", Times: 2}, Pause: &v1alpha1.Pause{Target: indexes(1)}}, killOf("y", "3s", indexes(1))},
			want: []string{`faults[y]: stops a replica that fault "x"`}},
		"the same replica after all repetitions": {faults: []v1alpha1.Fault{
			{Name: "x", At: "1s", For: lasting("1s"), Repeat: &v1alpha1.Repeat{Every: "3s", Times: 2}, Pause: &v1alpha1.Pause{Target: indexes(1)}}, killOf("y", "5s", indexes(1))}},
		"the leader, before a name": {faults: []v1alpha1.Fault{{Name: "y", At: "1s", Pause: &v1alpha1.Pause{Target: v1alpha1.Target{Role: "leader"}}}, killOf("x", "1s", indexes(0))}},
		"other replicas at once":    {faults: []v1alpha1.Fault{killOf("x", "1s", indexes(0)), killOf("y", "1s", indexes(1))}},
		"the leader, at once":       {faults: []v1alpha1.Fault{killOf("x", "1s", indexes(0)), {Name: "y", At: "1s", Pause: &v1alpha1.Pause{Target: v1alpha1.Target{Role: "leader"}}}}},

		"one side":            {faults: grouping(indexes(0, 1), indexes(2))},
		"both sides":          {faults: grouping(indexes(0, 1), indexes(1, 2)), want: []string{"faults[x].partition.groups[1]: a replica of an earlier group is in this one, too"}},
		"a wrong group":       {faults: grouping(indexes(7), indexes(0)), want: []string{"faults[x].partition.groups[0].replicas[0]: 0 to 3"}},
		"the rest by lot":     {faults: grouping(indexes(0), picking(3))},
		"more than the rest":  {faults: grouping(indexes(0), picking(4)), want: []string{"faults[x].partition.groups[1].pick: but only 3 match in shard 0"}},
		"none is left":        {faults: grouping(component("proxy", 0, 1, 2), v1alpha1.Target{Component: "proxy", Pick: new(intstr.FromInt(1))}), want: []string{"faults[x].partition.groups[1].pick: picks 1 pods of component proxy, but only 0 match"}},
		"two lots":            {faults: grouping(picking(2), picking(2))},
		"two lots too many":   {faults: grouping(picking(2), picking(3)), want: []string{"faults[x].partition.groups[1].pick: picks 3 replicas of each shard, but only 2 match"}},
		"three lots too many": {faults: grouping(picking(1), picking(2), picking(2)), want: []string{"faults[x].partition.groups[2].pick: picks 2 replicas of each shard, but only 1 match"}},
		"a lot before a name": {faults: grouping(picking(1), indexes(0)), want: []string{"faults[x].partition.groups[1]: groups that pick come last"}},
		"one direction":       {faults: parting(v1alpha1.Partition{From: new(indexes(0)), To: new(indexes(1))})},
		"from no pod":         {faults: parting(v1alpha1.Partition{To: new(indexes(1))}), want: []string{"faults[x].partition: set exactly one of: groups; isolate; from and to"}},
		"in two ways":         {faults: parting(v1alpha1.Partition{Isolate: new(indexes(0)), Groups: []v1alpha1.Target{indexes(1)}}), want: []string{"faults[x].partition: set exactly one of"}},
		"from a role":         {faults: parting(v1alpha1.Partition{From: &v1alpha1.Target{Role: "leader"}, To: new(indexes(1))}), want: []string{"faults[x].partition.from.role: nodeKill, pause, command, flameGraph and partition.isolate only"}},
		"isolate a role":      {faults: parting(v1alpha1.Partition{Isolate: &v1alpha1.Target{Role: "leader"}})},
		"without rights":      {faults: parting(v1alpha1.Partition{Isolate: new(indexes(0))}), change: unshaped, want: []string{"faults[x].partition: needs the capability NET_ADMIN"}},

		"some clients":  {faults: []v1alpha1.Fault{clients("25%")}},
		"no client":     {faults: []v1alpha1.Fault{clients("24%")}, want: []string{"faults[x].clientBehavior.share: is 0 of 4 clients"}},
		"all clients":   {faults: []v1alpha1.Fault{clients("100%")}, want: []string{"faults[x].clientBehavior.share: "}},
		"no share":      {faults: []v1alpha1.Fault{clients("some")}, want: []string{"faults[x].clientBehavior.share: more than 0% and less than 100%"}},
		"clients twice": {faults: []v1alpha1.Fault{clients("50%"), {Name: "y", ClientBehavior: &v1alpha1.ClientBehavior{Share: "50%"}}}, want: []string{`faults[y]: "y": another fault of the same point changes the behavior of clients already`}},
		"clients' parameters": {faults: []v1alpha1.Fault{{Name: "x", ClientBehavior: &v1alpha1.ClientBehavior{Share: "50%", Parameters: map[string]v1alpha1.Value{"rtae": v1alpha1.NewValue("1")}}}},
			want: []string{"faults[x].clientBehavior.parameters[rtae]: declares no parameter rtae"}},
		"clients without a driver": {faults: []v1alpha1.Fault{clients("50%")}, change: func(p *Point) { p.Spec.Clients.Driver = nil }, want: []string{"faults[x].clientBehavior: clients without a driver process"}},
		"clients that only echo":   {faults: []v1alpha1.Fault{clients("50%")}, change: func(p *Point) { p.Spec.Clients.Driver.Protocol = "Echo" }, want: []string{"faults[x].clientBehavior: clients without a driver process"}},

		"Chaos Mesh":                   {faults: []v1alpha1.Fault{delayed("1s", indexes(0), new(indexes(1)))}},
		"an object of no kind":         {faults: []v1alpha1.Fault{chaosOf("Chaos", `{}`, "1s", "1s", indexes(0))}, want: []string{"faults[cm].chaosMesh.kind: supported values"}},
		"a target of Chaos Mesh":       {faults: []v1alpha1.Fault{delayed("1s", indexes(9), nil)}, want: []string{"faults[cm].chaosMesh.target.replicas[0]: 0 to 3"}},
		"its own other end":            {faults: []v1alpha1.Fault{delayed("1s", indexes(0, 1), new(indexes(1)))}, want: []string{"faults[cm].chaosMesh.peers: no pod is its own other end"}},
		"its own other end, by lot":    {faults: []v1alpha1.Fault{delayed("1s", picking(3), new(indexes(0, 1, 2)))}, want: []string{"faults[cm].chaosMesh.peers: no pod is its own other end"}},
		"an other end that is left":    {faults: []v1alpha1.Fault{delayed("1s", picking(3), new(indexes(0, 1, 2, 3)))}},
		"its traffic control and ours": {faults: []v1alpha1.Fault{delayed("1s", indexes(0), nil)}, change: shaped, want: []string{"faults[cm].chaosMesh.kind: deletes the root queueing discipline"}},
		"its traffic control and our fault": {faults: []v1alpha1.Fault{delayed("1s", indexes(0), nil),
			{Name: "slow", At: "1s", Degrade: &v1alpha1.Degrade{Target: new(indexes(1)), LinkEffect: v1alpha1.LinkEffect{Delay: lasting("1ms")}}}},
			want: []string{"faults[cm].chaosMesh.kind: the links that fault slow of the same point shapes"}},
		"its proxy and ours": {faults: []v1alpha1.Fault{chaosOf("HTTPChaos", `{"target":"Request","port":80,"abort":true}`, "1s", "1s", indexes(0))}, change: shaped,
			want: []string{"faults[cm].chaosMesh.kind: through a bridge and a proxy of its own"}},
		"replaced pods":              {faults: []v1alpha1.Fault{podKill(indexes(0)), clients("50%")}},
		"replaced pods and links":    {faults: []v1alpha1.Fault{podKill(indexes(0))}, change: shaped, want: []string{"faults[cm].chaosMesh.spec: pod-kill cannot be together with a shaped network: the pod comes back with another address"}},
		"restarted agents and links": {faults: []v1alpha1.Fault{podFailure}, change: shaped, want: []string{"faults[cm].chaosMesh.spec: pod-failure cannot be together with a shaped network: the agent"}},
		"replaced pods and faults":   {faults: []v1alpha1.Fault{podKill(indexes(0)), killOf("y", "3s", indexes(1))}, want: []string{"faults[cm].chaosMesh.spec: pod-kill cannot be together with fault y of the same point"}},
		"replaced once more":         {faults: []v1alpha1.Fault{podKill(indexes(0)), {Name: "cm2", At: "3s", ChaosMesh: podKill(indexes(0)).ChaosMesh}}},
		"replaced at the same time":  {faults: []v1alpha1.Fault{podKill(indexes(0)), {Name: "cm2", At: "2s", ChaosMesh: podKill(indexes(0)).ChaosMesh}}, want: []string{`faults[cm2]: stops a replica that fault "cm" of the same point has stopped`}},
	} {
		t.Run(name, func(t *testing.T) {
			p := point()
			for _, f := range tc.faults {
				p.Trial.Faults = append(p.Trial.Faults, *f.DeepCopy())
			}
			if tc.change != nil {
				tc.change(&p)
			}
			wantErrors(t, Check(p), tc.want)
		})
	}
}

// Check puts the parameters of clients into canonical form.
func TestParametersOfClientsAreCanonical(t *testing.T) {
	p := point()
	p.Trial.Faults = []v1alpha1.Fault{{Name: "x", ClientBehavior: &v1alpha1.ClientBehavior{Share: "50%", Parameters: map[string]v1alpha1.Value{"rate": v1alpha1.NewValue(" 7 ")}}}}
	wantErrors(t, Check(p), nil)
	if got := Behavior(p.Trial.Faults).Parameters["rate"]; got.String() != "7" {
		t.Errorf("%q, want 7", got)
	}
	if Behavior([]v1alpha1.Fault{killOf("x", "1s", indexes(0))}) != nil {
		t.Error("clients misbehave without a fault that says so")
	}
}

func TestCheckDegrade(t *testing.T) {
	all := new(v1alpha1.Target{Regions: []string{"east", "west"}})
	slow := func(name, at, length string, effect v1alpha1.LinkEffect) v1alpha1.Fault {
		f := v1alpha1.Fault{Name: name, At: v1alpha1.Duration(at), Degrade: &v1alpha1.Degrade{Target: all, LinkEffect: effect}}
		if length != "" {
			f.For = lasting(length)
		}
		return f
	}
	delay := func(d string) v1alpha1.LinkEffect { return v1alpha1.LinkEffect{Delay: lasting(d)} }
	half := fmt.Sprintf("%ds", int(shaping.MaxDelay.Seconds()/2))
	for name, tc := range map[string]struct {
		faults []v1alpha1.Fault
		change func(p *Point)
		want   []string
	}{
		"a delay":           {faults: []v1alpha1.Fault{slow("x", "1s", "1s", delay("5ms"))}},
		"one direction":     {faults: []v1alpha1.Fault{{Name: "x", At: "1s", Degrade: &v1alpha1.Degrade{From: new(indexes(0)), LinkEffect: delay("5ms")}}}},
		"no links":          {faults: []v1alpha1.Fault{{Name: "x", At: "1s", Degrade: &v1alpha1.Degrade{LinkEffect: delay("5ms")}}}, want: []string{"faults[x].degrade: set either target"}},
		"links in two ways": {faults: []v1alpha1.Fault{{Name: "x", At: "1s", Degrade: &v1alpha1.Degrade{Target: all, To: all, LinkEffect: delay("5ms")}}}, want: []string{"faults[x].degrade: set either target"}},
		"no change":         {faults: []v1alpha1.Fault{slow("x", "1s", "1s", v1alpha1.LinkEffect{})}, want: []string{"faults[x].degrade: changes nothing: set at least one of delay, jitter, loss, rate"}},
		"no delay":          {faults: []v1alpha1.Fault{slow("x", "1s", "1s", delay("late"))}, want: []string{"faults[x].degrade.delay: "}},
		"a target that is not": {faults: []v1alpha1.Fault{{Name: "x", At: "1s", Degrade: &v1alpha1.Degrade{Target: new(indexes(9)), LinkEffect: delay("5ms")}}},
			want: []string{"faults[x].degrade.target.replicas[0]: 0 to 3"}},
		"a role":         {faults: []v1alpha1.Fault{{Name: "x", At: "1s", Degrade: &v1alpha1.Degrade{To: &v1alpha1.Target{Role: "leader"}, LinkEffect: delay("5ms")}}}, want: []string{"faults[x].degrade.to.role: nodeKill, pause, command, flameGraph and partition.isolate only"}},
		"without rights": {faults: []v1alpha1.Fault{slow("x", "1s", "1s", delay("5ms"))}, change: func(p *Point) { p.Trial.Network.Shaping = v1alpha1.ShapingNone }, want: []string{"faults[x].degrade: needs the capability NET_ADMIN"}},
		"jitter without delay": {faults: []v1alpha1.Fault{{Name: "x", At: "1s", Degrade: &v1alpha1.Degrade{From: new(indexes(0)), To: new(indexes(1)), LinkEffect: v1alpha1.LinkEffect{Jitter: lasting("5ms")}}}},
			want: []string{"faults[x].degrade.jitter: the link within east would have a jitter of 5ms, but a delay of 0s only"}},
		"jitter without delay to all": {faults: []v1alpha1.Fault{{Name: "x", At: "1s", Degrade: &v1alpha1.Degrade{From: new(indexes(0)), LinkEffect: v1alpha1.LinkEffect{Jitter: lasting("5ms")}}}},
			want: []string{"faults[x].degrade.jitter: the link within east would have a jitter", "faults[x].degrade.jitter: the link east to west would have a jitter"}},
		"jitter without delay from all": {faults: []v1alpha1.Fault{{Name: "x", At: "1s", Degrade: &v1alpha1.Degrade{To: new(indexes(0)), LinkEffect: v1alpha1.LinkEffect{Jitter: lasting("5ms")}}}},
			want: []string{"faults[x].degrade.jitter: the link within east would have a jitter", "faults[x].degrade.jitter: the link west to east would have a jitter"}},
		"jitter without delay of links in two ways": {faults: []v1alpha1.Fault{{Name: "x", At: "1s", Degrade: &v1alpha1.Degrade{Target: all, From: all, LinkEffect: v1alpha1.LinkEffect{Jitter: lasting("5ms")}}}},
			want: []string{"faults[x].degrade: set either target"}},
		"jitter with the network's delay": {faults: []v1alpha1.Fault{{Name: "x", At: "1s", Degrade: &v1alpha1.Degrade{
			From: &v1alpha1.Target{Regions: []string{"east"}}, To: &v1alpha1.Target{Regions: []string{"west"}}, LinkEffect: v1alpha1.LinkEffect{Jitter: lasting("5ms")}}}},
			change: func(p *Point) {
				p.Trial.Network.Links = []v1alpha1.RegionLink{{From: "east", To: "west", LinkEffect: v1alpha1.LinkEffect{Delay: lasting("5ms")}}}
			}},
		"more than the network's delay": {faults: []v1alpha1.Fault{{Name: "x", At: "1s", Degrade: &v1alpha1.Degrade{
			From: &v1alpha1.Target{Regions: []string{"east"}}, To: &v1alpha1.Target{Regions: []string{"west"}}, LinkEffect: delay(half)}}},
			change: func(p *Point) {
				p.Trial.Network.Links = []v1alpha1.RegionLink{{From: "east", To: "west", LinkEffect: v1alpha1.LinkEffect{Delay: lasting(half + "1ms")}}}
			},
			want: []string{"faults[x].degrade.delay: the link east to west, which is asked to have"}},
		"two at once": {faults: []v1alpha1.Fault{
			{Name: "x", At: "1s", For: lasting("2s"), Degrade: &v1alpha1.Degrade{From: new(indexes(0)), To: new(indexes(1)), LinkEffect: delay(half)}},
			{Name: "y", At: "2s", For: lasting("2s"), Degrade: &v1alpha1.Degrade{From: new(indexes(0)), To: new(indexes(1)), LinkEffect: delay(half + "1ms")}}},
			want: []string{"faults[y].degrade.delay: together with fault x; at most"}},
		"two after each other": {faults: []v1alpha1.Fault{
			{Name: "x", At: "1s", For: lasting("1s"), Degrade: &v1alpha1.Degrade{From: new(indexes(0)), To: new(indexes(1)), LinkEffect: delay(half)}},
			{Name: "y", At: "2s", For: lasting("2s"), Degrade: &v1alpha1.Degrade{From: new(indexes(0)), To: new(indexes(1)), LinkEffect: delay(half + "1ms")}}}},
		"two links at once": {faults: []v1alpha1.Fault{
			{Name: "x", At: "1s", For: lasting("2s"), Degrade: &v1alpha1.Degrade{From: new(indexes(0)), To: new(indexes(1)), LinkEffect: delay(half)}},
			{Name: "y", At: "2s", For: lasting("2s"), Degrade: &v1alpha1.Degrade{From: new(indexes(2)), To: new(indexes(3)), LinkEffect: delay(half + "1ms")}}}},
		"delay and jitter beyond what is possible": {faults: []v1alpha1.Fault{{Name: "x", At: "1s", Degrade: &v1alpha1.Degrade{From: new(indexes(0)), To: new(indexes(1)),
			LinkEffect: v1alpha1.LinkEffect{Delay: lasting(half + "1ms"), Jitter: lasting(half)}}}}, want: []string{"faults[x].degrade.jitter: are possible together"}},
		"a rate":                   {faults: []v1alpha1.Fault{{Name: "x", At: "1s", Degrade: &v1alpha1.Degrade{From: new(indexes(0)), LinkEffect: v1alpha1.LinkEffect{Rate: "10Mbit"}}}}},
		"as much as is possible":   {faults: []v1alpha1.Fault{slow("x", "1s", "1s", delay(shaping.MaxDelay.String()))}},
		"as much delay and jitter": {faults: []v1alpha1.Fault{slow("x", "1s", "1s", v1alpha1.LinkEffect{Delay: lasting(half), Jitter: lasting(half)})}},
		"the same rate": {faults: []v1alpha1.Fault{{Name: "x", At: "1s", Degrade: &v1alpha1.Degrade{From: &v1alpha1.Target{Regions: []string{"east"}}, To: &v1alpha1.Target{Regions: []string{"west"}}, LinkEffect: v1alpha1.LinkEffect{Rate: "10Mbit"}}}},
			change: func(p *Point) {
				p.Trial.Network.Links = []v1alpha1.RegionLink{{From: "east", To: "west", LinkEffect: v1alpha1.LinkEffect{Rate: "10Mbit"}}}
			},
			want: []string{"faults[x].degrade.rate: no link that it is for is faster than that"}},
		"a rate above the rate": {faults: []v1alpha1.Fault{{Name: "x", At: "1s", Degrade: &v1alpha1.Degrade{From: &v1alpha1.Target{Regions: []string{"east"}}, To: &v1alpha1.Target{Regions: []string{"west"}}, LinkEffect: v1alpha1.LinkEffect{Rate: "20Mbit"}}}},
			change: func(p *Point) {
				p.Trial.Network.Links = []v1alpha1.RegionLink{{From: "east", To: "west", LinkEffect: v1alpha1.LinkEffect{Rate: "10Mbit"}}}
			},
			want: []string{"faults[x].degrade.rate: no link that it is for is faster than that"}},
		"a network that cannot be": {faults: []v1alpha1.Fault{slow("x", "1s", "1s", delay("5ms"))}, change: func(p *Point) {
			p.Trial.Network.Links = []v1alpha1.RegionLink{{From: "east", To: "mars"}}
		}}, // another check of the network reports it
	} {
		t.Run(name, func(t *testing.T) {
			p := point()
			for _, f := range tc.faults {
				p.Trial.Faults = append(p.Trial.Faults, *f.DeepCopy())
			}
			if tc.change != nil {
				tc.change(&p)
			}
			wantErrors(t, Check(p), tc.want)
		})
	}
}

func TestQuestionsAboutFaults(t *testing.T) {
	type answers struct{ KillsPods, ResetsMachines, ShapesLinks, UsesChaosMesh, ReplacesPods, MovesPods bool }
	machine := killOf("x", "1s", indexes(0))
	machine.NodeKill.Mode = v1alpha1.KillMachine
	for name, tc := range map[string]struct {
		fault v1alpha1.Fault
		want  answers
	}{
		"a kill":        {killOf("x", "1s", indexes(0)), answers{KillsPods: true}},
		"a machine":     {machine, answers{ResetsMachines: true, MovesPods: true}},
		"a pause":       {v1alpha1.Fault{Pause: &v1alpha1.Pause{}}, answers{}},
		"a degrade":     {v1alpha1.Fault{Degrade: &v1alpha1.Degrade{}}, answers{ShapesLinks: true}},
		"a pod-kill":    {chaosOf("PodChaos", `{"action":"pod-kill"}`, "1s", "", indexes(0)), answers{UsesChaosMesh: true, ReplacesPods: true, MovesPods: true}},
		"a pod-failure": {chaosOf("PodChaos", `{"action":"pod-failure"}`, "1s", "1s", indexes(0)), answers{UsesChaosMesh: true}},
		"nothing":       {v1alpha1.Fault{}, answers{}},
	} {
		t.Run(name, func(t *testing.T) {
			all := []v1alpha1.Fault{{Name: "other", ClientBehavior: &v1alpha1.ClientBehavior{}}, tc.fault}
			got := answers{KillsPods(&tc.fault), ResetsMachines(all), ShapesLinks(all), UsesChaosMesh(all), ReplacesPods(all), MovesPods(all)}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// A pod that is killed is not under a fault later. A pod that fails is, until the fault ends.
func TestFaultsThatAreOverAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		fault v1alpha1.Fault
		want  bool
	}{
		"a pod-kill":    {chaosOf("PodChaos", `{"action":"pod-kill"}`, "1s", "", indexes(0)), true},
		"a pod-failure": {chaosOf("PodChaos", `{"action":"pod-failure"}`, "1s", "1s", indexes(0)), false},
		"a pause":       {v1alpha1.Fault{Pause: &v1alpha1.Pause{}}, false},
	} {
		if got := (chaos{f: &tc.fault}).oneShot(); got != tc.want {
			t.Errorf("%s is over at once: %t, want %t", name, got, tc.want)
		}
	}
}

func TestSetDefaults(t *testing.T) {
	faults := []v1alpha1.Fault{killOf("x", "1s", indexes(0)), {Name: "y", Partition: &v1alpha1.Partition{}}, {Name: "z", NodeKill: &v1alpha1.NodeKill{Mode: v1alpha1.KillMachine, Disk: "Lose"}}}
	SetDefaults(faults)
	got := []string{faults[0].NodeKill.Mode, faults[0].NodeKill.Disk, faults[1].Partition.Clients, faults[2].NodeKill.Mode, faults[2].NodeKill.Disk}
	if want := []string{"Pods", "Keep", "Everyone", "Machine", "Lose"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestOccurrences(t *testing.T) {
	late := chaosOf("NetworkChaos", `{"action":"partition"}`, "1s", "500ms", indexes(0, 1))
	late.ChaosMesh.Peers, late.Repeat = new(indexes(2)), &v1alpha1.Repeat{Every: "2s", Times: 2}
	replace := chaosOf("PodChaos", `{"action":"pod-kill"}`, "0s", "", indexes(2))
	replace.Name = "replace"
	restart := chaosOf("PodChaos", `{"action":"pod-failure"}`, "7s", "1s", indexes(2))
	restart.Name = "restart"
	got, err := Occurrences([]v1alpha1.Fault{late, killOf("kill", "1s", indexes(0)), replace, restart}, windows, cast{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, o := range got {
		lines = append(lines, fmt.Sprintf("%s %d %v-%v %v %v %t %t %t", o.ID, o.Time, o.From, o.To, o.Pods, o.Peers, o.Replaces(), o.Restarts(), o.RestartsAgent()))
	}
	want := []string{
		"replace/1 1 0s-0s [r2] [] true false false",
		"cm/1 1 1s-1.5s [r0 r1] [r2] false false false", "cm/2 2 3s-3.5s [r0 r1] [r2] false false false",
		"restart/1 1 7s-8s [r2] [] false true true",
	}
	if d := cmp.Diff(want, lines); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got, err := Occurrences([]v1alpha1.Fault{killOf("kill", "1s", indexes(0))}, windows, cast{}); got != nil || err != nil {
		t.Errorf("%v, %v; want none", got, err)
	}
	if _, err := Occurrences([]v1alpha1.Fault{chaosOf("PodChaos", `{}`, "1s", "", indexes(9))}, windows, cast{}); err == nil {
		t.Error("a fault that hits nobody has an occurrence")
	}
}

// The number of a trial's actions is bounded, so that its manager and its agents can keep them.
func TestActionsAreBounded(t *testing.T) {
	f := v1alpha1.Fault{Name: "x", At: "0s", For: lasting("1ms"), Repeat: &v1alpha1.Repeat{Every: "2ms", Times: MaxActions/2 + 1}, Pause: &v1alpha1.Pause{Target: indexes(0)}}
	if _, err := Build([]v1alpha1.Fault{f}, windows, cast{}); err == nil || !strings.Contains(err.Error(), "more than 20000 actions") {
		t.Errorf("%v; want an error that names the bound", err)
	}
	f.Repeat.Times--
	if got, err := Build([]v1alpha1.Fault{f}, windows, cast{}); err != nil || len(got) != MaxActions {
		t.Errorf("%d actions, %v; want %d", len(got), err, MaxActions)
	}
}

// If a flapping partition ends when a period begins, it does not begin once more.
func TestAFlappingPartitionEndsWithAPeriod(t *testing.T) {
	f := v1alpha1.Fault{Name: "x", At: "0s", For: lasting("2s"), Partition: &v1alpha1.Partition{Flap: &v1alpha1.Flap{Period: "1s"}}}
	want := []Span{{0, 500 * time.Millisecond}, {time.Second, 1500 * time.Millisecond}}
	if d := cmp.Diff(want, Spans(f, windows)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A flapping partition that lasts to the end of the trial flaps until the last request.
func TestAFlappingPartitionToTheEnd(t *testing.T) {
	f := v1alpha1.Fault{Name: "x", At: "10s", Partition: &v1alpha1.Partition{Flap: &v1alpha1.Flap{Period: "800ms"}}}
	want := []Span{{10 * time.Second, 10400 * time.Millisecond}, {10800 * time.Millisecond, 11200 * time.Millisecond}, {11600 * time.Millisecond, 12 * time.Second}}
	if d := cmp.Diff(want, Spans(f, windows)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
