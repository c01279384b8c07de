package objects

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"assay.dev/assay/operator/api/v1alpha1"
)

// TrialOf requests a reconcile of the trial that an object's labels name.
func TrialOf(_ context.Context, o client.Object) []reconcile.Request {
	name, namespace := o.GetLabels()[v1alpha1.LabelTrial], o.GetLabels()[v1alpha1.LabelTrialNamespace]
	if name == "" {
		return nil
	}
	if namespace == "" {
		namespace = o.GetNamespace()
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}
