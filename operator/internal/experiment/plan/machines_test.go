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
		"no script":              {func(s *v1alpha1.SystemSpec) { s.Script = nil }, "machines need a script"},
		"root by name alone":     {func(s *v1alpha1.SystemSpec) { s.Machines[0].User = "root" }, "set user: root and runAsUser: 0, or neither"},
		"a count that is none":   {func(s *v1alpha1.SystemSpec) { s.Machines[0].Count = "three" }, "spec.machines[0].count"},
		"a path out of the home": {func(s *v1alpha1.SystemSpec) { s.Script.Results.Path = "../x" }, `must not contain ".."`},
		"an axis of every sweep": {func(s *v1alpha1.SystemSpec) { s.Script.Results.Axes[0].Name = "clients" },
			"is the name of another axis or of a parameter"},
		"a column twice": {func(s *v1alpha1.SystemSpec) { s.Script.Results.Numbers[0].Column = "scheme" }, "a column is one thing"},
		"a latency without a unit": {func(s *v1alpha1.SystemSpec) { s.Script.Results.Numbers[0].Name = "P99Latency" },
			"a latency has one of ns, us, ms, s"},
		"a rate in seconds": {func(s *v1alpha1.SystemSpec) { s.Script.Results.Numbers[0].Unit = "s" }, "Throughput has no such unit"},
		"numbers of a known format": {func(s *v1alpha1.SystemSpec) { s.Script.Results.Format = "HATSTable" },
			"says itself what its numbers are"},
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

// Faults call machines by their host names, and mean the replicas or pods that these are.
func TestFaultsCallMachinesByName(t *testing.T) {
	system := machinesSystem()
	system.Machines = append(system.Machines, v1alpha1.MachineGroup{Name: "stores", Count: "2", Hostnames: "s{{add .Index 1}} s{{add .Index 1}}.lab", Image: "i"})
	for name, tc := range map[string]struct {
		target v1alpha1.Target
		want   string // the target, or a part of the refusal
	}{
		"a replica":                   {v1alpha1.Target{Machine: "node-2"}, "[1]  []"},
		"a pod of another group":      {v1alpha1.Target{Machine: "s2.lab"}, "[] stores [1]"},
		"one that is not there":       {v1alpha1.Target{Machine: "node-x"}, `System "s" has no machine of this name`},
		"one beyond the last":         {v1alpha1.Target{Machine: "node-7"}, "0 to 1"},
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
