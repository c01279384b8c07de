package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// play is one trial with a fake world. A test sets the answers of its pods, agents and stores.
type play struct {
	t      *testing.T
	engine *Engine
	trial  *v1alpha1.Trial
	system v1alpha1.SystemSpec
	now    time.Time

	pods       map[string]*corev1.Pod
	directives map[string]protocol.Directive
	reports    map[string]*protocol.Report
	// network changes the measurements of a pod's agent that obey made.
	network func(pod string, n *protocol.NetworkReport)

	calls    []string // calls that change the world
	saved    int
	events   []Event
	release  *Release
	packed   []byte // the prepare step's output
	clients  []results.Client
	stored   *results.Trial
	files    Files
	progress []protocol.TrialProgress
	notes    []FaultNote
	gap      time.Duration

	ensureErr, observeErr, clientsErr, storeErr, showErr, keepErr, refusalErr, deleteErr, gapErr, progressErr, releaseErr, saveErr error
	refusal, impostor, left                                                                                                        string
	conflict                                                                                                                       bool
	hold                                                                                                                           time.Duration
	keepUntil                                                                                                                      time.Time
	saveTakes                                                                                                                      time.Duration
}

// newPlay has a trial of three replicas and two client pods. A fault kills a replica a second
// before t = 0.
func newPlay(t *testing.T, changeSystem func(*v1alpha1.SystemSpec), change func(*v1alpha1.ExperimentSpec)) *play {
	t.Helper()
	p := &play{
		t: t, now: time.Unix(1_800_000_000, 0), pods: map[string]*corev1.Pod{}, directives: map[string]protocol.Directive{}, reports: map[string]*protocol.Report{},
	}
	p.system = builders.System("echo").Count("2*f+1").Set(func(s *v1alpha1.SystemSpec) {
		s.Replicas.ReadyTimeout = "60s"
		if changeSystem != nil {
			changeSystem(s)
		}
	}).Obj().Spec
	exp := builders.Experiment("exp").System("echo").NodeKill("crash", "-1s", 2).Set(func(s *v1alpha1.ExperimentSpec) {
		s.Clients.Nodes, s.Clients.Count = 2, 4
		s.Faults[0].EveryPoint = true
		if change != nil {
			change(s)
		}
	}).Obj()
	pl, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{"echo": p.system})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	spec := pl.Points[0].Template
	spec.System.Revision, spec.Seed = "exp-echo", 1
	admitted := metav1.NewMicroTime(p.now)
	p.trial = &v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "t", UID: "uid"}, Spec: spec, Status: v1alpha1.TrialStatus{Times: v1alpha1.TrialTimes{Admitted: &admitted}}}
	p.restart()
	return p
}

// restart replaces the manager by one that remembers nothing.
func (p *play) restart() {
	p.engine = New(World{Pods: p, Record: p, Attachments: p, Clock: p, Agents: p, Experiment: p, Prometheus: func() Prometheus { return nil }, Domain: "cluster.local"})
}

func (p *play) layout() *placement.Layout {
	return placement.NewLayout("default", "t", &p.trial.Spec, &p.system).InDomain("cluster.local")
}

func (p *play) did(format string, args ...any) {
	p.calls = append(p.calls, fmt.Sprintf(format, args...))
}

func (p *play) Now() time.Time { return p.now }

func (p *play) Ensure(context.Context, *Subject) error {
	p.did("ensure")
	return p.ensureErr
}

func (p *play) Observe(context.Context, *Subject) (map[string]*corev1.Pod, error) {
	return p.pods, p.observeErr
}

func (p *play) Authorize(context.Context, *Subject, map[string]*corev1.Pod) ([]string, error) {
	return nil, nil
}

func (p *play) Impostor(context.Context, *Subject, *corev1.Pod) (string, error) {
	return p.impostor, nil
}

func (p *play) Refusal(context.Context, *Subject, map[string]*corev1.Pod) (string, error) {
	p.did("ask why pods are missing")
	return p.refusal, p.refusalErr
}

func (p *play) Delete(context.Context, *v1alpha1.Trial) (Remains, error) {
	p.did("delete")
	return Remains{Left: p.left, Gone: "All is gone."}, p.deleteErr
}

func (p *play) System(context.Context, *v1alpha1.Trial) (*v1alpha1.SystemSpec, error) {
	return &p.system, nil
}

func (p *play) Save(_ context.Context, _, trial *v1alpha1.Trial, events []Event) (time.Duration, error) {
	if p.saveErr != nil {
		return 0, p.saveErr
	}
	p.now = p.now.Add(p.saveTakes)
	p.trial, p.saved = trial.DeepCopy(), p.saved+1
	p.events = append(p.events, events...)
	return p.hold, nil
}

func (p *play) Release(context.Context, *Subject) (Release, error) {
	if p.release == nil {
		return Release{}, &LostError{fmt.Errorf("no release")}
	}
	return *p.release, nil
}

func (p *play) CreateRelease(_ context.Context, _ *Subject, r Release) error {
	if p.releaseErr == nil {
		p.release = &r
	}
	return p.releaseErr
}

func (p *play) SaveIncarnations(_ context.Context, _ *Subject, all map[string][]validity.Incarnation) error {
	p.release.Incarnations = all
	return nil
}

func (p *play) Prepared(context.Context, *Subject) ([]byte, error) { return p.packed, nil }

func (p *play) Show(_ context.Context, _ *Subject, files *corev1.ConfigMap) error {
	p.did("show %d files", len(files.Data))
	return p.showErr
}

func (p *play) Clients(context.Context, *Subject) ([]results.Client, map[string][]byte, error) {
	return p.clients, map[string][]byte{"client-0.json": []byte("{}")}, p.clientsErr
}

func (p *play) Store(_ context.Context, _ *Subject, _ *v1alpha1.Trial, t *results.Trial, files Files) error {
	p.did("store")
	if p.storeErr == nil {
		p.stored, p.files = t, files
	}
	return p.storeErr
}

func (p *play) KeepFiles(context.Context, *Subject) error {
	p.did("keep files")
	return p.keepErr
}

func (p *play) Direct(_ types.NamespacedName, pod string, d protocol.Directive, _ []protocol.File) {
	p.directives[pod] = d
}

func (p *play) Report(_ types.NamespacedName, pod string) (*protocol.Report, time.Time) {
	return p.reports[pod], p.now
}

func (p *play) KeepUntil(context.Context, *v1alpha1.Trial, time.Time) (time.Time, string, error) {
	return p.keepUntil, "People look at the pods.", nil
}

func (p *play) Gap(context.Context, *v1alpha1.Trial, time.Time) (time.Duration, error) {
	return p.gap, p.gapErr
}

func (p *play) Progress(_ context.Context, _, _ *v1alpha1.Trial, sum protocol.TrialProgress) (bool, error) {
	if p.progressErr == nil && !p.conflict {
		p.progress = append(p.progress, sum)
	}
	return p.conflict, p.progressErr
}

func (p *play) Faults(_ context.Context, _ *v1alpha1.Trial, notes []FaultNote) error {
	p.notes = append(p.notes, notes...)
	return nil
}

// schedule makes every pod with an address, and its agent reports.
func (p *play) schedule() {
	l := p.layout()
	names := append(l.ServerPods(), l.ClientPods()...)
	if p.system.Prepare != nil {
		names = append(names, l.PrepareJob())
	}
	for i, name := range names {
		p.pods[name] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
			Spec:       corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", i%3), Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.0.0.%d", i+1)},
		}
		p.reports[name] = &protocol.Report{Incarnation: "1"}
	}
}

// undelayed is the round trip between two pods before shaping.
const undelayed = 200 * time.Microsecond

// obey makes every agent follow its directive at once.
func (p *play) obey() {
	for name, r := range p.reports {
		d := p.directives[name]
		r.FilesDigest, r.NamesResolved, r.Ready, r.AtBarrier = d.FilesDigest, d.FilesDigest != "", d.Start, d.Start && d.Client != nil
		r.Network = p.measure(name, d.Network)
		if d.SampleLoad && r.Load == nil {
			r.Load = &protocol.Load{CPUs: 4, Seconds: 1}
		}
		if d.Start && r.Containers == nil {
			for _, c := range d.Containers {
				r.Containers = append(r.Containers, protocol.ContainerState{Name: c.Name, State: protocol.StateRunning, Starts: 1})
			}
		}
		r.Commands = nil
		for _, c := range d.Commands {
			r.Commands = append(r.Commands, protocol.CommandResult{ID: c.ID})
		}
		if d.Run != nil {
			r.ResetsCounted, r.Actions = true, nil
			seconds := d.Run.Measure.Seconds()
			r.Resources = &results.Resources{Seconds: seconds, CPUMeanCores: 0.2, CPUMaxCores: 0.3, Node: results.NodeUse{Seconds: seconds, CPUs: 4, BusyShare: 0.4}}
			for _, c := range d.Containers {
				r.Resources.Containers = append(r.Resources.Containers, results.ContainerUse{Name: c.Name, Seconds: seconds, CPUMeanCores: 0.2, LateShare: new(float64), Wakes: 800})
			}
			if r.Network != nil {
				r.Network.Watched = true
			}
			for _, x := range d.Run.Actions {
				r.Actions = append(r.Actions, protocol.ActionRecord{ID: x.ID, Planned: x.At, Started: x.At, Confirmed: x.At + time.Millisecond})
			}
		}
		r.Finished = d.Finish
		r.HandedOver = d.Collect != nil && !d.HandOver
	}
}

// measure plays an agent whose links are exactly as asked.
func (p *play) measure(pod string, d *protocol.Network) *protocol.NetworkReport {
	if d == nil {
		return nil
	}
	n := &protocol.NetworkReport{Tried: true, Backends: shaping.Backends, Baseline: true}
	if d.Shape {
		n.Proven, n.Rounds, n.ApplyTook, n.ProveTook = true, 1, 20*time.Millisecond, 300*time.Millisecond
		for peer := range d.All() {
			rtt := peer.Out.Delay + peer.In.Delay + undelayed + 50*time.Microsecond
			n.Links = append(n.Links, protocol.LinkReport{
				Peer: peer.Name, BaselineRTT: undelayed, RTT: rtt, OutDelay: peer.Out.Delay + undelayed/2, InDelay: peer.In.Delay + undelayed/2,
				CanarySent: 20, CanaryMin: rtt, CanaryMedian: rtt, CanaryMax: rtt,
			})
		}
	}
	if p.network != nil {
		p.network(pod, n)
	}
	return n
}

// advance calls the engine once.
func (p *play) advance() time.Duration {
	p.t.Helper()
	after, err := p.engine.Advance(p.t.Context(), p.trial.DeepCopy())
	if err != nil {
		p.t.Fatalf("advance: %v", err)
	}
	return after
}

// condition writes a condition of the trial as "<status> <reason>: <message>".
func (p *play) condition(name string) string {
	for _, c := range p.trial.Status.Conditions {
		if c.Type == name {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

// settle advances until the engine writes nothing more. It returns the written conditions.
func (p *play) settle(obedient bool) (said []string) {
	p.t.Helper()
	for quiet := 0; quiet < 3 && !strings.HasPrefix(p.condition(v1alpha1.TrialComplete), "True"); {
		saved, before := p.saved, p.trial
		after := p.advance()
		if obedient {
			p.obey()
		}
		if quiet++; p.saved > saved {
			quiet = 0
			for _, c := range p.trial.Status.Conditions {
				if !slices.Contains(before.Status.Conditions, c) {
					said = append(said, fmt.Sprintf("%s %s %s: %s [%v]", c.Type, c.Status, c.Reason, c.Message, after))
				}
			}
		}
		if len(said) > 60 {
			p.t.Fatalf("the trial does not settle:\n%s", strings.Join(said, "\n"))
		}
	}
	return said
}

// measured ends the run: the time of a run passes, and every client reports so many commits.
func (p *play) measured(commits int64) {
	p.t.Helper()
	p.now = p.now.Add(40 * time.Second)
	p.clients = nil
	for _, c := range p.layout().Clients {
		h := results.NewHistogram()
		line := results.NewTimeline(-5000, 270)
		for i := range commits { // evenly over the 200 bins of the window
			h.Record(5 * time.Millisecond)
			line.Committed[50+i%200]++
			line.LatencySumMicros[50+i%200] += 5000
		}
		latency, err := h.Encode()
		if err != nil {
			p.t.Fatal(err)
		}
		p.clients = append(p.clients, results.Client{
			Format: results.ClientFormat, Index: int32(c.Index), FirstClient: int32(c.First), Clients: int32(c.Count), MeasureNanos: (20 * time.Second).Nanoseconds(),
			Counters: results.Counters{Offered: commits, Committed: commits}, Latency: latency, Timeline: line,
		})
		rep := p.reports[c.Name]
		rep.Over, rep.Sent, rep.Client = true, true, &protocol.ClientRun{Released: -5 * time.Second, Ended: 22 * time.Second}
	}
}
