package validity

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// Once, a client that was ended as planned, without readable output, left no line in the results.
func TestLogsOfTrialsThatDoNotCount(t *testing.T) {
	o := &Observation{Trial: &v1alpha1.Trial{}, Pods: []Pod{{Name: "silent"}, {Name: "client", Report: &protocol.Report{Containers: []protocol.ContainerState{
		{Name: "ended", State: protocol.StateExited, Expected: true, Tail: "usage: client --keys N"},
		{Name: "quiet", State: protocol.StateExited, Expected: true},
	}}}}}
	result := o.Describe()
	if len(result.Logs) > 0 {
		t.Errorf("a trial that counts keeps %v of processes that ended as planned", result.Logs)
	}
	o.KeepLogs(result)
	if len(result.Logs) != 1 || result.Logs["client/ended"] != "usage: client --keys N" {
		t.Errorf("kept are %v; want what client/ended printed", result.Logs)
	}
}

// The results keep the last output of a process only if the process did not end as planned.
func TestLogsOfProcessesAtFault(t *testing.T) {
	for name, tc := range map[string]struct {
		state protocol.ContainerState
		kept  bool
	}{
		"runs":                            {protocol.ContainerState{State: protocol.StateRunning}, false},
		"lost with its container":         {protocol.ContainerState{State: protocol.StateLost}, true},
		"lost, as planned":                {protocol.ContainerState{State: protocol.StateLost, Expected: true}, true},
		"exited by itself":                {protocol.ContainerState{State: protocol.StateExited}, true},
		"ended as planned":                {protocol.ContainerState{State: protocol.StateExited, Expected: true}, false},
		"ended as planned, with a code":   {protocol.ContainerState{State: protocol.StateExited, Expected: true, ExitCode: 137}, false},
		"held down by a fault":            {protocol.ContainerState{State: protocol.StateHeld, Expected: true, ExitCode: 137}, false},
		"runs again after it had failed":  {protocol.ContainerState{State: protocol.StateRunning, ExitCode: 1}, true},
		"runs again after it was revived": {protocol.ContainerState{State: protocol.StateRunning, Expected: true, ExitCode: 137}, false},
	} {
		tc.state.Name, tc.state.Tail = "server", "the last line"
		o := &Observation{Trial: &v1alpha1.Trial{}, Pods: []Pod{{Name: "r-0", Report: &protocol.Report{Containers: []protocol.ContainerState{tc.state}}}}}
		if tail, kept := o.Describe().Logs["r-0/server"]; kept != tc.kept || kept && tail != "the last line" {
			t.Errorf("of a process that %s, %q is kept (%t), want %t", name, tail, kept, tc.kept)
		}
	}
}

func TestLoadsInResults(t *testing.T) {
	phases := []v1alpha1.LoadPhase{{For: "10s", Load: "10%"}}
	for name, tc := range map[string]struct {
		clients  v1alpha1.Clients
		faults   []v1alpha1.Fault
		correct  int32
		changing bool
		closed   *results.ClosedLoop
	}{
		"a closed loop":             {clients: v1alpha1.Clients{Loop: v1alpha1.LoopClosed, Count: 10, ThinkTime: "20ms", Timeout: "500ms"}, correct: 10, closed: &results.ClosedLoop{ThinkMillis: 20, TimeoutMillis: 500}},
		"a closed loop with phases": {clients: v1alpha1.Clients{Loop: v1alpha1.LoopClosed, Count: 10, Phases: phases}, correct: 10, changing: true},
		"an open loop":              {clients: v1alpha1.Clients{Loop: v1alpha1.LoopOpen, Count: 10}, correct: 10},
		"a trace":                   {clients: v1alpha1.Clients{Loop: v1alpha1.LoopOpen, Count: 10, Trace: &v1alpha1.Trace{}}, correct: 10, changing: true},
		"clients that misbehave": {
			clients: v1alpha1.Clients{Loop: v1alpha1.LoopOpen, Count: 10}, correct: 7,
			faults: []v1alpha1.Fault{{Name: "stall", ClientBehavior: &v1alpha1.ClientBehavior{Share: "30%"}}},
		},
	} {
		o := &Observation{Trial: &v1alpha1.Trial{Spec: v1alpha1.TrialSpec{Clients: tc.clients, Faults: tc.faults}}}
		r := o.Describe()
		if r.Clients != 10 || r.CorrectClients != tc.correct || r.ChangingLoad != tc.changing || !reflect.DeepEqual(r.ClosedLoop, tc.closed) {
			t.Errorf("%s: %d of %d clients are correct, changing load: %t, closed loop: %+v", name, r.CorrectClients, r.Clients, r.ChangingLoad, r.ClosedLoop)
		}
	}
}

func TestPhasesInResults(t *testing.T) {
	at := func(seconds int64) *metav1.MicroTime { m := metav1.NewMicroTime(time.Unix(seconds, 0)); return &m }
	o := &Observation{Trial: &v1alpha1.Trial{}}
	o.Trial.Status.GapMilliseconds = 2500
	o.Trial.Status.Times = v1alpha1.TrialTimes{Admitted: at(10), Deployed: at(12), NetworkVerified: at(15), Started: at(20), Loaded: at(28), Released: at(41), Drained: at(75)}
	want := map[string]float64{"deployed": 2, "networkVerified": 3, "started": 5, "loaded": 8, "released": 13, "run": 34}
	r := o.Describe()
	if !reflect.DeepEqual(r.PhaseSeconds, want) || r.GapSeconds != 2.5 {
		t.Errorf("the phases are %v after a gap of %v s, want %v after 2.5 s", r.PhaseSeconds, r.GapSeconds, want)
	}
	o.Trial.Status.Times.Started = nil // so that two phases have no length
	delete(want, "started")
	delete(want, "loaded")
	if got := o.Describe().PhaseSeconds; !reflect.DeepEqual(got, want) {
		t.Errorf("the phases are %v, want %v", got, want)
	}
}

func TestPodsInResults(t *testing.T) {
	o := &Observation{Trial: &v1alpha1.Trial{}, Pods: []Pod{{Name: "c-0", Part: "client", Region: "east", Node: "n-1", Images: "sha256:1", AgentImage: "sha256:2", Restarts: 3, Report: &protocol.Report{
		Host:        protocol.Host{Kernel: "6.1", CPUModel: "EPYC", CPUs: 4, Agent: "v0.2.0"},
		ClockOffset: 5 * time.Millisecond, ClockError: 2 * time.Millisecond, ClockStepped: 7 * time.Millisecond, TCPResets: 9,
		Client: &protocol.ClientRun{Released: -6 * time.Second, Ended: 27 * time.Second, ExitCode: 143, Asked: true},
	}}}}
	want := results.Pod{
		Name: "c-0", Part: "client", Region: "east", Node: "n-1", Images: "sha256:1", AgentImage: "sha256:2", Restarts: 3,
		Kernel: "6.1", CPUModel: "EPYC", CPUs: 4, Agent: "v0.2.0", ClockOffsetMillis: 5, ClockErrorMillis: 2, ClockStepMillis: 7, TCPResets: 9,
		ClientRun: &results.ClientRun{ReleasedMillis: -6000, EndedMillis: 27000, ExitCode: 143, Asked: true},
	}
	if got := o.Describe().Pods; len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("the pods are %+v, want %+v", got, want)
	}
}

func TestRecordsOfActionsInResults(t *testing.T) {
	after := &timeline.After{Mark: "row", Occurrence: 2}
	o := &Observation{
		Trial: &v1alpha1.Trial{},
		Actions: []timeline.Action{
			{ID: "f/2/kill/r-0", Fault: "f", Time: 2, Pod: "r-0", Kind: timeline.Kill, At: 3 * time.Second, After: after, MarkAt: time.Second},
			{ID: "f/2/revive/r-0", Fault: "f", Time: 2, Pod: "r-0", Kind: timeline.Revive, Ends: "f/2/kill/r-0", WithoutSilence: true, Role: "leader"},
			{ID: "p", Pod: "r-1", Kind: timeline.Sample, Profiler: &timeline.Profiler{Tool: "perf", For: 4 * time.Second}},
		},
		Records: map[string]protocol.ActionRecord{
			"f/2/kill/r-0":   {Started: 3001 * time.Millisecond, Confirmed: 3004 * time.Millisecond, Reaped: 3009 * time.Millisecond, Known: 1002 * time.Millisecond},
			"f/2/revive/r-0": {Skipped: true, Unanswered: "no answer in 50ms"},
			"p":              {Samples: 396, Error: "it ended early"},
		},
		Later: []timeline.Action{{ID: "later", Fault: "g", Pod: "r-1", Kind: timeline.Pause, At: time.Second, After: after}},
		Marks: []timeline.Mark{{Name: "row", Groups: map[string]string{"n": "3"}, At: 1500 * time.Millisecond, Line: "row 3"}},
	}
	want := []results.FaultRecord{
		{
			ID: "f/2/kill/r-0", Fault: "f", Time: 2, Pod: "r-0", Kind: "Kill", PlannedMillis: 3000, Mark: "row, time 2", MarkMillis: 1000,
			StartedMillis: 3001, ConfirmedMillis: 3004, ReapedMillis: 3009, KnownMillis: 1002,
		},
		{ID: "f/2/revive/r-0", Fault: "f", Time: 2, Pod: "r-0", Kind: "Revive", Ends: "f/2/kill/r-0", Role: "leader", Skipped: true, Unanswered: "no answer in 50ms"},
		{ID: "p", Pod: "r-1", Kind: "Sample", Profiler: "perf", SampledMillis: 4000, Samples: 396, Error: "it ended early"},
		{ID: "later", Fault: "g", Pod: "r-1", Kind: "Pause", Mark: "row, time 2", Error: "the mark that it counts from did not come"},
	}
	r := o.Describe()
	if !reflect.DeepEqual(r.Faults, want) {
		t.Errorf("the faults are\n%+v, want\n%+v", r.Faults, want)
	}
	if want := []results.Mark{{Name: "row", Groups: map[string]string{"n": "3"}, AtMillis: 1500, Line: "row 3"}}; !reflect.DeepEqual(r.Marks, want) {
		t.Errorf("the marks are %+v, want %+v", r.Marks, want)
	}
}

// Lines of a check that name numbers are results, of each pod that it ran in.
func TestNumbersOfChecks(t *testing.T) {
	pod := func(name, check, output string) Pod {
		return Pod{Name: name, Report: &protocol.Report{Commands: []protocol.CommandResult{{ID: "load", Output: "number reads 9"}, {ID: protocol.CheckID(check), Output: output}}}}
	}
	for name, tc := range map[string]struct {
		verdict v1alpha1.SafetyVerdict
		pods    []Pod
		want    map[string]map[string]float64
	}{
		"printed":          {v1alpha1.SafetyHolds, []Pod{pod("r-0", "counted", "number reads 7\nfine"), pod("r-1", "counted", "fine"), pod("c-0", "other", "number reads 8")}, map[string]map[string]float64{"r-0": {"reads": 7}, "r-1": {}}},
		"of a violation":   {v1alpha1.SafetyViolated, []Pod{pod("r-0", "counted", "number reads 7")}, map[string]map[string]float64{"r-0": {"reads": 7}}},
		"of no verdict":    {v1alpha1.SafetyUnknown, []Pod{pod("r-0", "counted", "number reads 7")}, nil},
		"words alone":      {v1alpha1.SafetyHolds, []Pod{pod("r-0", "counted", "fine")}, nil},
		"a silent machine": {v1alpha1.SafetyHolds, []Pod{{Name: "r-0"}}, nil},
	} {
		o := &Observation{Trial: &v1alpha1.Trial{}, Pods: tc.pods}
		o.Trial.Status.Checks = []v1alpha1.CheckStatus{{Name: "counted", Verdict: tc.verdict}}
		if got := o.Describe().Checks; len(got) != 1 || !reflect.DeepEqual(got[0].Numbers, tc.want) {
			t.Errorf("%s: %+v, want the numbers %v", name, got, tc.want)
		}
	}
}
