package trial

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// wantNothingLeft asks the API server for objects of every kind that a trial makes. It does not use
// the reconciler's own list of kinds: that would miss a kind that the reconciler forgets.
func (p *play) wantNothingLeft() {
	p.t.Helper()
	for what, list := range map[string]client.ObjectList{
		"StatefulSet": &appsv1.StatefulSetList{}, "Job": &batchv1.JobList{}, "Pod": &corev1.PodList{}, "Service": &corev1.ServiceList{},
		"ConfigMap": &corev1.ConfigMapList{}, "PersistentVolumeClaim": &corev1.PersistentVolumeClaimList{}, "Secret": &corev1.SecretList{},
	} {
		if err := p.env.Client.List(p.t.Context(), list, client.InNamespace(p.ns), client.MatchingLabels{v1alpha1.LabelTrial: p.key.Name}); err != nil {
			p.t.Fatal(err)
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			if o := item.(client.Object); o.GetLabels()[v1alpha1.LabelResults] == "" {
				p.t.Errorf("left over: %s %s", what, o.GetName())
			}
			return nil
		}); err != nil {
			p.t.Fatal(err)
		}
	}
}
