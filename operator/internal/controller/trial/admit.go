package trial

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/queue"
	"assay.dev/assay/operator/internal/render"
)

const (
	// queuePoll is how often a trial that waits looks by itself: for nodes, for room, for quota, for an end that the cache had not seen when it looked. The end
	// of a trial ahead wakes it up long before.
	queuePoll = 10 * time.Second
	// soonPoll is how often it looks while the next trial of an experiment before it is about to be made.
	soonPoll = time.Second
)

// admit lets a trial start when it is its turn, its pools are free and every pod of it has room: all or nothing. Package queue decides; what it decides from
// is read here. The admission of a trial is the lock of its pools, and lasts until the trial is over.
func (r *Reconciler) admit(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if isTrue(s.trial, v1alpha1.TrialAdmitted) {
		return true, 0, nil
	}
	experiments := &v1alpha1.ExperimentList{}
	if err := r.Client.List(ctx, experiments); err != nil {
		return false, 0, fmt.Errorf("list experiments: %w", err)
	}
	look := &lookout{r: r, trials: map[string]*v1alpha1.Trial{}}
	var d queue.Decision
	// The cache keeps the queue cheap: most trials that look find another ahead. One that finds none looks again past the cache, where a trial that was admitted
	// a moment ago is seen.
	for _, reader := range []client.Reader{r.Client, r.Reader} {
		list := &v1alpha1.TrialList{}
		err := reader.List(ctx, list)
		if err != nil {
			return false, 0, fmt.Errorf("list trials: %w", err)
		}
		for i := range list.Items {
			look.trials[list.Items[i].Namespace+"/"+list.Items[i].Name] = &list.Items[i]
		}
		entries := queue.Entries(list.Items, experiments.Items, s.now)
		if d, err = queue.Decide(s.key.String(), entries, func(e queue.Entry) (queue.Room, error) { return look.room(ctx, e) }); err != nil {
			return false, 0, err
		}
		if d.State != queue.Start {
			s.set(v1alpha1.TrialAdmitted, metav1.ConditionFalse, string(d.State), "%s", d.Message)
			if d.Soon {
				return false, soonPoll, nil
			}
			return false, queuePoll, nil
		}
	}
	s.done(v1alpha1.TrialAdmitted, v1alpha1.ReasonAdmitted, d.Message, &s.trial.Status.Times.Admitted)
	s.set(v1alpha1.TrialComplete, metav1.ConditionFalse, v1alpha1.ReasonInProgress, "The trial is on its way.")
	// The next reconcile observes what an admitted trial has; the status patch triggers it.
	return false, time.Millisecond, nil
}

// lookout finds out whether trials have room. It looks at the cluster once, when it is first asked.
type lookout struct {
	r       *Reconciler
	trials  map[string]*v1alpha1.Trial
	cluster *queue.Cluster // nil: not looked at, or it may not be
	looked  bool
}

// room of a trial: first for its results, then under the quotas of its namespace, then on the nodes.
func (l *lookout) room(ctx context.Context, e queue.Entry) (queue.Room, error) {
	trial := l.trials[e.Trial]
	if room, err := l.r.roomForResults(ctx, trial); err != nil || room.State != queue.Start {
		return room, err
	}
	pods, err := l.r.podsToBe(ctx, trial)
	if apierrors.IsNotFound(err) {
		// It may never be there again, and an error about one trial would keep all behind it from being decided about.
		return queue.Room{State: queue.NoRoom, Missing: fmt.Sprintf("Nobody knows what room the trial needs: %s. Restore it, or delete the experiment.", err)}, nil
	}
	if err != nil || pods == nil {
		return queue.Room{State: queue.Start}, err
	}
	quotas := &corev1.ResourceQuotaList{}
	if err := l.r.Reader.List(ctx, quotas, client.InNamespace(trial.Namespace)); err != nil {
		return queue.Room{}, fmt.Errorf("list the namespace's quotas: %w", err)
	}
	if room := queue.Quota(pods, quotas.Items); room.State != queue.Start {
		return room, nil
	}
	if err := l.look(ctx); err != nil || l.cluster == nil {
		return queue.Room{State: queue.Start}, err
	}
	return l.cluster.Room(pods), nil
}

// look reads the nodes and all pods on them, past the cache, which holds no nodes and only the pods of trials. A manager that was installed for some namespaces
// may not read nodes, unless their owner lets it, and sees only the pods of its own: then it leaves to the scheduler what it cannot know.
func (l *lookout) look(ctx context.Context) error {
	if l.looked {
		return nil
	}
	nodes, pods := &corev1.NodeList{}, &corev1.PodList{}
	switch err := l.r.Reader.List(ctx, nodes); {
	case apierrors.IsForbidden(err):
		logFor(ctx).Info("This manager may not list nodes, so trials start without a look at what is free", "err", err.Error())
		l.looked = true
		return nil
	case err != nil:
		return fmt.Errorf("list nodes: %w", err)
	}
	if err := l.r.Reader.List(ctx, pods); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	cluster := queue.NewCluster(nodes.Items, pods.Items, func(p *corev1.Pod) bool { return p.Labels[v1alpha1.LabelTrial] != "" })
	l.cluster, l.looked = &cluster, true
	return nil
}

// podsToBe are the pods that a trial will have; nil when they cannot be rendered, which the trial says itself when it makes them.
func (r *Reconciler) podsToBe(ctx context.Context, trial *v1alpha1.Trial) ([]queue.Pod, error) {
	var pods []queue.Pod
	r.remember(trial, func(m *memo) { pods = m.pods })
	if pods != nil {
		return pods, nil
	}
	system, err := r.systemOf(ctx, trial)
	if err != nil {
		return nil, err
	}
	objects, err := render.NewObjects(r.layoutOf(trial, system), &trial.Spec, system, r.Environment)
	if err != nil {
		return nil, nil //nolint:nilerr // the trial tells of it, as RenderFailed, when it is its turn
	}
	for _, t := range objects.Templates() {
		for _, name := range t.Pods {
			labels := map[string]string{appsv1.StatefulSetPodNameLabel: name}
			for k, v := range t.Labels {
				labels[k] = v
			}
			pods = append(pods, queue.Pod{What: t.What, Labels: labels, Spec: t.Spec})
		}
	}
	r.remember(trial, func(m *memo) { m.pods = pods })
	return pods, nil
}

// queuedTrials are woken up when a trial is over or gone.
func (r *Reconciler) queuedTrials(ctx context.Context, o client.Object) []reconcile.Request {
	t, ok := o.(*v1alpha1.Trial)
	if !ok || (!isTrue(t, v1alpha1.TrialComplete) && t.DeletionTimestamp.IsZero()) {
		return nil
	}
	list := &v1alpha1.TrialList{}
	if err := r.Client.List(ctx, list); err != nil {
		logFor(ctx).Info("Queued trials cannot be listed; they are looked at again at the next change", "err", err.Error())
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if q := &list.Items[i]; !isTrue(q, v1alpha1.TrialAdmitted) && q.UID != t.UID {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(q)})
		}
	}
	return out
}
