package render

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
)

// A cluster's owner may require labels and annotations on every pod. Pods of trials have them. They
// do not replace Assay's own, and no StatefulSet selects by them.
func TestPodsHaveTheOwnersLabels(t *testing.T) {
	env := Environment{AgentImage: "agent:1", CoordinatorCA: "ca",
		PodLabels:      map[string]string{"cost-center": "lab", v1alpha1.LabelTrial: "mine"},
		PodAnnotations: map[string]string{"mesh": "off", annotationCA: "mine"}}
	spec, system := kvTrial(), kvSystem()
	o, err := NewObjects(placement.NewLayout("ns", "exp-0a1b-3", spec, system), spec, system, env)
	if err != nil {
		t.Fatal(err)
	}
	for name, pod := range map[string]corev1.PodTemplateSpec{"clients": o.Clients[0].Spec.Template, "prepare": o.Prepare.Spec.Template, "replicas": o.Servers[0].Spec.Template} {
		if pod.Labels["cost-center"] != "lab" || pod.Labels[v1alpha1.LabelTrial] != "exp-0a1b-3" {
			t.Errorf("%s have the labels %v", name, pod.Labels)
		}
		if pod.Annotations["mesh"] != "off" || pod.Annotations[annotationCA] != "ca" {
			t.Errorf("%s have the annotations %v", name, pod.Annotations)
		}
		// Moving a pod of a trial makes the trial Invalid.
		if pod.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] != "false" || pod.Annotations["karpenter.sh/do-not-disrupt"] != "true" {
			t.Errorf("%s may be moved at will: %v", name, pod.Annotations)
		}
	}
	for label := range o.Servers[0].Spec.Selector.MatchLabels {
		if label == "cost-center" {
			t.Error("the StatefulSet selects by the owner's label")
		}
	}
	if _, ok := o.Servers[0].Labels["cost-center"]; ok {
		t.Error("the StatefulSet itself has the label, which is for pods")
	}
	if len(env.PodAnnotations) != 2 || env.PodAnnotations[annotationCA] != "mine" {
		t.Errorf("the manager's own annotations have become %v", env.PodAnnotations)
	}
}
