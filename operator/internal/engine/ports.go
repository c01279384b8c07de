package engine

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/experiment/monitoring"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// Subject is the trial that a port is asked about.
type Subject struct {
	Trial  *v1alpha1.Trial
	System *v1alpha1.SystemSpec
	Layout *placement.Layout
}

// Pods makes, observes and deletes what a trial runs in.
type Pods interface {
	// Ensure makes what the trial consists of, unless it is there. A RejectedError ends the trial;
	// any other error is tried again.
	Ensure(ctx context.Context, s *Subject) error
	// Observe returns the trial's pods by their names in the layout, also those that are being
	// deleted. Pods that are not there are left out.
	Observe(ctx context.Context, s *Subject) (map[string]*corev1.Pod, error)
	// Authorize lets only the agents of these pods, and those that reset nodes for the trial,
	// report and be directed. It returns the names of the latter.
	Authorize(ctx context.Context, s *Subject, pods map[string]*corev1.Pod) (resetters []string, err error)
	// Impostor says why a pod that has the name of one that is gone was not made for the trial;
	// empty: it was.
	Impostor(ctx context.Context, s *Subject, pod *corev1.Pod) (why string, err error)
	// Refusal says from events why pods that are missing can never be made; empty: nothing does.
	Refusal(ctx context.Context, s *Subject, pods map[string]*corev1.Pod) (why string, err error)
	// Delete deletes all that was made for the trial but its results. A LeftError says that nothing
	// of it runs any more, and that something else cannot be deleted.
	Delete(ctx context.Context, trial *v1alpha1.Trial) (Remains, error)
}

// Remains is what is left of a trial that is being deleted.
type Remains struct {
	// Left names what is still there; empty: nothing is.
	Left string
	// Gone is a sentence on what is left when Left is empty.
	Gone string
}

// Record keeps what is known of a trial, so that another process can carry it on. Anyone who writes
// does so under the version that was read: what another process wrote is never overwritten.
type Record interface {
	// System is the trial's System as it was when the experiment was accepted. A LostError ends the
	// trial.
	System(ctx context.Context, trial *v1alpha1.Trial) (*v1alpha1.SystemSpec, error)
	// Save writes the status of a trial that was read as before, and then reports events. The error
	// is ErrConflict if the trial has changed since. Where only messages changed, it may write
	// nothing and say after how long to save again.
	Save(ctx context.Context, before, trial *v1alpha1.Trial, events []Event) (hold time.Duration, err error)
	// Release is what CreateRelease has written, with the incarnations of the last
	// SaveIncarnations. The error is a LostError if there is none.
	Release(ctx context.Context, s *Subject) (Release, error)
	// CreateRelease writes it unless it is there.
	CreateRelease(ctx context.Context, s *Subject, r Release) error
	SaveIncarnations(ctx context.Context, s *Subject, all map[string][]validity.Incarnation) error
}

// Release is what a run was released with, of trials whose faults move pods.
type Release struct {
	// Addresses of the pods, by name.
	Addresses map[string]string
	// Incarnations are the pods that have had each name since.
	Incarnations map[string][]validity.Incarnation
}

// Event is what users are told when the status that it is about has been written.
type Event struct {
	Warning                 bool
	Reason, Action, Message string
}

// Attachments reads what agents sent, and stores what the trial comes to.
type Attachments interface {
	// Prepared is the packed output of the prepare step; nil: it is not there yet.
	Prepared(ctx context.Context, s *Subject) ([]byte, error)
	// Show lets people read the files that the pods were given.
	Show(ctx context.Context, s *Subject, files *corev1.ConfigMap) error
	// Clients are the clients' results, and what was sent, by the names of files.
	Clients(ctx context.Context, s *Subject) (clients []results.Client, sent map[string][]byte, err error)
	// Store stores the results of the trial, which was read as before. Their digest comes into its
	// status first, and both get their new version. It fails with ErrConflict if the trial has
	// changed since.
	Store(ctx context.Context, s *Subject, before *v1alpha1.Trial, t *results.Trial, files Files) error
	// KeepFiles keeps the files that pods have sent, with the stored results.
	KeepFiles(ctx context.Context, s *Subject) error
}

// Files are kept beside a trial's results, by the names of files.
type Files struct {
	// Given are the files and commands that the pods were given, Reports what the clients reported,
	// as they sent it.
	Given, Reports map[string][]byte
}

// Clock tells the time.
type Clock interface {
	Now() time.Time
}

// Agents passes directives on to the agents of pods, and keeps what they reported last.
type Agents interface {
	Direct(trial types.NamespacedName, pod string, d protocol.Directive, files []protocol.File)
	// Report is the last one, and when it came; nil: there is none.
	Report(trial types.NamespacedName, pod string) (*protocol.Report, time.Time)
}

// Experiment answers a trial's questions about other trials, and passes its news on to the people
// who follow it.
type Experiment interface {
	// KeepUntil is until when the pods of a trial that does not count stay for inspection, if it
	// was judged at that instant. Zero: they do not stay. message says so to users.
	KeepUntil(ctx context.Context, trial *v1alpha1.Trial, judged time.Time) (until time.Time, message string, err error)
	// Gap is for how long the trial's machines will have measured nothing when it begins.
	Gap(ctx context.Context, trial *v1alpha1.Trial, begins time.Time) (time.Duration, error)
	// Progress publishes the clients' progress. conflict: the trial has changed since it was read,
	// and nothing is published. Else both get their new version.
	Progress(ctx context.Context, before, trial *v1alpha1.Trial, p protocol.TrialProgress) (conflict bool, err error)
	// Faults reports faults in the order in which they are given: of all of them, or of none.
	Faults(ctx context.Context, trial *v1alpha1.Trial, notes []FaultNote) error
}

// FaultNote is what became of one action of a fault.
type FaultNote struct {
	// Kind of the action. Failed: it is not known to have happened as planned.
	Kind    string
	Failed  bool
	Message string
}

// Injector carries out faults that no agent can, those of Chaos Mesh.
type Injector interface {
	// Refusal says why the trial's faults cannot be carried out; empty: they can.
	Refusal(ctx context.Context, trial *v1alpha1.Trial) (string, error)
	// Of is what it does in one trial.
	Of(s *Subject, pods map[string]*corev1.Pod, faults []*fault.Occurrence) Injection
	// Clear begins to undo all that is left of its faults.
	Clear(ctx context.Context, trial *v1alpha1.Trial) error
}

// Injection is the faults of one trial.
type Injection interface {
	// Due does what is due, and says how soon something will be again.
	Due(ctx context.Context) (time.Duration, error)
	// Record is what became of an action, or nil.
	Record(a timeline.Action) *protocol.ActionRecord
	// Injected is what is known of one time of a fault.
	Injected(o *fault.Occurrence) validity.Injection
}

// NodeResetter has nodes reset by agents of their own.
type NodeResetter interface {
	// Refusal says why one of the nodes may not be reset; empty: all may.
	Refusal(ctx context.Context, trial *v1alpha1.Trial, resets Resets) (string, error)
	// Create makes an agent on each node. refusal says which one cannot be made, and why.
	Create(ctx context.Context, trial *v1alpha1.Trial, nodes []string) (refusal string, err error)
	// Describe names the agent of a node for users.
	Describe(node string) string
}

// Prometheus answers measurements.
type Prometheus interface {
	// HasPodMonitors reports whether experiments are to have PodMonitors.
	HasPodMonitors() (bool, error)
	// Scraped says whether Prometheus scrapes all pods of a trial, once that is known.
	Scraped(trial types.UID, pods func() monitoring.Pods) (all, known bool)
	// Ask begins to answer a trial's request, once, and returns the answer when it is there.
	Ask(trial types.UID, request func() monitoring.Request) (answer []results.Measurement, done bool)
}

// ErrConflict is the error of a write whose subject has changed since it was read.
var ErrConflict error = conflictError{}

type conflictError struct{}

func (conflictError) Error() string { return "the trial has changed since it was read" }

// LostError says that the trial needs a thing that is gone and cannot be made again.
type LostError struct{ Err error }

func (e *LostError) Error() string { return e.Err.Error() }

func (e *LostError) Unwrap() error { return e.Err }

// LeftError says that nothing of a trial runs any more, and what of it cannot be deleted.
type LeftError struct{ Err error }

func (e *LeftError) Error() string { return e.Err.Error() }

func (e *LeftError) Unwrap() error { return e.Err }

// RejectedError says that a part of the trial cannot be made, however often it is tried.
type RejectedError struct {
	// Reason is one of the reasons of the condition Valid. Message is a sentence for users.
	Reason, Message string
}

func (e *RejectedError) Error() string { return e.Message }

// noInjection is that of a world without an injector.
type noInjection struct{}

func (noInjection) Due(context.Context) (time.Duration, error) { return time.Hour, nil }

func (noInjection) Record(a timeline.Action) *protocol.ActionRecord {
	return &protocol.ActionRecord{ID: a.ID, Planned: a.At, Error: errNoInjector.Error()}
}

func (noInjection) Injected(o *fault.Occurrence) validity.Injection {
	return validity.Injection{Fault: o.Fault, Time: o.Time, Pods: o.Pods, Peers: o.Peers}
}

var errNoInjector = errors.New("nothing here carries such faults out")
