package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

// The deadline of a trial is the sum of the deadlines of all phases, and ten minutes.
func TestDeadlinesOfATrial(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(p *play, s *scope)
		want   time.Duration // after the trial was admitted, or after t = 0
	}{
		// 1 min to verify, 2 for resetters, 5 for Prometheus, 2 at the barrier, 10 of slack.
		"before its System is known": {func(_ *play, s *scope) { s.system, s.layout = nil, nil }, 80 * time.Minute},
		"without its layout":         {func(_ *play, s *scope) { s.layout = nil }, 80 * time.Minute},
		// 5 min to deploy, 1 for replicas, 1 for reports of steps.
		"when its System is known": {func(*play, *scope) {}, 27 * time.Minute},
		"that waits for idle":      {func(_ *play, s *scope) { s.trial.Spec.IdleWait = "3m" }, 30 * time.Minute},
		"with a prepare step": {func(p *play, _ *scope) {
			p.system.Prepare = &v1alpha1.PrepareStep{Timeout: "4m"}
		}, 31 * time.Minute},
		"with a step":     {func(p *play, _ *scope) { p.system.Steps = []v1alpha1.Step{{Timeout: "50s"}} }, 28 * time.Minute},
		"with long links": {func(_ *play, s *scope) { s.rendered = &rendered{longest: 10 * time.Second} }, 28 * time.Minute},
		// The run ends after 32 s; then 1 min for results, 2 to store them, 10 of slack.
		"in its run": {func(_ *play, s *scope) { s.trial.Status.ZeroUnixNanos = time.Unix(0, 0).Add(time.Hour).UnixNano() }, 13*time.Minute + 32*time.Second},
		"in its run, without a System": {func(_ *play, s *scope) {
			s.trial.Status.ZeroUnixNanos, s.system = time.Unix(0, 0).Add(time.Hour).UnixNano(), nil
		}, 73*time.Minute + 32*time.Second},
		"in its run, with a grace": {func(p *play, s *scope) {
			s.trial.Status.ZeroUnixNanos = time.Unix(0, 0).Add(time.Hour).UnixNano()
			p.system.Clients.End = &v1alpha1.ClientEnd{Stop: &v1alpha1.StopSpec{Grace: "8s"}}
		}, 13*time.Minute + 40*time.Second},
		"in its run, with a check": {func(p *play, s *scope) {
			s.trial.Status.ZeroUnixNanos = time.Unix(0, 0).Add(time.Hour).UnixNano()
			p.system.Checks = []v1alpha1.SafetyCheck{{Timeout: "30s"}}
		}, 14*time.Minute + 17*time.Second},
	} {
		p := newPlay(t, nil, nil)
		p.trial.Spec.IdleWait = ""
		s := newScope(p.trial, &entry{}, p.now)
		s.system, s.layout = &p.system, p.layout()
		tc.change(p, s)
		from := p.trial.Status.Times.Admitted.Time
		if s.trial.Status.ZeroUnixNanos != 0 {
			from = time.Unix(3600, 0)
		}
		if got := s.deadline().Sub(from); got != tc.want {
			t.Errorf("the deadline of a trial %s comes after %v, want %v", name, got, tc.want)
		}
		s.cache.since = s.deadline().Add(-3 * time.Minute)
		for early, want := range map[time.Duration]bool{0: false, time.Nanosecond: true} {
			if s.now = s.deadline().Add(early); s.overdue() != want {
				t.Errorf("a trial %s is overdue %v after its deadline: %t", name, early, !want)
			}
		}
		for seen, want := range map[time.Duration]bool{takeOver: false, takeOver + 1: true} {
			s.now = s.deadline().Add(time.Hour)
			if s.cache.since = s.now.Add(-seen); s.overdue() != want {
				t.Errorf("a trial %s that was seen for %v is overdue: %t", name, seen, !want)
			}
		}
	}
	early := newScope(&v1alpha1.Trial{}, &entry{}, time.Unix(100, 0))
	if d := early.deadline(); !d.Equal(time.Unix(3700, 0)) {
		t.Errorf("a trial that was admitted at an unknown instant has the deadline %v", d)
	}
}

func TestFilesThatAreWantedOfAPod(t *testing.T) {
	some := resource.MustParse("1Ki")
	none := resource.MustParse("0")
	asked := &protocol.Collect{Patterns: []string{"*.log"}}
	for name, tc := range map[string]struct {
		valid string // the condition's status
		store string
		keep  *resource.Quantity
		asked *protocol.Collect
		pods  int
		want  *protocol.Collect
	}{
		"nothing":                             {"True", "", nil, nil, 3, nil},
		"nothing, of a store":                 {"False", "s3", nil, nil, 3, nil},
		"what the System asks for":            {"True", "", nil, asked, 3, &protocol.Collect{Patterns: asked.Patterns, Limit: 300 << 10}},
		"the same, into a store":              {"False", "s3", &some, asked, 3, &protocol.Collect{Patterns: asked.Patterns, Limit: protocol.UploadLimit}},
		"logs of a trial that does not count": {"False", "", nil, nil, 9, &protocol.Collect{LogTail: 64 << 10, Limit: 100 << 10}},
		"logs that are asked for":             {"True", "", &some, nil, 1, &protocol.Collect{LogTail: 1024, Limit: 900 << 10}},
		"no logs, as asked":                   {"False", "", &none, nil, 1, nil},
		"of many pods":                        {"True", "", nil, asked, 1000, &protocol.Collect{Patterns: asked.Patterns, Limit: 16 << 10}},
		"of no pods":                          {"True", "", nil, asked, 0, &protocol.Collect{Patterns: asked.Patterns, Limit: 900 << 10}},
	} {
		trial := &v1alpha1.Trial{Spec: v1alpha1.TrialSpec{ResultsStore: tc.store, KeepLogs: tc.keep}}
		trial.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TrialValid, Status: metav1.ConditionStatus(tc.valid)}}
		if diff := cmp.Diff(tc.want, wanted(trial, tc.asked, tc.pods)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The pods of a trial first end their processes, then hand over their files, and then go.
func TestWaitsForPodsHaveDeadlines(t *testing.T) {
	for name, tc := range map[string]struct {
		store  string
		change func(p *play)
		after  time.Duration // since the trial was judged
		want   time.Duration // to wait
	}{
		"pods that have ended":               {change: func(*play) {}, want: 0},
		"a process that runs":                {change: func(p *play) { p.reports["t-c-1"].Finished = false }, want: 5 * time.Second},
		"a process that runs, later":         {change: func(p *play) { p.reports["t-c-1"].Finished = false }, after: 4 * time.Second, want: time.Second},
		"a process that runs for too long":   {change: func(p *play) { p.reports["t-c-1"].Finished = false }, after: 5 * time.Second, want: 0},
		"a process whose agent cannot go on": {change: func(p *play) { p.reports["t-c-1"].Finished, p.reports["t-c-1"].Failure = false, "x" }, want: 0},
		"an agent that says nothing":         {change: func(p *play) { delete(p.reports, "t-c-1") }, want: 0},
		"a pod that is gone":                 {change: func(p *play) { p.reports["t-c-1"].Finished = false; delete(p.pods, "t-c-1") }, want: 0},
		"files for a store":                  {store: "s3", change: func(p *play) { p.reports["t-c-1"].HandedOver = false }, want: 85 * time.Second},
		"files for a store, too late":        {store: "s3", change: func(p *play) { p.reports["t-c-1"].HandedOver = false }, after: 85 * time.Second, want: 0},
		"files of an agent that is silent":   {store: "s3", change: func(p *play) { delete(p.reports, "t-c-1") }, want: 85 * time.Second},
		"files of a pod that does not run":   {store: "s3", change: func(p *play) { p.reports["t-c-1"].HandedOver, p.pods["t-c-1"].Status.Phase = false, corev1.PodFailed }, want: 0},
		"files that no spec asks for":        {change: func(p *play) { p.reports["t-c-1"].HandedOver = false }, want: 0},
		"logs that are wanted": {change: func(p *play) {
			p.reports["t-c-1"].HandedOver = false
			l := resource.MustParse("1Ki")
			p.trial.Spec.KeepLogs = &l
		}, want: 25 * time.Second},
	} {
		p := newPlay(t, nil, nil)
		p.trial.Spec.ResultsStore = tc.store
		judged(p)
		p.obey()
		p.advance()
		for _, r := range p.reports {
			r.Finished, r.HandedOver = true, true
		}
		tc.change(p)
		p.now = p.now.Add(tc.after)
		p.calls = nil
		got := p.advance()
		if deleted := slices.Contains(p.calls, "delete"); got != tc.want || deleted != (tc.want == 0) {
			t.Errorf("%s: they are waited for %v, and deleted: %t; want %v", name, got, deleted, tc.want)
		}
	}
}

func TestProgressOfARun(t *testing.T) {
	p := newPlay(t, nil, nil)
	running(p)
	p.progress = nil
	p.reports["t-c-0"].Progress = &protocol.Progress{Committed: 10, PerSecond: 3, LatencySumMicros: 500}
	p.reports["t-c-1"].Progress = &protocol.Progress{Committed: 7, PerSecond: 2, LatencySumMicros: 40}
	p.now = time.Unix(0, p.trial.Status.ZeroUnixNanos).Add(1234 * time.Millisecond)
	if after := p.advance(); after != ProgressInterval || len(p.progress) != 1 {
		t.Fatalf("after %v, it was published %d times", after, len(p.progress))
	}
	got := p.progress[0]
	got.Faults = nil
	if diff := cmp.Diff(protocol.TrialProgress{Progress: protocol.Progress{Committed: 17, PerSecond: 5, LatencySumMicros: 540}, AtMillis: 1234, Clients: 2}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, tc := range []struct {
		later     time.Duration
		conflict  bool
		err       error
		after     time.Duration
		published int
	}{
		{later: 1500 * time.Millisecond, after: 500 * time.Millisecond},
		{later: 500 * time.Millisecond, after: ProgressInterval, published: 1},
		{later: 2 * time.Second, conflict: true, after: conflictDelay},
	} {
		p.progress, p.conflict = nil, tc.conflict
		p.now = p.now.Add(tc.later)
		if after := p.advance(); after != tc.after || len(p.progress) != tc.published {
			t.Errorf("%v later it is published %d times, and again after %v; want %d, %v", tc.later, len(p.progress), after, tc.published, tc.after)
		}
	}
	p.conflict, p.progressErr, p.now = false, errors.New("no answer"), p.now.Add(2*time.Second)
	if _, err := p.engine.Advance(t.Context(), p.trial.DeepCopy()); err == nil {
		t.Error("progress that cannot be published is no error")
	}
}

// The engine reports each action of a fault once: when its outcome is known, or when no report can
// come any more.
func TestFaultsThatPeopleHearOf(t *testing.T) {
	p := newPlay(t, nil, func(s *v1alpha1.ExperimentSpec) { s.Faults[0].At = "3s" })
	running(p)
	p.notes = nil
	p.restart()
	p.reports["t-s0-local-2"].Actions = nil
	p.now = time.Unix(0, p.trial.Status.ZeroUnixNanos).Add(3 * time.Second)
	p.advance()
	if len(p.notes) != 0 {
		t.Errorf("of a fault of which nothing is known yet, people hear %+v", p.notes)
	}
	p.reports["t-c-0"].Failure = "disk full"
	p.advance()
	p.advance()
	if len(p.notes) != 0 {
		t.Errorf("of a fault that was due this instant, people hear %+v", p.notes)
	}
	p.now = p.now.Add(1)
	p.advance()
	p.advance()
	if len(p.notes) != 1 || !p.notes[0].Failed {
		t.Errorf("of a fault that never happened, people hear %+v", p.notes)
	}
}

func TestFaultsAreReportedUpToABound(t *testing.T) {
	for name, tc := range map[string]struct {
		actions, skipped int
		want             int
		audit            bool
	}{
		"a few": {3, 1, 2, false}, "as many as are reported": {MostFaultNotes, 0, MostFaultNotes, false}, "one more": {MostFaultNotes + 1, 0, MostFaultNotes + 1, true},
		"many more": {3 * MostFaultNotes, 0, MostFaultNotes + 1, true},
	} {
		p := newPlay(t, nil, nil)
		running(p)
		p.notes = nil
		s := newScope(p.trial, &entry{noted: map[string]bool{}}, p.now)
		s.system, s.layout, s.pods, s.rendered = &p.system, p.layout(), p.pods, &rendered{}
		s.inForce = []timeline.Action{}
		report := &protocol.Report{}
		for i := range tc.actions {
			a := timeline.Action{ID: fmt.Sprint(i), Pod: "t-s0-local-0", Kind: timeline.Kill, Fault: "f"}
			s.inForce = append(s.inForce, a)
			report.Actions = append(report.Actions, protocol.ActionRecord{ID: a.ID, Skipped: i < tc.skipped})
		}
		s.reports = map[string]agentReport{"t-s0-local-0": {report, p.now}}
		for range 3 {
			s.noteFaults(t.Context(), p, false)
		}
		if n := len(p.notes); n != tc.want || (p.notes[n-1].Kind == "Audit") != tc.audit {
			t.Errorf("%s: people hear of %d, at last %+v; want %d", name, n, p.notes[n-1], tc.want)
		}
	}
}

func TestNodesThatAreReset(t *testing.T) {
	pods := map[string]*corev1.Pod{}
	for name, node := range map[string]string{"a": "n1", "b": "n1", "c": "n2", "d": ""} {
		pods[name] = &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}}
	}
	reset := func(pod string, at time.Duration) timeline.Action {
		return timeline.Action{Pod: pod, Kind: timeline.Reset, At: at}
	}
	r := resetsOf([]timeline.Action{reset("a", 1), reset("b", 1), reset("a", 5), {Pod: "c", Kind: timeline.Kill}, reset("gone", 2)}, pods)
	if diff := cmp.Diff([]string{"n1"}, r.Nodes()); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	for name, want := range map[string]bool{"a": true, "b": true, "c": false, "d": false, "gone": false} {
		if got := r.Hits(pods[name]); got != want {
			t.Errorf("pod %s is on a node that is reset: %t", name, got)
		}
	}
	past := map[time.Duration]int{}
	for _, by := range []time.Duration{0, 1, 4, 5} {
		past[by] = r.Past("n1", by)
	}
	if !maps.Equal(past, map[time.Duration]int{0: 0, 1: 1, 4: 1, 5: 2}) || r.Past("n2", 9) != 0 {
		t.Errorf("the node was reset so often: %v", past)
	}
}

func TestTheFirstActionOfAll(t *testing.T) {
	if got := firstAction([]timeline.Action{{At: 3 * time.Second}, {At: -time.Second}, {At: 0}}); got != -time.Second {
		t.Errorf("the first action is at %v", got)
	}
	if got := firstAction(nil); got != time.Hour {
		t.Errorf("without actions it is %v", got)
	}
}

// After a failed attempt to store results, the engine waits before the next one, since each attempt
// writes to the status.
func TestResultsAreStoredNowAndThen(t *testing.T) {
	p := newPlay(t, nil, nil)
	running(p)
	p.measured(10)
	p.storeErr = errors.New("full")
	p.settle(true)
	tries := func() (n int) {
		for _, c := range p.calls {
			if c == "store" {
				n++
			}
		}
		return n
	}
	if n := tries(); n != 1 {
		t.Errorf("at once it was tried %d times", n)
	}
	p.now = p.now.Add(RetryPoll - 1)
	p.settle(true)
	if n := tries(); n != 1 {
		t.Errorf("a moment before it is due it was tried %d times", n)
	}
	p.now = p.now.Add(1)
	p.settle(true)
	if n := tries(); n != 2 {
		t.Errorf("when it is due it was tried %d times", n)
	}
	p.storeErr, p.now = ErrConflict, p.now.Add(RetryPoll)
	p.advance()
	p.storeErr = nil
	p.settle(true)
	if p.stored == nil || p.condition(v1alpha1.TrialComplete) == "" {
		t.Errorf("after a conflict the results are %v; %s", p.stored, p.condition(v1alpha1.TrialCollected))
	}
}

// A manager that takes over rebuilds all that an earlier manager remembered.
func TestAManagerThatTakesOverGoesOn(t *testing.T) {
	p := newPlay(t, nil, nil)
	running(p)
	zero := p.trial.Status.ZeroUnixNanos
	p.restart()
	p.settle(true)
	if d := p.directives["t-s0-local-2"]; p.trial.Status.ZeroUnixNanos != zero || d.Run == nil || len(d.Run.Actions) != 1 {
		t.Errorf("the run goes on with t = 0 at %d and the directive %+v", p.trial.Status.ZeroUnixNanos, d)
	}
	p.measured(10)
	p.restart()
	p.settle(true)
	if got := p.condition(v1alpha1.TrialComplete); got != "True Succeeded: 20 transactions committed in the window, mean latency 5.002 ms." {
		t.Errorf("it ends with %s", got)
	}
	if keys := p.engine.Forget(p.engine.cache.of(p.trial).key); len(keys) != 1 || p.engine.Cached() != 0 {
		t.Errorf("forgotten are %v, and %d are left", keys, p.engine.Cached())
	}
}

// onlyDescribes is a resetter that names agents.
type onlyDescribes struct{ NodeResetter }

func (onlyDescribes) Describe(node string) string { return "the agent of " + node }

// resetting is a scope in which a fault resets the node n1 a second after t = 0.
func resetting(r *protocol.Report) *scope {
	s := newScope(&v1alpha1.Trial{}, &entry{}, time.Unix(1000, 0))
	s.pods = map[string]*corev1.Pod{"a": {Spec: corev1.PodSpec{NodeName: "n1"}}}
	s.inForce = []timeline.Action{{Pod: "a", Kind: timeline.Reset, At: time.Second}}
	s.reports = map[string]agentReport{render.MachineAgent("n1"): {Report: r}}
	return s
}

func TestAgentsThatResetNodesAreAwaited(t *testing.T) {
	for name, tc := range map[string]struct {
		report *protocol.Report
		state  state
		says   string
	}{
		"no report": {nil, waiting, "waiting for the agent of n1"},
		"not ready": {&protocol.Report{}, waiting, "waiting for the agent of n1"},
		"ready":     {&protocol.Report{Ready: true}, done, ""},
		"cannot":    {&protocol.Report{Ready: true, Failure: "no sysrq"}, failed, "node n1 cannot go on: no sysrq"},
	} {
		r := (&nodes{onlyDescribes{}}).awaitAgents(resetting(tc.report), nil, time.Minute)
		if r.state != tc.state || !strings.Contains(r.message, tc.says) {
			t.Errorf("%s: %v, %q", name, r.state, r.message)
		}
	}
}

// An agent that resets a node hears of the run when t = 0 is agreed, and not before.
func TestAgentsThatResetNodesHearOfTheRun(t *testing.T) {
	p := newPlay(t, nil, nil)
	for _, zero := range []int64{0, 5} {
		(&director{p}).directResetters(resetting(nil), stage{zero: zero})
		d := p.directives[render.MachineAgent("n1")]
		if d.Machine == nil || d.Machine.Node != "n1" || (d.Run != nil) != (zero != 0) || d.Run != nil && (d.Run.ZeroUnixNanos != zero || len(d.Run.Actions) != 1) {
			t.Errorf("at t = 0 of %d: %+v", zero, d)
		}
	}
}
