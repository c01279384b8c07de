package run

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
)

const (
	// deletionTimeout is how long the deletion of an experiment may take: its running trial ends
	// its pods and confirms that they are gone.
	deletionTimeout = 5 * time.Minute
	// deletionInterval is the time between two looks at objects that are being deleted.
	deletionInterval = time.Second
)

// makeRoom decides what to do if an experiment of the name exists. A complete one would make the
// command report the run of an earlier call. So makeRoom refuses, unless the user asks to run it
// again. It leaves a running one alone, since applying it again changes nothing.
func makeRoom(ctx context.Context, s *session.Session, cluster session.Cluster, name string, o Options) error {
	var old v1alpha1.Experiment
	err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, &old)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("get Experiment %s in %s: %w", name, cluster.Place(), session.Explain(err))
	case !old.DeletionTimestamp.IsZero():
		fmt.Fprintf(s.Err, "The earlier experiment %s is being deleted\n", name)
		return waitGone(ctx, s, cluster, &old)
	case o.Rerun:
		return deleteOld(ctx, s, cluster, &old)
	case meta.IsStatusConditionTrue(old.Status.Conditions, v1alpha1.ExperimentComplete):
		return fmt.Errorf("experiment %s in %s was complete already%s: nothing was applied and nothing ran; to run it again, add --rerun (its results stay) or --name with another name; to see its results, kubectl assay report %s %s",
			name, cluster.Place(), ago(s.Now(), old.Status.CompletionTime), name, cluster.Flag())
	case old.Status.Trials.Planned > 0:
		fmt.Fprintf(s.Err, "Experiment %s runs already: %d of %d trials are valid\n", name, old.Status.Trials.Succeeded, old.Status.Trials.Planned)
	}
	return nil
}

// ago writes in brackets how long ago an instant was.
func ago(now time.Time, at *metav1.Time) string {
	if at == nil {
		return ""
	}
	return fmt.Sprintf(" (%s ago)", duration.HumanDuration(now.Sub(at.Time)))
}

// deleteOld deletes an experiment, and waits until it and its trials are gone. It refuses if a
// store is still to get results that only the cluster has.
func deleteOld(ctx context.Context, s *session.Session, cluster session.Cluster, old *v1alpha1.Experiment) error {
	stored := meta.FindStatusCondition(old.Status.Conditions, v1alpha1.ExperimentResultsStored)
	if meta.IsStatusConditionTrue(old.Status.Conditions, v1alpha1.ExperimentComplete) && stored != nil && stored.Status != metav1.ConditionTrue {
		return fmt.Errorf("experiment %s in namespace %s is complete and its results are not all stored: %s Wait with kubectl wait experiments.assay.dev/%s -n %s --for=condition=%s --timeout=1h, or delete it yourself",
			old.Name, cluster.Namespace, stored.Message, old.Name, cluster.Namespace, v1alpha1.ExperimentResultsStored)
	}
	fmt.Fprintf(s.Err, "Deleting the earlier experiment %s, with %d of %d trials valid; its results stay: kubectl assay report %s~1 %s\n",
		old.Name, old.Status.Trials.Succeeded, old.Status.Trials.Planned, old.Name, cluster.Flag())
	uid := old.UID
	err := cluster.Client.Delete(ctx, old, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Experiment %s in %s: %w", old.Name, cluster.Place(), session.Explain(err))
	}
	return waitGone(ctx, s, cluster, old)
}

// waitGone waits until an experiment is gone. A new experiment with the same name does not count.
func waitGone(ctx context.Context, s *session.Session, cluster session.Cluster, old *v1alpha1.Experiment) error {
	uid, start := old.UID, s.Now()
	for {
		var now v1alpha1.Experiment
		err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(old), &now)
		if apierrors.IsNotFound(err) || err == nil && now.UID != uid {
			return nil
		}
		if err != nil && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) {
			return fmt.Errorf("look whether Experiment %s is gone: %w", old.Name, session.Explain(err))
		}
		if s.Now().Sub(start) >= deletionTimeout {
			return &session.Verdict{Code: session.ExitTimeout, Message: fmt.Sprintf("experiment %s in namespace %s is not gone %s after it was deleted%s; see kubectl get trials.assay.dev,pods -n %s -l %s=%s",
				old.Name, old.Namespace, deletionTimeout, holders(ctx, cluster, old.UID), old.Namespace, v1alpha1.LabelExperiment, old.Name)}
		}
		if err := s.Sleep(ctx, deletionInterval); err != nil {
			return session.Interrupted(err, fmt.Sprintf("experiment %s is being deleted, and nothing was applied", old.Name))
		}
	}
}

// holders names a trial that an experiment's deletion waits for.
func holders(ctx context.Context, cluster session.Cluster, uid types.UID) string {
	var trials v1alpha1.TrialList
	if err := cluster.Client.List(ctx, &trials, client.InNamespace(cluster.Namespace)); err != nil {
		return ""
	}
	for i := range trials.Items {
		t := &trials.Items[i]
		for _, owner := range t.OwnerReferences {
			if owner.UID != uid {
				continue
			}
			var pods corev1.PodList
			if err := cluster.Client.List(ctx, &pods, client.InNamespace(cluster.Namespace), client.MatchingLabels{v1alpha1.LabelTrial: t.Name}); err == nil && len(pods.Items) > 0 {
				return fmt.Sprintf(": trial %s has %d pods left, %s among them", t.Name, len(pods.Items), pods.Items[0].Name)
			}
			return fmt.Sprintf(": trial %s is not gone", t.Name)
		}
	}
	return ""
}
