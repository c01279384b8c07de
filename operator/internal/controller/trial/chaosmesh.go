package trial

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/chaosmesh"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/render"
	"assay.dev/assay/operator/internal/timeline"
	"assay.dev/assay/operator/internal/verdict"
)

// What Chaos Mesh does is seen to by the manager: it makes an object at the planned instant, reads off it that it is done, deletes it at the planned end, and sees that
// it is gone. An agent has no part in it.
//
//	planned ─(instant)─▶ created ─(AllInjected, of our pods)─▶ confirmed ─(end)─▶ deletion asked for ─(finalizer gone)─▶ gone
//
// What has been seen is written to a ConfigMap of the trial before the object is deleted, so that a manager that takes over knows it. See chaosrecords.go.

const (
	// chaosMissed is how much later than planned an object may be made, or its deletion asked for, which are the manager's own doing. What it missed by more, because
	// there was none, is not made up for.
	chaosMissed = verdict.RecoverLateness
	// chaosRecovery is how long it may take to undo it: until the object is gone.
	chaosRecovery = 30 * time.Second
	// chaosPoll is how soon to look again for what it says, and chaosSlowPoll if it has had chaosPatience to say it; its objects are not watched.
	chaosPoll     = 50 * time.Millisecond
	chaosSlowPoll = 250 * time.Millisecond
	chaosPatience = 2 * time.Second
	// chaosCall bounds one request about its objects: they go through its webhooks, which may not answer.
	chaosCall = 5 * time.Second
)

// Annotations of objects of Chaos Mesh, by which a manager that takes over goes on.
const (
	annotationCreated = "assay.dev/created" // when its creation was asked for, in Unix nanoseconds
	annotationBefore  = "assay.dev/before"  // what the pods were before, as JSON: see chaosevidence.go
)

// chaosMeshes reports whether an action is seen to by the manager, through Chaos Mesh.
func chaosMeshes(a timeline.Action) bool {
	return a.Kind == timeline.Inject || a.Kind == timeline.Recover
}

func usesChaosMesh(spec *v1alpha1.TrialSpec) bool {
	return slices.ContainsFunc(spec.Faults, func(f v1alpha1.Fault) bool { return f.ChaosMesh != nil })
}

// chaosMesh gives a trial up before anything is made for it when the cluster has no such objects, or the manager may not touch them.
func (r *Reconciler) chaosMesh(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if isTrue(s.trial, v1alpha1.TrialDeployed) {
		return true, 0, nil
	}
	return r.chaosMeshServed(ctx, s)
}

// chaosMeshServed is asked again right before t = 0 is agreed.
func (r *Reconciler) chaosMeshServed(ctx context.Context, s *scope) (bool, time.Duration, error) {
	for _, kind := range chaosmesh.Kinds(s.trial.Spec.Faults) {
		_, err := r.chaosObjects(ctx, s.trial, kind)
		switch {
		case unserved(err):
			s.giveUp(v1alpha1.ReasonChaosMeshMissing, "A fault needs Chaos Mesh, and the cluster has no kind %s (%s): install Chaos Mesh.", kind, chaosmesh.GroupVersion)
			return false, 0, nil
		case apierrors.IsForbidden(err):
			s.giveUp(v1alpha1.ReasonChaosMeshMissing, "A fault needs Chaos Mesh, and the manager may not use its kind %s: the owner of the installation sets chaosMesh.enabled: true of the chart.", kind)
			return false, 0, nil
		case err != nil:
			return false, 0, err
		}
	}
	return true, 0, nil
}

// unserved reports whether the API server knows no such kind.
func unserved(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

// chaosObjects lists a trial's objects of one kind, past the cache: they are few, and nobody else's are looked at.
func (r *Reconciler) chaosObjects(ctx context.Context, trial *v1alpha1.Trial, kind string) ([]unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, chaosCall)
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(chaosmesh.GroupVersion.WithKind(kind + "List"))
	err := r.Reader.List(ctx, list, client.InNamespace(trial.Namespace), client.MatchingLabels{v1alpha1.LabelTrial: trial.Name})
	return list.Items, wrap("list the trial's objects of kind "+kind, err)
}

// chaosTime is one time of a fault that Chaos Mesh carries out.
type chaosTime struct {
	id          string // "<fault>/<time>"
	fault       *v1alpha1.Fault
	time        int
	from, to    time.Duration // relative to t = 0; to is 0 when it is over at once
	pods, peers []string
}

// chaosTimes are all of a trial, in order. They follow from its spec and layout, so that they are known while a pod has no address. A plan of faults that cannot be made has
// none: such a trial is given up when it is rendered, before anything happens.
func (r *Reconciler) chaosTimes(s *scope) []*chaosTime {
	if !usesChaosMesh(&s.trial.Spec) {
		return nil
	}
	var times []*chaosTime
	r.remember(s.trial, func(m *memo) { times = m.chaosTimes })
	if times != nil {
		return times
	}
	actions, err := timeline.Build(s.trial.Spec.Faults, timeline.FromSchedule(s.trial.Spec.Schedule), s.layout)
	if err != nil {
		return nil
	}
	byID := map[string]*chaosTime{}
	for _, a := range actions {
		if !chaosMeshes(a) {
			continue
		}
		id := occurrenceOf(a)
		t := byID[id]
		if t == nil {
			i := slices.IndexFunc(s.trial.Spec.Faults, func(f v1alpha1.Fault) bool { return f.Name == a.Fault })
			t = &chaosTime{id: id, fault: s.trial.Spec.Faults[i].DeepCopy(), time: a.Time, from: a.At, peers: a.Peers}
			byID[id], times = t, append(times, t)
		}
		if a.Kind == timeline.Recover {
			t.to = a.At
			continue
		}
		t.pods = append(t.pods, a.Pod)
	}
	r.remember(s.trial, func(m *memo) { m.chaosTimes = times })
	return times
}

// occurrenceOf names the time of the fault that an action belongs to.
func occurrenceOf(a timeline.Action) string { return fmt.Sprintf("%s/%d", a.Fault, a.Time) }

// chaos does what is due of the faults that Chaos Mesh carries out, and says how soon there is something to do again. It fails for nothing but its own memory: what
// the API server does not answer is asked again until the fault's own deadlines are over.
func (r *Reconciler) chaos(ctx context.Context, s *scope) (time.Duration, error) {
	if len(s.times) == 0 {
		return time.Hour, nil
	}
	records, err := r.chaosRecordsOf(ctx, s)
	if err != nil {
		return 0, err
	}
	before := records.values()
	next := time.Hour
	for _, t := range s.times {
		next = min(next, r.chaosStep(ctx, s, t, records.of(t.id)))
	}
	if !maps.Equal(before, records.values()) {
		if err := r.keepChaosRecords(ctx, s, records); err != nil {
			return chaosPoll, err
		}
	}
	return next, nil
}

// chaosStep brings one time of a fault forward, and says how soon to look again.
func (r *Reconciler) chaosStep(ctx context.Context, s *scope, t *chaosTime, rec *chaosRecord) time.Duration {
	zero := s.zero()
	from := zero.Add(t.from)
	switch {
	case rec.Gone != 0 || rec.EndError != "" || rec.Error != "" && rec.Created == 0:
		return time.Hour
	case rec.Created == 0:
		if left := from.Sub(r.Clock.Now()); left > 0 {
			return left
		}
		return r.createChaos(ctx, s, t, rec)
	}
	if rec.Confirmed == 0 && rec.Error == "" {
		r.confirmChaos(ctx, s, t, rec)
	}
	over := rec.Error != "" || t.to == 0 && rec.Confirmed != 0
	if t.to != 0 && !over {
		left := zero.Add(t.to).Sub(r.Clock.Now())
		if left > 0 && rec.Confirmed != 0 {
			return left
		}
		over = left <= 0
	}
	if !over {
		return r.poll(rec.Created)
	}
	return r.endChaos(ctx, s, t, rec)
}

// poll is how soon to look again for what has been waited for since an instant.
func (r *Reconciler) poll(since int64) time.Duration {
	if r.Clock.Now().Sub(time.Unix(0, since)) > chaosPatience {
		return chaosSlowPoll
	}
	return chaosPoll
}

// createChaos makes the object. A manager that comes too late for it does not make up for it: what the experiment says would not be what happened.
func (r *Reconciler) createChaos(ctx context.Context, s *scope, t *chaosTime, rec *chaosRecord) time.Duration {
	u, err := r.chaosObject(s, t)
	if err != nil {
		rec.Error = err.Error()
		return time.Hour
	}
	now := r.Clock.Now()
	late := now.Sub(s.zero().Add(t.from))
	if late > chaosMissed {
		switch found, err := r.adopt(ctx, u, s, rec); {
		case found || err != nil && late <= s.chaosTolerance():
		case err != nil:
			rec.Error = clean(err.Error())
		default:
			rec.Error = fmt.Sprintf("no manager was there to make the %s at the planned instant; %v later is too late", u.GetKind(), late.Round(time.Millisecond))
		}
		return chaosPoll
	}
	u.SetAnnotations(map[string]string{annotationCreated: fmt.Sprint(now.UnixNano()), annotationBefore: s.evidence(t)})
	call, cancel := context.WithTimeout(ctx, chaosCall)
	defer cancel()
	switch err := r.Client.Create(call, u); {
	case err == nil:
		rec.Created = now.UnixNano()
	case apierrors.IsAlreadyExists(err):
		if found, err := r.adopt(ctx, u, s, rec); !found && err == nil {
			rec.Error = fmt.Sprintf("%s %s is there already and is not the trial's", u.GetKind(), u.GetName())
		}
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), unserved(err):
		rec.Error = fmt.Sprintf("the %s was refused: %s", u.GetKind(), clean(err.Error()))
	default:
		// A webhook that does not answer may do so the next time. It is given up when it would be too late.
		if late+chaosPoll > chaosMissed {
			rec.Error = fmt.Sprintf("the %s could not be made in time: %s", u.GetKind(), clean(err.Error()))
		}
	}
	return chaosPoll
}

// chaosObject makes the object of one time of a fault, owned by the trial: what no manager deletes goes with it.
func (r *Reconciler) chaosObject(s *scope, t *chaosTime) (*unstructured.Unstructured, error) {
	o := chaosmesh.Occurrence{
		Namespace: s.key.Namespace, Trial: s.key.Name, Experiment: s.trial.Spec.Experiment, Fault: t.fault, Time: t.time, Pods: t.pods, Peers: t.peers,
		Containers: render.ContainersOf(s.system),
	}
	if t.to != 0 {
		o.Left = max(time.Millisecond, s.zero().Add(t.to).Sub(r.Clock.Now()))
	}
	u, err := o.Object()
	if err != nil {
		return nil, err
	}
	return u, controllerutil.SetOwnerReference(s.trial, u, r.Client.Scheme())
}

// adopt takes over the object that another manager made for the same time of the fault, if there is one.
func (r *Reconciler) adopt(ctx context.Context, like *unstructured.Unstructured, s *scope, rec *chaosRecord) (found bool, err error) {
	there, err := r.getChaos(ctx, like)
	if err != nil || there == nil || there.GetLabels()[v1alpha1.LabelTrial] != s.key.Name {
		return false, err
	}
	_, _ = fmt.Sscan(there.GetAnnotations()[annotationCreated], &rec.Created) // 0 when it is none: somebody else has made the object
	return rec.Created != 0, nil
}

// getChaos reads an object; nil if there is none.
func (r *Reconciler) getChaos(ctx context.Context, like *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, chaosCall)
	defer cancel()
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(like.GroupVersionKind())
	err := r.Reader.Get(ctx, client.ObjectKeyFromObject(like), there)
	if unserved(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", like.GetKind(), like.GetName(), err)
	}
	return there, nil
}

// confirmChaos looks whether the fault is in force. Chaos Mesh says so in the object's conditions; what can be seen of the pods themselves must agree.
func (r *Reconciler) confirmChaos(ctx context.Context, s *scope, t *chaosTime, rec *chaosRecord) {
	like, err := r.chaosObject(s, t)
	if err != nil {
		rec.Error = err.Error()
		return
	}
	what := like.GetKind() + " " + like.GetName()
	u, err := r.getChaos(ctx, like)
	waiting := ""
	switch {
	case err != nil:
		waiting = err.Error()
	case u == nil:
		rec.Error = what + " is gone; somebody else has deleted it"
		return
	default:
		var wrong string
		if waiting, wrong = s.chaosUnconfirmed(t, u); wrong != "" {
			rec.Error = wrong
			return
		}
	}
	now := r.Clock.Now()
	switch late := now.Sub(s.zero().Add(t.from)); {
	case waiting == "":
		rec.Confirmed = now.UnixNano()
	case late > s.chaosTolerance():
		rec.Error = fmt.Sprintf("%v after the planned instant, %s", late.Round(time.Second), waiting)
	case t.to != 0 && !now.Before(s.zero().Add(t.to)):
		rec.Error = "when it was to end, " + waiting
	}
}

// chaosUnconfirmed says what is not yet as it must be, or what will never be.
func (s *scope) chaosUnconfirmed(t *chaosTime, u *unstructured.Unstructured) (waiting, wrong string) {
	what := u.GetKind() + " " + u.GetName()
	state, err := chaosmesh.Read(u)
	switch {
	case err != nil:
		return "", err.Error()
	case state.Selected && state.WrongPods(t.pods, t.peers) != "":
		return "", state.WrongPods(t.pods, t.peers)
	case state.Failure != "" && !state.Injected:
		return chaosmesh.Explain(state.Failure), ""
	case !state.Said:
		return "nothing had acted on " + what + "; see whether Chaos Mesh's controller runs", ""
	case !state.Selected:
		return "Chaos Mesh had chosen no pod for " + what + "; see whether it acts in this namespace, which some installations want annotated", ""
	case !state.Injected:
		return "Chaos Mesh had not done yet what " + what + " says", ""
	}
	return s.unchanged(t, u), ""
}

// endChaos deletes the object and sees that it is gone, which is when Chaos Mesh has undone what it did.
func (r *Reconciler) endChaos(ctx context.Context, s *scope, t *chaosTime, rec *chaosRecord) time.Duration {
	like, err := r.chaosObject(s, t)
	if err != nil {
		rec.EndError = err.Error()
		return time.Hour
	}
	if rec.Ended == 0 {
		rec.Ended = r.chaosEnd(ctx, s, t, like).UnixNano()
		records, err := r.chaosRecordsOf(ctx, s)
		if err == nil {
			err = r.keepChaosRecords(ctx, s, records)
		}
		if err != nil {
			rec.Ended = 0 // it must be known before the object is gone
			return chaosPoll
		}
	}
	u, err := r.getChaos(ctx, like)
	switch {
	case err == nil && u == nil:
		rec.Gone = r.Clock.Now().UnixNano()
		return time.Hour
	case err == nil && u.GetDeletionTimestamp().IsZero():
		call, cancel := context.WithTimeout(ctx, chaosCall)
		defer cancel()
		err = client.IgnoreNotFound(r.Client.Delete(call, u))
	}
	if waited := r.Clock.Now().Sub(time.Unix(0, rec.Ended)); waited > chaosRecovery {
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
	return r.poll(rec.Ended)
}

// chaosEnd is when a fault ends that is to end now: now, or, where no manager was there to end it in time, when Chaos Mesh did so by the object's own duration.
func (r *Reconciler) chaosEnd(ctx context.Context, s *scope, t *chaosTime, like *unstructured.Unstructured) time.Time {
	now, planned := r.Clock.Now(), s.zero().Add(t.to)
	if t.to == 0 || now.Sub(planned) < chaosMissed {
		return now
	}
	u, err := r.getChaos(ctx, like)
	if err != nil || u == nil {
		return now
	}
	state, err := chaosmesh.Read(u)
	switch {
	case err != nil || !state.Recovered:
		return now
	case planned.After(state.RecoveredAt) && planned.Sub(state.RecoveredAt) < time.Second:
		return planned // it was in this second, and not before the duration was over
	}
	return state.RecoveredAt
}

// chaosTolerance is how late what Chaos Mesh does may be seen to be in force; it is not waited for longer.
func (s *scope) chaosTolerance() time.Duration {
	return plan.DefaultTolerances(s.trial.Spec.Tolerances).ChaosMeshLateness.OrZero()
}

// chaosActionRecord is what became of an action that Chaos Mesh was to carry out, or nil while that is not known.
func (s *scope) chaosActionRecord(a timeline.Action) *protocol.ActionRecord {
	rec := s.chaosRecords[occurrenceOf(a)]
	if rec == nil {
		return nil
	}
	since := func(nanos int64) time.Duration {
		if nanos == 0 {
			return 0
		}
		return time.Duration(nanos - s.trial.Status.ZeroUnixNanos)
	}
	switch {
	case a.Kind == timeline.Inject && (rec.Confirmed != 0 || rec.Error != ""):
		return &protocol.ActionRecord{ID: a.ID, Planned: a.At, Started: since(rec.Created), Confirmed: since(rec.Confirmed), Error: rec.Error}
	case a.Kind == timeline.Recover && (rec.Gone != 0 || rec.EndError != ""):
		return &protocol.ActionRecord{ID: a.ID, Planned: a.At, Started: since(rec.Ended), Confirmed: since(rec.Gone), Error: rec.EndError}
	case a.Kind == timeline.Recover && rec.Error != "":
		// The trial is invalid for the fault's beginning. Nobody has to wait for what may take Chaos Mesh for ever.
		return &protocol.ActionRecord{ID: a.ID, Planned: a.At, Started: since(rec.Ended), Error: "the fault was not confirmed, so that its end is not waited for"}
	}
	return nil
}

// clean makes one line of an error.
func clean(text string) string { return strings.Join(strings.Fields(text), " ") }
