// Package retention deletes the results of trials that the owner of the cluster no longer keeps in
// it. The verdicts and aggregates of an experiment stay, which are in a ConfigMap of their own. The
// results of an incomplete experiment stay, too, and results that wait for a store.
package retention

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Policy says which results are kept. Zero values keep everything.
type Policy struct {
	// Stored is how long the results of a trial are kept after its end, if its experiment's results
	// are in a store.
	Stored time.Duration
	// Age is how long results are kept at most, unless they wait for a store.
	Age time.Duration
	// Count is the number of trials of a namespace whose results are kept at most: the newest.
	// Results that wait for a store are kept beside them.
	Count int
}

// Keeps reports whether the policy keeps everything.
func (p Policy) Keeps() bool { return p == Policy{} }

// Sweeper deletes the results that a policy does not keep. All fields are needed.
type Sweeper struct {
	Client client.Client
	// Reader reads past the cache, which has no ConfigMaps.
	Reader client.Reader
	Clock  clock.Clock
	Policy Policy
}

const (
	// interval between two sweeps.
	interval = time.Hour
	// pageSize is how many ConfigMaps are listed at a time, without their data.
	pageSize = 500
)

// NeedLeaderElection returns true: only the leading manager sweeps.
func (s *Sweeper) NeedLeaderElection() bool { return true }

// Start sweeps every hour until the context ends.
func (s *Sweeper) Start(ctx context.Context) error {
	for {
		n, err := s.Sweep(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			log.FromContext(ctx).Error(err, "Delete results that are kept no longer")
		case n > 0:
			log.FromContext(ctx).Info("Deleted results of trials that are kept no longer", "trials", n)
		}
		timer := s.Clock.NewTimer(interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

// one has the results of a trial.
type one struct {
	types.NamespacedName
	uid     types.UID
	made    time.Time
	of      types.NamespacedName // the experiment
	version string
}

// Sweep deletes once, and returns the number of trials whose results it deleted.
func (s *Sweeper) Sweep(ctx context.Context) (int, error) {
	experiments := &v1alpha1.ExperimentList{}
	if err := s.Client.List(ctx, experiments, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("list experiments: %w", err)
	}
	known := map[types.NamespacedName]*v1alpha1.Experiment{}
	for i := range experiments.Items {
		known[client.ObjectKeyFromObject(&experiments.Items[i])] = &experiments.Items[i]
	}
	all, err := s.results(ctx)
	if err != nil {
		return 0, err
	}
	n, rank := 0, map[string]int{}
	for _, r := range all {
		rank[r.Namespace]++
		if s.keeps(r, known[r.of], rank[r.Namespace]) {
			continue
		}
		gone := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
		err := s.Client.Delete(ctx, gone, client.Preconditions{UID: &r.uid, ResourceVersion: &r.version})
		if client.IgnoreNotFound(err) != nil {
			return n, fmt.Errorf("delete results %s: %w", r.NamespacedName, err)
		}
		n++
	}
	return n, nil
}

// keeps reports whether the results of a trial stay. They are the rank-th newest of their
// namespace. exp is their experiment, or nil if it is gone.
func (s *Sweeper) keeps(r one, exp *v1alpha1.Experiment, rank int) bool {
	if exp != nil && !meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete) {
		return true
	}
	archived := exp != nil && exp.Status.Archive != nil
	stored := archived && exp.Status.Archive.Digest != ""
	if archived && !stored {
		return true // they wait for the store, and are nowhere else
	}
	age := s.Clock.Since(r.made)
	switch p := s.Policy; {
	case p.Stored > 0 && stored && age >= p.Stored, p.Age > 0 && age >= p.Age, p.Count > 0 && rank > p.Count:
		return false
	}
	return true
}

// results returns the results of all trials, the newest first.
func (s *Sweeper) results(ctx context.Context) ([]one, error) {
	var all []one
	for next := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		if err := s.Reader.List(ctx, list, client.MatchingLabels{v1alpha1.LabelResults: "trial"}, client.Limit(pageSize), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("list the results of trials: %w", err)
		}
		for i := range list.Items {
			m := &list.Items[i]
			all = append(all, one{
				NamespacedName: client.ObjectKeyFromObject(m), uid: m.UID, made: m.CreationTimestamp.Time, version: m.ResourceVersion,
				of: types.NamespacedName{Namespace: m.Namespace, Name: m.Labels[v1alpha1.LabelExperiment]},
			})
		}
		if next = list.Continue; next == "" {
			break
		}
	}
	slices.SortStableFunc(all, func(a, b one) int { return b.made.Compare(a.made) })
	return all, nil
}
