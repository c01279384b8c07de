package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

// TestWhenClientsAreOver: a script is over as soon as one client pod reports what it came to. The
// clients of a trial that measures whole runs are over when all do.
func TestWhenClientsAreOver(t *testing.T) {
	ended := func(end time.Duration) *protocol.Report {
		return &protocol.Report{Over: true, Client: &protocol.ClientRun{Ended: end}}
	}
	goesOn := &protocol.Report{Client: &protocol.ClientRun{Ended: 7 * time.Second}}
	without := &protocol.Report{Over: true}
	for name, tc := range map[string]struct {
		noScript bool
		reports  []*protocol.Report
		want     time.Duration
		whole    time.Duration // the end of the whole run; 0: it goes on
		measure  v1alpha1.Duration
	}{
		"no script":                 {noScript: true, reports: []*protocol.Report{ended(5 * time.Second), ended(6 * time.Second)}, whole: 6 * time.Second, measure: "20s"},
		"no report":                 {reports: []*protocol.Report{nil, nil}, measure: "20s"},
		"the run goes on":           {reports: []*protocol.Report{goesOn, goesOn}, measure: "20s"},
		"nothing is said of it":     {reports: []*protocol.Report{without, without}, measure: "20s"},
		"the first is over":         {reports: []*protocol.Report{ended(5 * time.Second), goesOn}, want: 5 * time.Second, measure: "5s"},
		"the second is over":        {reports: []*protocol.Report{without, ended(6 * time.Second)}, want: 6 * time.Second, measure: "6s"},
		"both are over":             {reports: []*protocol.Report{ended(5 * time.Second), ended(6 * time.Second)}, want: 5 * time.Second, whole: 6 * time.Second, measure: "5s"},
		"over at the window's end":  {reports: []*protocol.Report{ended(20 * time.Second), nil}, want: 20 * time.Second, measure: "20s"},
		"over after the window":     {reports: []*protocol.Report{ended(21 * time.Second), nil}, want: 21 * time.Second, measure: "20s"},
		"over a nanosecond earlier": {reports: []*protocol.Report{ended(20*time.Second - 1), nil}, want: 20*time.Second - 1, measure: "19.999999999s"},
	} {
		p := newPlay(t, nil, nil)
		p.trial.Spec.Schedule = v1alpha1.Schedule{WarmUp: "1s", Measure: "20s", CoolDown: "1s", Drain: "1s"}
		if !tc.noScript {
			p.trial.Spec.Script = &v1alpha1.TrialScript{}
		}
		s := newScope(p.trial, &entry{}, p.now)
		s.system, s.layout, s.reports = &p.system, p.layout(), map[string]agentReport{}
		for i, r := range tc.reports {
			if r != nil {
				s.reports[s.clientNames()[i]] = agentReport{Report: r}
			}
		}
		if got := scriptEnded(s); got != tc.want {
			t.Errorf("%s: the script is over at %v, want %v", name, got, tc.want)
		}
		if got := runEnded(s); got != tc.want {
			t.Errorf("%s: the run is over at %v, want %v", name, got, tc.want)
		}
		if got := wholeRun(s); got.To != tc.whole || tc.whole == 0 && got != (timeline.Span{}) {
			t.Errorf("%s: the whole run is %v, want its end at %v", name, got, tc.whole)
		}
		if got := scheduleOf(s).Measure; got != tc.measure {
			t.Errorf("%s: the window is %s, want %s", name, got, tc.measure)
		}
		p.system.Clients.Results = &v1alpha1.ClientResults{Format: v1alpha1.FormatSummary}
		if got := runEnded(s); got != tc.whole {
			t.Errorf("%s: the run of clients that say numbers of all of it is over at %v, want %v", name, got, tc.whole)
		}
	}
}

// TestAgentsHearWhatWasMeasured: clients that say numbers of their whole run make its window, once
// all are over. Before that, no agent has one.
func TestAgentsHearWhatWasMeasured(t *testing.T) {
	p := newPlay(t, func(s *v1alpha1.SystemSpec) {
		s.Clients.Results = &v1alpha1.ClientResults{Format: v1alpha1.FormatSummary}
	}, nil)
	running(p)
	for i, end := range []time.Duration{5 * time.Second, 6 * time.Second} {
		p.advance()
		for pod, d := range p.directives {
			if d.Run != nil && len(d.Run.Measured) > 0 {
				t.Errorf("%d clients are over, and %s is told that %v are measured", i, pod, d.Run.Measured)
			}
		}
		r := p.reports[p.layout().Clients[i].Name]
		r.Over, r.Client = true, &protocol.ClientRun{Ended: end}
	}
	p.advance()
	for _, pod := range p.layout().ServerPods() {
		if d := p.directives[pod]; d.Run == nil || len(d.Run.Measured) != 1 || d.Run.Measured[0].To != 6*time.Second {
			t.Errorf("%s is told of the run %+v, want that it is measured up to 6s", pod, d.Run)
		}
	}
}

// TestWaitsForIdleMachines: the status says how a wait ended, and nothing of a trial without one.
func TestWaitsForIdleMachines(t *testing.T) {
	for wait, want := range map[v1alpha1.Duration]int64{"0s": -1, "10s": 10_000} {
		p := newPlay(t, nil, nil)
		p.trial.Spec.IdleWait = wait
		s := newScope(p.trial, &entry{}, p.now)
		s.system, s.layout = &p.system, p.layout()
		began := metav1.NewMicroTime(p.now.Add(-10 * time.Second))
		s.trial.Status.Times.Barrier = &began
		(&release{}).awaitIdle(s)
		if got := s.trial.Status.IdleGate; (got != nil) != (want >= 0) || got != nil && got.WaitedMilliseconds != want {
			t.Errorf("a wait of %s: %+v, want %d ms", wait, got, want)
		}
	}
}

// withHold is a broken record. It says how soon a saved trial must be looked at again.
type withHold struct {
	broken

	hold time.Duration
	err  error
}

func (h *withHold) Save(context.Context, *v1alpha1.Trial, *v1alpha1.Trial, []Event) (time.Duration, error) {
	return h.hold, h.err
}

// TestWhenASavedTrialIsLookedAtAgain: a trial that is given up at its deadline is brought forward
// again after a millisecond, or earlier if the record asks for it.
func TestWhenASavedTrialIsLookedAtAgain(t *testing.T) {
	lost := errors.New("no quorum")
	for name, tc := range map[string]struct {
		hold time.Duration
		err  error
		want time.Duration
	}{
		"the record asks for nothing":      {0, nil, time.Millisecond},
		"later":                            {time.Second, nil, time.Millisecond},
		"at the same time":                 {time.Millisecond, nil, time.Millisecond},
		"earlier":                          {time.Microsecond, nil, time.Microsecond},
		"the record does not take what is": {time.Microsecond, lost, 0},
	} {
		admitted := time.Unix(100_000, 0)
		world := &withHold{broken: broken{now: admitted}, hold: tc.hold, err: tc.err}
		e := New(World{Record: world, Clock: world})
		at := metav1.NewMicroTime(admitted)
		trial := &v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Status: v1alpha1.TrialStatus{Times: v1alpha1.TrialTimes{Admitted: &at}}}
		if after, err := e.Advance(t.Context(), trial.DeepCopy()); err == nil || after != 0 {
			t.Errorf("%s: at first again after %v, %v; want the error of the record", name, after, err)
		}
		world.now = admitted.Add(9 * time.Hour)
		if after, err := e.Advance(t.Context(), trial.DeepCopy()); after != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%s: again after %v, %v; want %v, %v", name, after, err, tc.want, tc.err)
		}
	}
}
