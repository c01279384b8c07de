// Package chaos carries out the faults of trials that need Chaos Mesh. It makes an object at the
// planned instant, reads from it that the fault is in force, deletes it at the planned end, and
// checks that it is gone. No agent takes part.
//
//	planned ─(instant)─▶ created ─(AllInjected, of our pods)─▶ confirmed ─(end)─▶ deletion asked for ─(finalizer gone)─▶ gone
//
// It writes every observation to a ConfigMap of the trial before it deletes the object, so that a
// manager that takes over knows it: see records.go. At the end of a trial nothing of Chaos Mesh may
// be left: see clear.go.
package chaos

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/experiment/chaosmesh"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

const (
	// missed is how much later than planned the manager may make an object, or ask for its
	// deletion. If no manager was there for longer, the instant is missed.
	missed = validity.RecoverLateness
	// Recovery is how long undoing a fault may take, until the object is gone.
	Recovery = 30 * time.Second
	// Poll is how soon to look again at an object, which is not watched. After patience, it is
	// SlowPoll.
	Poll     = 50 * time.Millisecond
	SlowPoll = 250 * time.Millisecond
	patience = 2 * time.Second
	// callTimeout bounds one request about an object: it goes through Chaos Mesh's webhooks, which
	// may not answer.
	callTimeout = 5 * time.Second
)

// Annotations of objects of Chaos Mesh, for a manager that takes over.
const (
	annotationCreated = "assay.dev/created" // when its creation was requested, in Unix nanoseconds
	annotationBefore  = "assay.dev/before"  // the pods before the fault, as JSON: see evidence.go
)

// Executor carries faults out. It keeps no state of its own: the state of a trial is in its Run.
type Executor struct {
	Client client.Client
	// Reader reads past the cache: objects of Chaos Mesh are not cached.
	Reader   client.Reader
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
}

// Run is an observed trial after its release, with faults of Chaos Mesh.
type Run struct {
	Trial       *v1alpha1.Trial
	System      *v1alpha1.SystemSpec
	Layout      *placement.Layout
	Pods        map[string]*corev1.Pod // by name in the layout
	Occurrences []*fault.Occurrence    // those that Chaos Mesh carries out
	Memory      *Memory
}

// Memory is the state of one trial that is kept between reconciles. All of it can be made again.
type Memory struct {
	records records   // records of its faults; nil until they have been read
	ending  time.Time // since when the trial waits for its last objects to go; zero: it does not wait
}

func (r *Run) zero() time.Time { return time.Unix(0, r.Trial.Status.ZeroUnixNanos) }

// Refusal says why the cluster cannot carry out the trial's faults: it has no such kinds, or the
// manager has no right to them. Empty: it can.
func (x *Executor) Refusal(ctx context.Context, trial *v1alpha1.Trial) (string, error) {
	for _, kind := range chaosmesh.Kinds(trial.Spec.Faults) {
		_, err := x.objects(ctx, trial, kind)
		switch {
		case unserved(err):
			return fmt.Sprintf("A fault needs Chaos Mesh, and the cluster has no kind %s (%s): install Chaos Mesh.", kind, chaosmesh.GroupVersion), nil
		case apierrors.IsForbidden(err):
			return fmt.Sprintf("A fault needs Chaos Mesh, and the manager may not use its kind %s: the owner of the installation sets chaosMesh.enabled: true of the chart.", kind), nil
		case err != nil:
			return "", err
		}
	}
	return "", nil
}

// unserved reports whether the API server does not know the kind.
func unserved(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

// objects lists a trial's objects of one kind, past the cache. They are few, and it reads no
// others.
func (x *Executor) objects(ctx context.Context, trial *v1alpha1.Trial, kind string) ([]unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(chaosmesh.GroupVersion.WithKind(kind + "List"))
	err := x.Reader.List(ctx, list, client.InNamespace(trial.Namespace), client.MatchingLabels{v1alpha1.LabelTrial: trial.Name})
	return list.Items, wrap("list the trial's objects of kind "+kind, err)
}

// Due does the work that is due for faults of Chaos Mesh, and returns how soon there is more. It
// fails only if it cannot read or write its records. If the API server does not answer, it asks
// again until the deadlines of the fault are over.
func (x *Executor) Due(ctx context.Context, r *Run) (time.Duration, error) {
	if len(r.Occurrences) == 0 {
		return time.Hour, nil
	}
	known, err := x.recordsOf(ctx, r)
	if err != nil {
		return 0, err
	}
	before := known.values()
	next := time.Hour
	for _, t := range r.Occurrences {
		next = min(next, x.step(ctx, r, t, known.of(t.ID)))
	}
	if !maps.Equal(before, known.values()) {
		if err := x.keep(ctx, r, known); err != nil {
			return Poll, err
		}
	}
	return next, nil
}

// step moves one occurrence of a fault forward, and returns how soon to look again.
func (x *Executor) step(ctx context.Context, r *Run, t *fault.Occurrence, rec *record) time.Duration {
	zero := r.zero()
	from := zero.Add(t.From)
	switch {
	case rec.Gone != 0 || rec.EndError != "" || rec.Error != "" && rec.Created == 0:
		return time.Hour
	case rec.Created == 0:
		if left := from.Sub(x.Clock.Now()); left > 0 {
			return left
		}
		return x.create(ctx, r, t, rec)
	}
	if rec.Confirmed == 0 && rec.Error == "" {
		x.confirm(ctx, r, t, rec)
	}
	over := rec.Error != "" || t.To == 0 && rec.Confirmed != 0
	if t.To != 0 && !over {
		left := zero.Add(t.To).Sub(x.Clock.Now())
		if left > 0 && rec.Confirmed != 0 {
			return left
		}
		over = left <= 0
	}
	if !over {
		return x.poll(rec.Created)
	}
	return x.end(ctx, r, t, rec)
}

// poll returns how soon to look again, given since when the manager waits.
func (x *Executor) poll(since int64) time.Duration {
	if x.Clock.Now().Sub(time.Unix(0, since)) > patience {
		return SlowPoll
	}
	return Poll
}

// create makes the object. A manager that comes too late does not make it, since the trial would
// not be the one that the experiment describes.
func (x *Executor) create(ctx context.Context, r *Run, t *fault.Occurrence, rec *record) time.Duration {
	u, err := x.object(r, t)
	if err != nil {
		rec.Error = err.Error()
		return time.Hour
	}
	now := x.Clock.Now()
	late := now.Sub(r.zero().Add(t.From))
	if late > missed {
		switch found, err := x.adopt(ctx, u, r, rec); {
		case found || err != nil && late <= r.tolerance():
		case err != nil:
			rec.Error = clean(err.Error())
		default:
			rec.Error = fmt.Sprintf("no manager was there to make the %s at the planned instant; %v later is too late", u.GetKind(), late.Round(time.Millisecond))
		}
		return Poll
	}
	u.SetAnnotations(map[string]string{annotationCreated: fmt.Sprint(now.UnixNano()), annotationBefore: r.evidence(t)})
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	switch err := x.Client.Create(call, u); {
	case err == nil:
		rec.Created = now.UnixNano()
	case apierrors.IsAlreadyExists(err):
		if found, err := x.adopt(ctx, u, r, rec); !found && err == nil {
			rec.Error = fmt.Sprintf("%s %s is there already and is not the trial's", u.GetKind(), u.GetName())
		}
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), unserved(err):
		rec.Error = fmt.Sprintf("the %s was refused: %s", u.GetKind(), clean(err.Error()))
	default:
		// A webhook that does not answer may answer the next time, until it is too late.
		if late+Poll > missed {
			rec.Error = fmt.Sprintf("the %s could not be made in time: %s", u.GetKind(), clean(err.Error()))
		}
	}
	return Poll
}

// object returns the object of one time of a fault. The trial owns it, so that it is deleted with
// the trial if no manager deletes it.
func (x *Executor) object(r *Run, t *fault.Occurrence) (*unstructured.Unstructured, error) {
	o := chaosmesh.Occurrence{
		Namespace: r.Trial.Namespace, Trial: r.Trial.Name, Experiment: r.Trial.Spec.Experiment, Fault: t.Fault, Time: t.Time, Pods: t.Pods, Peers: t.Peers,
		Containers: render.ContainersOf(r.System, t.Fault),
	}
	if t.To != 0 {
		o.Left = max(time.Millisecond, r.zero().Add(t.To).Sub(x.Clock.Now()))
	}
	u, err := o.Object()
	if err != nil {
		return nil, err
	}
	return u, controllerutil.SetOwnerReference(r.Trial, u, x.Client.Scheme())
}

// adopt takes over the object that another manager made for the same time of the fault, if there is
// one.
func (x *Executor) adopt(ctx context.Context, like *unstructured.Unstructured, r *Run, rec *record) (found bool, err error) {
	there, err := x.get(ctx, like)
	if err != nil || there == nil || there.GetLabels()[v1alpha1.LabelTrial] != r.Trial.Name {
		return false, err
	}
	_, _ = fmt.Sscan(there.GetAnnotations()[annotationCreated], &rec.Created) // 0 if another program has made the object
	return rec.Created != 0, nil
}

// get reads an object, or returns nil if there is none.
func (x *Executor) get(ctx context.Context, like *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(like.GroupVersionKind())
	err := x.Reader.Get(ctx, client.ObjectKeyFromObject(like), there)
	if unserved(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", like.GetKind(), like.GetName(), err)
	}
	return there, nil
}

// confirm checks whether the fault is in force: the object's conditions must say so, and the pods
// must agree.
func (x *Executor) confirm(ctx context.Context, r *Run, t *fault.Occurrence, rec *record) {
	like, err := x.object(r, t)
	if err != nil {
		rec.Error = err.Error()
		return
	}
	what := like.GetKind() + " " + like.GetName()
	u, err := x.get(ctx, like)
	waiting := ""
	switch {
	case err != nil:
		waiting = err.Error()
	case u == nil:
		rec.Error = what + " is gone; somebody else has deleted it"
		return
	default:
		var wrong string
		if waiting, wrong = r.unconfirmed(t, u); wrong != "" {
			rec.Error = wrong
			return
		}
	}
	now := x.Clock.Now()
	switch late := now.Sub(r.zero().Add(t.From)); {
	case waiting == "":
		rec.Confirmed = now.UnixNano()
	case late > r.tolerance():
		rec.Error = fmt.Sprintf("%v after the planned instant, %s", late.Round(time.Second), waiting)
	case t.To != 0 && !now.Before(r.zero().Add(t.To)):
		rec.Error = "when it was to end, " + waiting
	}
}

// unconfirmed says what the fault still waits for, or what is wrong for good.
func (r *Run) unconfirmed(t *fault.Occurrence, u *unstructured.Unstructured) (waiting, wrong string) {
	what := u.GetKind() + " " + u.GetName()
	state, err := chaosmesh.Read(u)
	switch {
	case err != nil:
		return "", err.Error()
	case state.Selected && state.WrongPods(t.Pods, t.Peers) != "":
		return "", state.WrongPods(t.Pods, t.Peers)
	case state.Failure != "" && !state.Injected:
		return chaosmesh.Explain(state.Failure), ""
	case !state.Said:
		return "nothing had acted on " + what + "; see whether Chaos Mesh's controller runs", ""
	case !state.Selected:
		return "Chaos Mesh had chosen no pod for " + what + "; see whether it acts in this namespace, which some installations want annotated", ""
	case !state.Injected:
		return "Chaos Mesh had not done yet what " + what + " says", ""
	}
	return r.unchanged(t, u), ""
}

// end deletes the object and checks that it is gone. Chaos Mesh has then undone the fault.
func (x *Executor) end(ctx context.Context, r *Run, t *fault.Occurrence, rec *record) time.Duration {
	like, err := x.object(r, t)
	if err != nil {
		rec.EndError = err.Error()
		return time.Hour
	}
	if rec.Ended == 0 {
		rec.Ended = x.endOf(ctx, r, t, like).UnixNano()
		known, err := x.recordsOf(ctx, r)
		if err == nil {
			err = x.keep(ctx, r, known)
		}
		if err != nil {
			rec.Ended = 0 // the record must be saved before the object is gone
			return Poll
		}
	}
	u, err := x.get(ctx, like)
	switch {
	case err == nil && u == nil:
		rec.Gone = x.Clock.Now().UnixNano()
		return time.Hour
	case err == nil && u.GetDeletionTimestamp().IsZero():
		call, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		err = client.IgnoreNotFound(x.Client.Delete(call, u))
	}
	if waited := x.Clock.Now().Sub(time.Unix(0, rec.Ended)); waited > Recovery {
		rec.EndError = fmt.Sprintf("%s %s is still there %v after its deletion", like.GetKind(), like.GetName(), waited.Round(time.Second))
		switch {
		case err != nil:
			rec.EndError += ": " + clean(err.Error())
		case u != nil:
			if state, err := chaosmesh.Read(u); err == nil && state.Failure != "" {
				rec.EndError += ": " + chaosmesh.Explain(state.Failure)
			}
		}
	}
	return x.poll(rec.Ended)
}

// endOf returns when a fault ends that is due to end. That is now. If no manager was there in time,
// it is when Chaos Mesh ended the fault by the object's own duration.
func (x *Executor) endOf(ctx context.Context, r *Run, t *fault.Occurrence, like *unstructured.Unstructured) time.Time {
	now, planned := x.Clock.Now(), r.zero().Add(t.To)
	if t.To == 0 || now.Sub(planned) < missed {
		return now
	}
	u, err := x.get(ctx, like)
	if err != nil || u == nil {
		return now
	}
	state, err := chaosmesh.Read(u)
	switch {
	case err != nil || !state.Recovered:
		return now
	case planned.After(state.RecoveredAt) && planned.Sub(state.RecoveredAt) < time.Second:
		return planned // it ended in this second, and not before the duration was over
	}
	return state.RecoveredAt
}

// tolerance is how late a fault of Chaos Mesh may be confirmed. The manager waits no longer than
// that.
func (r *Run) tolerance() time.Duration {
	return plan.DefaultTolerances(r.Trial.Spec.Tolerances).ChaosMeshLateness.OrZero()
}

// Record returns the outcome of an action of Chaos Mesh, or nil while it is not known.
func (r *Run) Record(a timeline.Action) *protocol.ActionRecord {
	rec := r.Memory.records[fault.OccurrenceOf(a)]
	if rec == nil {
		return nil
	}
	since := func(nanos int64) time.Duration {
		if nanos == 0 {
			return 0
		}
		return time.Duration(nanos - r.Trial.Status.ZeroUnixNanos)
	}
	switch {
	case a.Kind == timeline.Inject && (rec.Confirmed != 0 || rec.Error != ""):
		return &protocol.ActionRecord{ID: a.ID, Planned: a.At, Started: since(rec.Created), Confirmed: since(rec.Confirmed), Error: rec.Error}
	case a.Kind == timeline.Recover && (rec.Gone != 0 || rec.EndError != ""):
		return &protocol.ActionRecord{ID: a.ID, Planned: a.At, Started: since(rec.Ended), Confirmed: since(rec.Gone), Error: rec.EndError}
	case a.Kind == timeline.Recover && rec.Error != "":
		// The trial is invalid already because of the fault's beginning. So no one waits for an end
		// that may never come.
		return &protocol.ActionRecord{ID: a.ID, Planned: a.At, Started: since(rec.Ended), Error: "the fault was not confirmed, so that its end is not waited for"}
	}
	return nil
}

// Injection returns the known facts about one time of a fault.
func (r *Run) Injection(o *fault.Occurrence) validity.Injection {
	i := validity.Injection{Fault: o.Fault, Time: o.Time, Pods: o.Pods, Peers: o.Peers}
	since := func(nanos int64) *time.Duration {
		if nanos == 0 {
			return nil
		}
		d := time.Duration(nanos - r.Trial.Status.ZeroUnixNanos)
		return &d
	}
	if rec := r.Memory.records[o.ID]; rec != nil {
		i.Confirmed, i.Ended = since(rec.Confirmed), since(rec.Ended)
	}
	return i
}

// clean puts an error on one line.
func clean(text string) string { return strings.Join(strings.Fields(text), " ") }
