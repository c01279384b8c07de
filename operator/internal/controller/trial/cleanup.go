package trial

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/controller/trial/chaos"
	"assay.dev/assay/operator/internal/controller/trial/objects"
	"assay.dev/assay/operator/internal/controller/trial/storage"
	"assay.dev/assay/operator/internal/engine/startup"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/render"
)

// finishGrace is how long, beyond the System's own grace, the processes may take to end before
// their pods are deleted all the same.
const finishGrace = 5 * time.Second

// handOverGrace is how long after that pods may take to give their files away, where the trial has
// a store; agents give up a little earlier.
const handOverGrace = 80 * time.Second

// collectGrace is the same where it has none, and little is sent to the manager.
const collectGrace = 20 * time.Second

const (
	// deletionPoll is how soon to look again for objects whose end no watch tells.
	deletionPoll = 200 * time.Millisecond
	// leavingPoll is how often the API server is asked what is left while the cache still shows
	// pods that end.
	leavingPoll = 2 * time.Second
)

// cleanUp ends the processes as the System wants it, deletes all that the trial made but its
// results, confirms that it is gone, and completes the trial.
func (r *Reconciler) cleanUp(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if _, _, err := r.chaos().Clear(ctx, s.trial, r.chaosMemory(s.trial)); err != nil {
		return false, 0, err
	}
	if kept, left, err := keep(ctx, r, s); err != nil || kept {
		return false, left, err
	}
	left := r.finishing(ctx, s)
	r.audit(ctx, s, true)
	if left > 0 {
		s.set(v1alpha1.TrialCleanedUp, metav1.ConditionFalse, v1alpha1.ReasonDeleting, "The processes are being ended.")
		return false, left, nil
	}
	if err := r.recordFailure(ctx, s); err != nil {
		// The trial holds its pools until a quota of ConfigMaps, say, lets its results be written,
		// but not for ever: then only its conditions tell of it.
		waited := s.now.Sub(meta.FindStatusCondition(s.trial.Status.Conditions, v1alpha1.TrialValid).LastTransitionTime.Time)
		if waited < storeGrace {
			s.set(v1alpha1.TrialCleanedUp, metav1.ConditionFalse, v1alpha1.ReasonDeleting, "Before anything is deleted: %s.", err)
			return false, min(storeGrace-waited+time.Millisecond, deployPoll), nil
		}
		s.set(v1alpha1.TrialCollected, metav1.ConditionFalse, v1alpha1.ReasonResultsNotStored, "After %v, what is known of the trial could not be stored: %s.", storeGrace, err)
	}
	if wait := r.leaving(s); wait > 0 {
		return false, wait, nil
	}
	if err := r.results().KeepFiles(ctx, s.trial, s.layout); err != nil {
		return false, 0, err
	}
	remains, err := r.deleteEverything(ctx, s.trial)
	if err != nil {
		return false, 0, err
	}
	if remains != "" {
		s.set(v1alpha1.TrialCleanedUp, metav1.ConditionFalse, v1alpha1.ReasonDeleting, "Still there: %s.", remains)
		return false, deletionPoll, nil
	}
	gone, err := r.objects().Gone(ctx, s.key)
	if err != nil {
		return false, 0, err
	}
	s.done(v1alpha1.TrialCleanedUp, v1alpha1.ReasonGone, gone, &s.trial.Status.Times.Done)
	reason, message := outcome(s.trial)
	s.set(v1alpha1.TrialComplete, metav1.ConditionTrue, reason, "%s", message)
	r.forget(s.key)
	return true, 0, nil
}

// leaving says how long to wait until the API server is asked again what is left; 0: ask now. Pods
// go last, and each of their changes wakes the trial up: while the cache shows pods that end, eight
// lists for each change would tell nothing new.
func (r *Reconciler) leaving(s *scope) (wait time.Duration) {
	ending := objects.Ending(s.pods)
	r.remember(s.trial, func(m *memo) {
		if next := m.leaving.Add(leavingPoll); ending && s.now.Before(next) {
			wait = next.Sub(s.now)
			return
		}
		m.leaving = s.now
	})
	return wait
}

// finishing asks every pod to end its processes and says how long to wait for it. Nothing to wait
// for: 0.
func (r *Reconciler) finishing(ctx context.Context, s *scope) time.Duration {
	c := meta.FindStatusCondition(s.trial.Status.Conditions, v1alpha1.TrialValid)
	if c == nil || len(s.pods) == 0 {
		return 0
	}
	if s.rendered == nil {
		if err := r.render(ctx, s); err != nil || s.rendered == nil {
			return 0
		}
	}
	if err := r.renderSuccessors(ctx, s); err != nil {
		return 0
	}
	st := stage{started: all(s.everyName()), steps: len(s.system.Steps), zero: s.trial.Status.ZeroUnixNanos, finish: true}
	if !isTrue(s.trial, v1alpha1.TrialStarted) {
		st.started = nil // what never ran need not start to be ended
	}
	r.direct(s, st)
	grace := finishGrace
	grace += startup.StopGrace(s.system)
	if n := s.trial.Status.Network; n != nil && n.Backend != "" {
		grace += s.longestRoundTrip() // what is under way is let through before the network is put back
	}
	by := c.LastTransitionTime.Add(grace)
	for _, name := range s.everyName() {
		if s.pods[name] == nil || !s.now.Before(by) {
			continue
		}
		if rep := s.report(name); rep != nil && !rep.Finished && rep.Failure == "" {
			return by.Sub(s.now)
		}
	}
	if s.trial.Spec.ResultsStore == "" {
		return s.handingOver(by.Add(collectGrace))
	}
	return s.handingOver(by.Add(handOverGrace))
}

// collect says which files are wanted of a pod when its processes are to end.
func (s *scope) collect(p *render.Pod) *protocol.Collect {
	if p == nil {
		return nil
	}
	return storage.Collect(s.trial, p.Directive.Collect, len(s.layout.Servers)+len(s.layout.Clients))
}

// handingOver says how long to wait for pods to give their files away. A pod that runs and has not
// reported is waited for, too: a manager that has just taken over must hear from its agent first.
func (s *scope) handingOver(by time.Time) time.Duration {
	for _, name := range s.everyName() {
		p := s.pods[name]
		if p == nil || p.Status.Phase != corev1.PodRunning || !s.now.Before(by) {
			continue
		}
		if s.trial.Spec.ResultsStore == "" && s.collect(s.renderedPod(name)) == nil {
			continue
		}
		if rep := s.report(name); rep == nil || !rep.HandedOver {
			return by.Sub(s.now)
		}
	}
	return 0
}

// deleteEverything deletes every object of a trial but its results, those of Chaos Mesh first, and
// says what is still there.
func (r *Reconciler) deleteEverything(ctx context.Context, trial *v1alpha1.Trial) (string, error) {
	x, m := r.chaos(), r.chaosMemory(trial)
	left, hold, err := x.Clear(ctx, trial, m)
	if err != nil || hold {
		return chaos.Remains(left), err
	}
	remains, err := r.deleteAll(ctx, client.ObjectKeyFromObject(trial))
	if err != nil || remains != "" || len(left) == 0 {
		return remains, err
	}
	return chaos.Remains(left), x.Force(ctx, trial, m, left)
}

// deleteAll deletes what the cluster keeps of the trial, and says what is still there.
func (r *Reconciler) deleteAll(ctx context.Context, key types.NamespacedName) (string, error) {
	machines, err := r.resetter().Pods(ctx, r.Reader, key)
	if err != nil {
		return "", err
	}
	return r.objects().DeleteAll(ctx, key, machines)
}

// finalize cleans up after a trial that is being deleted. It does not wait for processes to end by
// themselves: nobody wants their results any more.
func (r *Reconciler) finalize(ctx context.Context, trial *v1alpha1.Trial) (ctrl.Result, error) {
	key := client.ObjectKeyFromObject(trial)
	r.Coordinator.Forget(key)
	left, err := r.deleteEverything(ctx, trial)
	if err != nil {
		return ctrl.Result{}, err
	}
	if left != "" {
		return ctrl.Result{RequeueAfter: deletionPoll}, nil
	}
	r.forget(key)
	before := trial.DeepCopy()
	if controllerutil.RemoveFinalizer(trial, v1alpha1.FinalizerTrial) {
		// Only that: a whole object has defaults of fields that are newer than it, which would be a
		// change of its spec.
		err := r.Client.Patch(ctx, trial, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		return ctrl.Result{}, wrap("remove the finalizer", client.IgnoreNotFound(err))
	}
	return ctrl.Result{}, nil
}
