package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// An experiment that recurs has its run at the due time. The managers have only the rights from the
// chart. Deleting the experiment deletes its runs and leaves their results.
func TestRecurrence(t *testing.T) {
	o := newOwner(t)
	const ns = "install-recurs"
	o.makeNamespace(t, ns)
	due := time.Now().UTC().Truncate(time.Minute).Add(2 * time.Minute)
	recurs := o.apply(t, ns, func(e *v1alpha1.Experiment) {
		e.Name, e.Spec.Sweep = "hourly", nil
		e.Spec.Recurrence = &v1alpha1.Recurrence{Cron: fmt.Sprintf("%d * * * *", due.Minute()), StartWithin: "30m"}
	})
	run := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "hourly-" + due.Format("0601021504")}}
	eventually(t, patience, "run "+run.Name+" is made", func(ctx context.Context) (bool, error) {
		err := o.Get(ctx, client.ObjectKeyFromObject(run), run)
		return err == nil, err
	})
	if late := run.CreationTimestamp.Sub(due); late < 0 {
		t.Errorf("the run due at %v was made %v before it", due, -late)
	} else {
		t.Logf("the run was made %v after its due time", late)
	}
	o.complete(t, run, 1)
	o.checkRecurs(t, recurs, run)
	results := o.results(t, ns)
	o.deleted(t, recurs)
	eventually(t, patience, "the run is gone with what made it", func(ctx context.Context) (bool, error) {
		err := o.Get(ctx, client.ObjectKeyFromObject(run), run)
		return apierrors.IsNotFound(err), err
	})
	if after := o.results(t, ns); len(results) < 2 || !slices.Equal(after, results) {
		t.Errorf("results before %v, after %v", results, after)
	}
}

// checkRecurs checks the status of the only run, and its results.
func (o *owner) checkRecurs(t *testing.T, recurs, run *v1alpha1.Experiment) {
	t.Helper()
	eventually(t, patience, "the status names the run", func(ctx context.Context) (bool, error) {
		if err := o.Get(ctx, client.ObjectKeyFromObject(recurs), recurs); err != nil {
			return false, err
		}
		s := recurs.Status.Recurrence
		if s == nil {
			return false, errors.New("it says nothing")
		}
		return s.LastRun == run.Name && s.Runs == 1 && s.Skipped == 0 && s.NextDueTime != nil && s.NextDueTime.Sub(s.LastDueTime.Time) == time.Hour, fmt.Errorf("%+v", s)
	})
	list := &corev1.ConfigMapList{}
	if err := o.List(t.Context(), list, client.InNamespace(run.Namespace), client.MatchingLabels{v1alpha1.LabelRecurs: recurs.Name}); err != nil || len(list.Items) != 1 || list.Items[0].Name != run.Status.ResultsConfigMap {
		t.Errorf("%d ConfigMaps have results of runs (%v), want %s", len(list.Items), err, run.Status.ResultsConfigMap)
	}
	if n := len(o.trials(t, recurs)); n != 0 {
		t.Errorf("the experiment that recurs has %d trials", n)
	}
}
