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

// Subject is the trial that a call of an interface is about.
type Subject struct {
	Trial  *v1alpha1.Trial
	System *v1alpha1.SystemSpec
	Layout *placement.Layout
}

// Pods makes, observes and deletes the pods and other objects of a trial.
type Pods interface {
	// Ensure makes the objects of the trial that do not exist. A RejectedError ends the trial;
	// after any other error the engine tries again.
	Ensure(ctx context.Context, s *Subject) error
	// Observe returns the trial's pods by their names in the layout, also those that are being
	// deleted. It leaves out pods that do not exist.
	Observe(ctx context.Context, s *Subject) (map[string]*corev1.Pod, error)
	// Authorize allows only the agents of these pods, and the agents that reset nodes for the
	// trial, to report and to get directives. It returns the names of the agents that reset nodes.
	Authorize(ctx context.Context, s *Subject, pods map[string]*corev1.Pod) (resetters []string, err error)
	// Impostor says why a pod that has the name of a deleted pod was not made for the trial. Empty:
	// it was made for the trial.
	Impostor(ctx context.Context, s *Subject, pod *corev1.Pod) (why string, err error)
	// Refusal says, from events, why missing pods can never be made. Empty: no event says so.
	Refusal(ctx context.Context, s *Subject, pods map[string]*corev1.Pod) (why string, err error)
	// Delete deletes all objects of the trial but its results. A LeftError says that nothing of the
	// trial runs any more, but that an object cannot be deleted.
	Delete(ctx context.Context, trial *v1alpha1.Trial) (Remains, error)
}

// Remains describes the objects that are left of a trial during its deletion.
type Remains struct {
	// Left names objects that still exist. Empty: there are none.
	Left string
	// Gone is a sentence about the deletion, for when Left is empty.
	Gone string
}

// Record stores the state of a trial, so that another process can carry it on. Each write is made
// under the version that was read, so that it never overwrites the write of another process.
type Record interface {
	// System returns the trial's System in the state in which the experiment was accepted. A
	// LostError ends the trial.
	System(ctx context.Context, trial *v1alpha1.Trial) (*v1alpha1.SystemSpec, error)
	// Save writes the status of a trial and then reports events. before is the trial as it was
	// read. The error is ErrConflict if the trial has changed since. If only messages changed, Save
	// may write nothing and say after how long to save again.
	Save(ctx context.Context, before, trial *v1alpha1.Trial, events []Event) (hold time.Duration, err error)
	// Release returns the release that CreateRelease wrote, with the incarnations of the last
	// SaveIncarnations. The error is a LostError if there is none.
	Release(ctx context.Context, s *Subject) (Release, error)
	// CreateRelease writes the release, unless one exists.
	CreateRelease(ctx context.Context, s *Subject, r Release) error
	SaveIncarnations(ctx context.Context, s *Subject, all map[string][]validity.Incarnation) error
}

// Release has the data with which a run was released. Only trials whose faults move pods need it.
type Release struct {
	// Addresses of the pods, by name.
	Addresses map[string]string
	// Incarnations are the pods that have had each name since then.
	Incarnations map[string][]validity.Incarnation
}

// Event is reported to users after the status that it is about has been written.
type Event struct {
	Warning                 bool
	Reason, Action, Message string
}

// Attachments reads the data that agents sent, and stores the results of the trial.
type Attachments interface {
	// Prepared returns the packed output of the prepare step, or nil if there is none yet.
	Prepared(ctx context.Context, s *Subject) ([]byte, error)
	// Show makes the files of the pods readable for people.
	Show(ctx context.Context, s *Subject, files *corev1.ConfigMap) error
	// Clients returns the clients' results, and the files that were sent, by name.
	Clients(ctx context.Context, s *Subject) (clients []results.Client, sent map[string][]byte, err error)
	// Store stores the results of the trial. before is the trial as it was read. Store first writes
	// the digest of the results to the status, and gives both trials the new version. It fails with
	// ErrConflict if the trial has changed since.
	Store(ctx context.Context, s *Subject, before *v1alpha1.Trial, t *results.Trial, files Files) error
	// KeepFiles keeps the files that pods have sent beside the stored results.
	KeepFiles(ctx context.Context, s *Subject) error
}

// Files are kept beside a trial's results, by the names of files.
type Files struct {
	// Given are the files and commands that the pods got. Reports are the reports of the clients in
	// their original form.
	Given, Reports map[string][]byte
}

// Clock tells the time.
type Clock interface {
	Now() time.Time
}

// Agents passes directives on to the agents of pods, and keeps their last reports.
type Agents interface {
	Direct(trial types.NamespacedName, pod string, d protocol.Directive, files []protocol.File)
	// Report returns the last report of a pod and when it came, or nil.
	Report(trial types.NamespacedName, pod string) (*protocol.Report, time.Time)
}

// Experiment answers a trial's questions about other trials, and passes the trial's news on to
// users.
type Experiment interface {
	// KeepUntil returns until when the pods of a trial that does not count stay for inspection.
	// judged is when the trial was judged. Zero: the pods do not stay. message tells users so.
	KeepUntil(ctx context.Context, trial *v1alpha1.Trial, judged time.Time) (until time.Time, message string, err error)
	// Gap returns how long the trial's machines will have measured nothing when the trial begins.
	Gap(ctx context.Context, trial *v1alpha1.Trial, begins time.Time) (time.Duration, error)
	// Progress publishes the clients' progress, and gives both trials the new version. conflict:
	// the trial has changed since it was read, and nothing was published.
	Progress(ctx context.Context, before, trial *v1alpha1.Trial, p protocol.TrialProgress) (conflict bool, err error)
	// Faults reports all notes, in their order, or none.
	Faults(ctx context.Context, trial *v1alpha1.Trial, notes []FaultNote) error
}

// FaultNote is the outcome of one action of a fault.
type FaultNote struct {
	// Kind of the action. Failed: the action was not confirmed as planned.
	Kind    string
	Failed  bool
	Message string
}

// Injector carries out faults that no agent can, through Chaos Mesh.
type Injector interface {
	// Refusal says why the trial's faults cannot be carried out. Empty: they can.
	Refusal(ctx context.Context, trial *v1alpha1.Trial) (string, error)
	// Of returns the injection of one trial.
	Of(s *Subject, pods map[string]*corev1.Pod, occurrences []*fault.Occurrence) Injection
	// Clear begins to undo all that is left of the trial's faults.
	Clear(ctx context.Context, trial *v1alpha1.Trial) error
}

// Injection carries out the faults of one trial.
type Injection interface {
	// Due does the work that is due, and says how soon more will be due.
	Due(ctx context.Context) (time.Duration, error)
	// Record returns the record of an action, or nil.
	Record(a timeline.Action) *protocol.ActionRecord
	// Injected returns the known facts about one time of a fault.
	Injected(o *fault.Occurrence) validity.Injection
}

// NodeResetter resets nodes through agents on them.
type NodeResetter interface {
	// Refusal says why one of the nodes may not be reset. Empty: all may be reset.
	Refusal(ctx context.Context, trial *v1alpha1.Trial, resets Resets) (string, error)
	// Create makes an agent on each of the named nodes. refusal says which agent cannot be made,
	// and why.
	Create(ctx context.Context, trial *v1alpha1.Trial, names []string) (refusal string, err error)
	// Describe names the agent of a node for users.
	Describe(node string) string
}

// Prometheus answers measurements.
type Prometheus interface {
	// HasPodMonitors reports whether experiments are to have PodMonitors.
	HasPodMonitors() (bool, error)
	// Scraped reports whether Prometheus scrapes all pods of a trial. known is false until the
	// answer is known.
	Scraped(trial types.UID, pods func() monitoring.Pods) (all, known bool)
	// Ask begins to answer a trial's request, once. It returns the answer when there is one.
	Ask(trial types.UID, request func() monitoring.Request) (answer []results.Measurement, done bool)
}

// ErrConflict says that the object of a write has changed since it was read.
var ErrConflict error = conflictError{}

type conflictError struct{}

func (conflictError) Error() string { return "the trial has changed since it was read" }

// LostError says that an object that the trial needs is gone and cannot be made again.
type LostError struct{ Err error }

func (e *LostError) Error() string { return e.Err.Error() }

func (e *LostError) Unwrap() error { return e.Err }

// LeftError says that nothing of a trial runs any more, but that an object of it cannot be deleted.
type LeftError struct{ Err error }

func (e *LeftError) Error() string { return e.Err.Error() }

func (e *LeftError) Unwrap() error { return e.Err }

// RejectedError says that a part of the trial can never be made, even after a retry.
type RejectedError struct {
	// Reason is one of the reasons of the condition Valid. Message is a sentence for users.
	Reason, Message string
}

func (e *RejectedError) Error() string { return e.Message }

// noInjection is the injection of a World without an injector.
type noInjection struct{}

func (noInjection) Due(context.Context) (time.Duration, error) { return time.Hour, nil }

func (noInjection) Record(a timeline.Action) *protocol.ActionRecord {
	return &protocol.ActionRecord{ID: a.ID, Planned: a.At, Error: errNoInjector.Error()}
}

func (noInjection) Injected(o *fault.Occurrence) validity.Injection {
	return validity.Injection{Fault: o.Fault, Time: o.Time, Pods: o.Pods, Peers: o.Peers}
}

var errNoInjector = errors.New("nothing here carries such faults out")
