package experiment

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/manager/controller/dataset"
)

// data delays the next trial until the data sets of its pods are on the nodes. If the trial itself
// waited for them, it would hold its pools. A data set that cannot be prepared ends the experiment,
// until its Dataset is deleted.
func (r *Reconciler) data(ctx context.Context, s *scope) error {
	next := s.step.Create
	if next == nil {
		return nil
	}
	system := s.systems[next.System.Name]
	if len(system.Datasets) == 0 {
		return nil
	}
	requester := dataset.Requester{Client: r.Client, Reader: r.Reader, Clock: r.Clock}
	answer, err := requester.Ensure(ctx, s.exp.Namespace, next, &system)
	if err != nil {
		return err
	}
	switch {
	case answer.Ready:
		next.Datasets = answer.Sets
		s.set(v1alpha1.ExperimentDataReady, metav1.ConditionTrue, v1alpha1.ReasonPrepared, "The data sets of the next trial are on its nodes.")
		return nil
	case answer.Failed:
		// Trials on other sets of nodes must end first.
		s.step.Done, s.step.Reason = s.step.Counts.Active == 0, v1alpha1.ReasonDataFailed
	default:
		s.step.Reason = v1alpha1.ReasonPreparingData
	}
	s.step.Create, s.step.Message = nil, answer.Message
	s.set(v1alpha1.ExperimentDataReady, metav1.ConditionFalse, s.step.Reason, answer.Message)
	return nil
}

// experimentsWaitingForData lists the experiments of a Dataset's namespace whose next trial waits
// for a data set.
func (r *Reconciler) experimentsWaitingForData(ctx context.Context, d client.Object) []reconcile.Request {
	list := &v1alpha1.ExperimentList{}
	if err := r.Client.List(ctx, list, client.InNamespace(d.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the experiments that a Dataset is for")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		exp := &list.Items[i]
		if meta.IsStatusConditionFalse(exp.Status.Conditions, v1alpha1.ExperimentDataReady) {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: exp.Namespace, Name: exp.Name}})
		}
	}
	return requests
}
