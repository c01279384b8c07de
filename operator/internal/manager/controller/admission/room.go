package admission

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/queue"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/controller/snapshot"
	"assay.dev/assay/operator/internal/store"
)

// pageSize is how many objects of the whole cluster are read at once.
const pageSize = 500

// capacityChecker finds out whether trials have room. It reads the cluster once, on first use.
type capacityChecker struct {
	r       *Reconciler
	trials  map[string]*v1alpha1.Trial
	rooms   map[string]queue.Room             // results so far, by trial
	quotas  map[string][]corev1.ResourceQuota // quotas of namespaces read so far
	kept    map[string]int64                  // bytes that wait for stores, of namespaces read so far
	cluster *queue.Cluster                    // nil: not read, or it may not be read
	looked  bool
}

// room returns the room for a trial: first for its results, then under the quotas of its namespace,
// then on the nodes.
func (l *capacityChecker) room(ctx context.Context, e queue.Entry) (queue.Room, error) {
	if room, known := l.rooms[e.Trial]; known {
		return room, nil
	}
	trial := l.trials[e.Trial]
	if trial == nil {
		return queue.Room{State: queue.Start}, nil // the cache has not seen it, but it has a grant
	}
	room, pods, err := l.ofNamespace(ctx, trial)
	if err != nil {
		if ctx.Err() != nil {
			return queue.Room{}, err
		}
		// The error may last, and an error about one trial must not stop the decisions about all
		// later ones.
		room = queue.Room{State: queue.InsufficientResources, Missing: fmt.Sprintf("Nobody knows what room the trial needs: %s.", err)}
		if apierrors.IsNotFound(err) {
			room.Missing += " Restore it, or delete the experiment."
		}
	}
	if room.State == queue.Start && pods != nil {
		if err := l.look(ctx); err != nil {
			return queue.Room{}, err
		}
		if l.cluster != nil {
			room = l.cluster.Room(pods)
		}
	}
	l.rooms[e.Trial] = room
	return room, nil
}

// ofNamespace returns whether the trial's namespace has room, and the pods for which the nodes need
// room.
func (l *capacityChecker) ofNamespace(ctx context.Context, trial *v1alpha1.Trial) (queue.Room, []queue.Pod, error) {
	if room, err := l.roomForResults(ctx, trial); err != nil || room.State != queue.Start {
		return room, nil, err
	}
	pods, err := l.r.podsToBe(ctx, trial)
	if err != nil || pods == nil {
		return queue.Room{State: queue.Start}, nil, err
	}
	quotas, known := l.quotas[trial.Namespace]
	if !known {
		list := &corev1.ResourceQuotaList{}
		if err := l.r.Reader.List(ctx, list, client.InNamespace(trial.Namespace)); err != nil {
			return queue.Room{}, nil, fmt.Errorf("list the namespace's quotas: %w", err)
		}
		quotas = list.Items
		l.quotas[trial.Namespace] = quotas
	}
	return queue.Quota(pods, quotas), pods, nil
}

// look reads the nodes and all pods on them past the cache, which holds no nodes and only the pods
// of trials. A manager that was installed for some namespaces may not read nodes, unless their
// owner allows it, and sees only the pods of its namespaces. It then leaves unknown facts to the
// scheduler.
func (l *capacityChecker) look(ctx context.Context) error {
	if l.looked {
		return nil
	}
	var nodes []corev1.Node
	err := eachPage(ctx, l.r.Reader, func() client.ObjectList { return &corev1.NodeList{} }, func(list client.ObjectList) {
		nodes = append(nodes, list.(*corev1.NodeList).Items...)
	})
	switch {
	case apierrors.IsForbidden(err):
		log.FromContext(ctx).Info("This manager may not list nodes, so trials start without a look at what is free", "err", err.Error())
		l.looked = true
		return nil
	case err != nil:
		return fmt.Errorf("list nodes: %w", err)
	}
	cluster := queue.NewCluster(nodes)
	err = eachPage(ctx, l.r.Reader, func() client.ObjectList { return &corev1.PodList{} }, func(list client.ObjectList) {
		cluster.Add(list.(*corev1.PodList).Items, func(p *corev1.Pod) bool { return p.Labels[v1alpha1.LabelTrial] != "" })
	})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	l.cluster, l.looked = &cluster, true
	return nil
}

// eachPage lists objects of the whole cluster in pages, so that its memory does not grow with the
// cluster.
func eachPage(ctx context.Context, reader client.Reader, empty func() client.ObjectList, use func(client.ObjectList)) error {
	next := ""
	for {
		list := empty()
		if err := reader.List(ctx, list, client.Limit(pageSize), client.Continue(next)); err != nil {
			return err
		}
		use(list)
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// podsToBe returns the pods that a trial will have. It returns nil if they cannot be rendered: the
// trial reports that itself when it makes them.
func (r *Reconciler) podsToBe(ctx context.Context, trial *v1alpha1.Trial) ([]queue.Pod, error) {
	if pods := r.pods.get(trial.UID); pods != nil {
		return pods, nil
	}
	system, err := snapshot.Read(ctx, r.Reader, trial)
	if err != nil {
		return nil, err
	}
	return r.render(trial, system), nil
}

// render renders the pods that a trial of a System will have, and keeps them; see podsToBe.
func (r *Reconciler) render(trial *v1alpha1.Trial, system *v1alpha1.SystemSpec) []queue.Pod {
	layout := placement.NewLayout(trial.Namespace, trial.Name, &trial.Spec, system).InDomain(r.Environment.ClusterDomain)
	objects, err := render.NewObjects(layout, &trial.Spec, system, r.Environment)
	if err != nil {
		return nil // the trial reports RenderFailed when it starts
	}
	var pods []queue.Pod
	for _, t := range objects.Templates() {
		for _, name := range t.Pods {
			labels := map[string]string{appsv1.StatefulSetPodNameLabel: name}
			for k, v := range t.Labels {
				labels[k] = v
			}
			pods = append(pods, queue.Pod{What: t.What, Labels: labels, Spec: t.Spec})
		}
	}
	r.pods.set(trial.UID, pods)
	return pods
}

// roomForResults makes a trial wait while its store accepts nothing and the cluster already keeps
// too much of its namespace for the store. A trial that has not begun loses nothing. But a trial
// without room for its results would hold its pools until the store answers.
func (l *capacityChecker) roomForResults(ctx context.Context, trial *v1alpha1.Trial) (queue.Room, error) {
	if trial.Spec.ResultsStore == "" {
		return queue.Room{State: queue.Start}, nil
	}
	n, known := l.kept[trial.Namespace]
	if !known {
		var err error
		if n, err = (&store.Cluster{Client: l.r.Client, Reader: l.r.Reader, Trial: trial}).Waiting(ctx); err != nil {
			return queue.Room{}, err
		}
		l.kept[trial.Namespace] = n
	}
	if n < store.PauseLimit {
		return queue.Room{State: queue.Start}, nil
	}
	return queue.Room{State: queue.InsufficientResources, Missing: fmt.Sprintf(
		"Waiting for the result store %s: more than %d MiB of this namespace are kept in the cluster until it takes them.", trial.Spec.ResultsStore, store.PauseLimit>>20)}, nil
}
