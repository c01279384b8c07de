package plan

import (
	"fmt"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
)

func machinesSystem() v1alpha1.SystemSpec {
	return v1alpha1.SystemSpec{
		Machines: []v1alpha1.MachineGroup{{Name: "nodes", Count: "3", Hostnames: "node-{{.Index}}", Image: "lab/a:1"}},
		Script: &v1alpha1.Script{Command: []string{"./run.sh"}, Results: v1alpha1.ScriptResults{
			Path: "~/t.tsv", Axes: []v1alpha1.RowAxis{{Name: "scheme"}}, Numbers: []v1alpha1.RowNumber{{Name: "Throughput", Column: "ops"}},
		}},
	}
}

func TestSystemsWithMachinesAreChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.SystemSpec)
		want   string // empty: it is right
	}{
		"as it should be": {change: func(*v1alpha1.SystemSpec) {}},
		"a group that is not there": {func(s *v1alpha1.SystemSpec) { s.Script.Group = "control" },
			`spec.script.group: Unsupported value: "control": supported values: "nodes"`},
		"one machine": {func(s *v1alpha1.SystemSpec) { s.Machines[0].Count = "1" }, "is one machine in all; a trial needs a second one"},
		"one name for three": {func(s *v1alpha1.SystemSpec) { s.Machines[0].Hostnames = "node" },
			"gives all machines of the group one name; write {{.Index}}"},
		"no script":                   {func(s *v1alpha1.SystemSpec) { s.Script = nil }, "machines need a script"},
		"root by name alone":          {func(s *v1alpha1.SystemSpec) { s.Machines[0].User = "root" }, "set user: root and runAsUser: 0, or neither"},
		"a count that cannot be read": {func(s *v1alpha1.SystemSpec) { s.Machines[0].Count = "three" }, "spec.machines[0].count"},
		"a path out of the home":      {func(s *v1alpha1.SystemSpec) { s.Script.Results.Path = "../x" }, `must not contain ".."`},
		"an axis of every sweep": {func(s *v1alpha1.SystemSpec) { s.Script.Results.Axes[0].Name = "clients" },
			"is the name of another axis or of a parameter"},
		"a column twice": {func(s *v1alpha1.SystemSpec) { s.Script.Results.Numbers[0].Column = "scheme" }, "a column is one thing"},
		"a latency without a unit": {func(s *v1alpha1.SystemSpec) { s.Script.Results.Numbers[0].Name = "P99Latency" },
			"a latency has one of ns, us, ms, s"},
		"a rate in seconds": {func(s *v1alpha1.SystemSpec) { s.Script.Results.Numbers[0].Unit = "s" }, "Throughput has no such unit"},
		"numbers of a known format": {func(s *v1alpha1.SystemSpec) { s.Script.Results.Format = "HATSTable" },
			"says itself what its numbers are"},
		"marks and windows between them": {change: func(s *v1alpha1.SystemSpec) {
			s.Script.Marks = []v1alpha1.Mark{{Name: "row", Pattern: `^(?P<scheme>\w+)`}, {Name: "up", Pattern: "ready", Machine: "node-2", File: "log"}}
			s.Script.Results.Window = &v1alpha1.RowWindow{From: "row", To: "up"}
		}},
		"a pattern that cannot be read": {func(s *v1alpha1.SystemSpec) { s.Script.Marks = []v1alpha1.Mark{{Name: "row", Pattern: "("}} },
			"spec.script.marks[0].pattern: Invalid value: \"(\": is no regular expression"},
		"a mark twice": {func(s *v1alpha1.SystemSpec) {
			s.Script.Marks = []v1alpha1.Mark{{Name: "row", Pattern: "a"}, {Name: "row", Pattern: "b"}}
		}, "spec.script.marks[1].name: Duplicate value"},
		"a mark on no machine": {func(s *v1alpha1.SystemSpec) {
			s.Script.Marks = []v1alpha1.Mark{{Name: "row", Pattern: "a", Machine: "nod-1", File: "log"}}
		}, "the System has no machine of this name"},
		"what another machine prints": {func(s *v1alpha1.SystemSpec) {
			s.Script.Marks = []v1alpha1.Mark{{Name: "row", Pattern: "a", Machine: "node-1"}}
		}, "spec.script.marks[0].file: Required value"},
		"a window from no mark": {func(s *v1alpha1.SystemSpec) {
			s.Script.Marks = []v1alpha1.Mark{{Name: "row", Pattern: `(?P<scheme>a)`}}
			s.Script.Results.Window = &v1alpha1.RowWindow{From: "rows"}
		}, `spec.script.results.window.from: Invalid value: "rows": spec.script.marks has no mark`},
		"a window of no row": {func(s *v1alpha1.SystemSpec) {
			s.Script.Marks = []v1alpha1.Mark{{Name: "row", Pattern: `(?P<shema>a)`}}
			s.Script.Results.Window = &v1alpha1.RowWindow{From: "row"}
		}, "its pattern needs a group (?P<scheme>...)"},
		"a home of Assay's": {func(s *v1alpha1.SystemSpec) { s.Machines[0].Home = "/assay/x" }, "must not be / and not lie in /assay"},
	} {
		t.Run(name, func(t *testing.T) {
			system := machinesSystem()
			tc.change(&system)
			errs := ValidateSystem(&system, nil)
			switch {
			case tc.want == "" && len(errs) > 0:
				t.Errorf("refused: %v", errs.ToAggregate())
			case tc.want != "" && (len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), tc.want)):
				t.Errorf("the problems are %v, want %q", errs.ToAggregate(), tc.want)
			}
		})
	}
}

func TestExperimentsOfScriptsAreChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Experiment)
		want   string
	}{
		"as it should be": {change: func(*v1alpha1.Experiment) {}},
		"no axis for the rows": {func(e *v1alpha1.Experiment) { e.Spec.Sweep = nil },
			`System "s" tells its rows apart by "scheme"; add an axis of that name`},
		"what a script decides is left out": {change: func(e *v1alpha1.Experiment) {
			e.Spec.Workload, e.Spec.Clients, e.Spec.Schedule = v1alpha1.WorkloadReference{}, v1alpha1.Clients{}, v1alpha1.Schedule{}
		}},
		"an axis of clients": {func(e *v1alpha1.Experiment) {
			e.Spec.Sweep = append(e.Spec.Sweep, v1alpha1.Axis{Axis: "clients", Values: values("1", "2")})
		}, "sets the load of clients, and a script has clients of its own"},
		"stopping": {func(e *v1alpha1.Experiment) {
			e.Spec.Repetitions = v1alpha1.Repetitions{Min: 3, Max: ptr(int32(9)), Until: &v1alpha1.StoppingRule{RelativeCI: "5%"}}
		}, "one run of a script gives results of several points"},
		"a value twice": {func(e *v1alpha1.Experiment) { e.Spec.Sweep[0].Values = values("a", "a") }, "Duplicate value"},
	} {
		t.Run(name, func(t *testing.T) {
			exp := &v1alpha1.Experiment{Spec: v1alpha1.ExperimentSpec{
				Systems: []v1alpha1.SystemReference{{Name: "s"}}, Topology: v1alpha1.Topology{Shards: 1}, Workload: v1alpha1.WorkloadReference{Name: "script"},
				Network: v1alpha1.Network{Profile: "lan"},
				Clients: v1alpha1.Clients{Loop: v1alpha1.LoopClosed, Nodes: 1, Count: 1, Timeout: "10s", Retry: v1alpha1.Retry{Backoff: "2ms", MaxBackoff: "300ms"}},
				Sweep:   []v1alpha1.Axis{{Axis: "scheme", Values: values("a", "b")}}, Schedule: v1alpha1.Schedule{WarmUp: "0s", Measure: "1m", CoolDown: "0s", Drain: "1s"},
				Repetitions: v1alpha1.Repetitions{Min: 3},
			}}
			exp.Name = "e"
			tc.change(exp)
			p, errs := Expand(exp, map[string]v1alpha1.SystemSpec{"s": machinesSystem()})
			switch {
			case tc.want != "" && (len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), tc.want)):
				t.Errorf("the problems are %v, want %q", errs.ToAggregate(), tc.want)
			case tc.want == "" && len(errs) > 0:
				t.Errorf("refused: %v", errs.ToAggregate())
			case tc.want == "" && (len(p.Points) != 1 || len(p.Points[0].Template.Script.Rows) != 2):
				t.Errorf("the plan has %d runs, want one with two rows", len(p.Points))
			case tc.want == "" && p.ResultsOfATrial() != 2:
				t.Errorf("%d results of a trial, want those of two rows", p.ResultsOfATrial())
			}
		})
	}
}

func values(texts ...string) (out []v1alpha1.Value) {
	for _, text := range texts {
		out = append(out, v1alpha1.NewValue(text))
	}
	return out
}

// Faults name machines by their host names. They mean the replicas or pods that are these machines.
func TestFaultsCallMachinesByName(t *testing.T) {
	system := machinesSystem()
	system.Machines = append(system.Machines, v1alpha1.MachineGroup{Name: "stores", Count: "2", Hostnames: "s{{add .Index 1}} s{{add .Index 1}}.lab", Image: "i"})
	for name, tc := range map[string]struct {
		target v1alpha1.Target
		want   string // the target, or a part of the error
	}{
		"a replica":                   {v1alpha1.Target{Machine: "node-2"}, "[1]  []"},
		"a pod of another group":      {v1alpha1.Target{Machine: "s2.lab"}, "[] stores [1]"},
		"one that is not there":       {v1alpha1.Target{Machine: "node-x"}, `System "s" has no machine of this name`},
		"one beyond the last":         {v1alpha1.Target{Machine: "node-7"}, "has no machine of this name; its machines are node-0 to node-2, s1 to s2"},
		"that of the script":          {v1alpha1.Target{Machine: "node-0"}, "runs its script on this machine"},
		"a machine and a replica too": {v1alpha1.Target{Machine: "node-1", Replicas: []int32{0}}, "leave out what else the target says"},
	} {
		t.Run(name, func(t *testing.T) {
			exp := &v1alpha1.Experiment{Spec: v1alpha1.ExperimentSpec{
				Systems: []v1alpha1.SystemReference{{Name: "s"}}, Sweep: []v1alpha1.Axis{{Axis: "scheme", Values: values("a", "b")}},
				Faults: []v1alpha1.Fault{{Name: "f", At: "5s", EveryPoint: true, NodeKill: &v1alpha1.NodeKill{Target: tc.target}}},
			}}
			exp.Name = "e"
			p, errs := Expand(exp, map[string]v1alpha1.SystemSpec{"s": system})
			got := ""
			if len(errs) > 0 {
				got = errs.ToAggregate().Error()
			} else {
				target := p.Points[0].Template.Faults[0].NodeKill.Target
				got = fmt.Sprint(target.Replicas, " ", target.Component, " ", target.Pods)
			}
			if !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Faults may count from the marks that a System declares.
func TestFaultsCountFromMarks(t *testing.T) {
	system := machinesSystem()
	system.Script.Marks = []v1alpha1.Mark{{Name: "row", Pattern: `== (?P<scheme>\w+)`}}
	mark := func(name, group string) *v1alpha1.FaultMark {
		return &v1alpha1.FaultMark{Name: name, Groups: map[string]v1alpha1.Value{group: v1alpha1.NewValue("a")}}
	}
	crash := v1alpha1.Fault{Name: "f", Mark: mark("row", "scheme"), At: "3s", NodeKill: &v1alpha1.NodeKill{Target: v1alpha1.Target{Machine: "node-1"}}}
	other := *crash.DeepCopy()
	other.Name, other.Mark.Groups["scheme"] = "g", v1alpha1.NewValue("b")
	for name, tc := range map[string]struct {
		change func(f *v1alpha1.Fault)
		more   []v1alpha1.Fault
		want   string
	}{
		"as it should be":            {change: func(*v1alpha1.Fault) {}},
		"one machine from two marks": {change: func(*v1alpha1.Fault) {}, more: []v1alpha1.Fault{other}},
		"a command": {change: func(f *v1alpha1.Fault) {
			f.NodeKill, f.RunCommand = nil, &v1alpha1.Command{Target: v1alpha1.Target{Machine: "node-1"}, Run: []string{"sync"}}
		}},
		"another mark":                   {change: func(f *v1alpha1.Fault) { f.Mark.Name = "rows" }, want: `spec.faults[0].mark.name: Invalid value: "rows": System "s" declares no mark`},
		"another group":                  {change: func(f *v1alpha1.Fault) { f.Mark = mark("row", "shema") }, want: `spec.faults[0].mark.groups: Invalid value: "shema"`},
		"at once":                        {change: func(f *v1alpha1.Fault) { f.At = "10ms" }, want: "must be at least 250ms after a mark"},
		"before the mark":                {change: func(f *v1alpha1.Fault) { f.At = "-1s" }, want: "spec.faults[0].at"},
		"a machine of which a node is":   {change: func(f *v1alpha1.Fault) { f.NodeKill.Mode = v1alpha1.KillMachine }, want: "Assay's own faults on pods alone can count from a mark"},
		"the same machine from one mark": {change: func(*v1alpha1.Fault) {}, more: []v1alpha1.Fault{crash}, want: "spec.faults[1]"},
	} {
		t.Run(name, func(t *testing.T) {
			f := *crash.DeepCopy()
			tc.change(&f)
			exp := &v1alpha1.Experiment{Spec: v1alpha1.ExperimentSpec{
				Systems: []v1alpha1.SystemReference{{Name: "s"}}, Sweep: []v1alpha1.Axis{{Axis: "scheme", Values: values("a", "b")}},
				Faults: append([]v1alpha1.Fault{f}, tc.more...),
			}}
			for i := range exp.Spec.Faults {
				exp.Spec.Faults[i].EveryPoint = true
				if i > 0 && exp.Spec.Faults[i].Name == f.Name {
					exp.Spec.Faults[i].Name = "h"
				}
			}
			exp.Name = "e"
			_, errs := Expand(exp, map[string]v1alpha1.SystemSpec{"s": system})
			switch {
			case tc.want == "" && len(errs) > 0:
				t.Errorf("refused: %v", errs.ToAggregate())
			case tc.want != "" && (len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), tc.want)):
				t.Errorf("the problems are %v, want %q", errs.ToAggregate(), tc.want)
			}
		})
	}
}
