package monitoring

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/api/v1alpha1"
)

func TestPodMonitor(t *testing.T) {
	system := &v1alpha1.SystemSpec{}
	if pm := PodMonitor("papers", testTrial(), system, nil); pm != nil {
		t.Errorf("a system without metrics has a PodMonitor: %v", pm)
	}
	system.Replicas.Metrics = &v1alpha1.MetricsEndpoint{Port: 9102, Path: "/metrics", Interval: "2s"}
	system.Clients.Metrics = &v1alpha1.MetricsEndpoint{Port: 9103}
	relabel := func(part string) []monitoringv1.RelabelConfig {
		of := func(label, target string) monitoringv1.RelabelConfig {
			return monitoringv1.RelabelConfig{Action: "replace", SourceLabels: []monitoringv1.LabelName{monitoringv1.LabelName("__meta_kubernetes_pod_label_assay_dev_" + label)}, TargetLabel: target}
		}
		return []monitoringv1.RelabelConfig{
			{Action: "keep", SourceLabels: []monitoringv1.LabelName{"__meta_kubernetes_pod_label_assay_dev_pod_type"}, Regex: part},
			of("pod_type", "assay_pod_type"), of("region", "assay_region"), of("shard", "assay_shard"), of("trial", "assay_trial"), of("experiment", "assay_experiment"), of("point", "assay_point"),
			{Action: "labelmap", Regex: "__meta_kubernetes_pod_annotation_axis_assay_dev_(.+)", Replacement: ptr.To("assay_axis_$1")},
		}
	}
	want := &monitoringv1.PodMonitor{
		ObjectMeta: metav1.ObjectMeta{Name: "demo-basil-12", Namespace: "papers", Labels: map[string]string{
			"release": "stack", v1alpha1.LabelSystem: "basil", v1alpha1.LabelExperiment: "demo",
		}},
		Spec: monitoringv1.PodMonitorSpec{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelExperiment: "demo", v1alpha1.LabelSystem: "basil"}},
			PodMetricsEndpoints: []monitoringv1.PodMetricsEndpoint{
				{Port: ptr.To("assay-metrics"), Path: "/metrics", Interval: "2s", RelabelConfigs: relabel("replica")},
				{Port: ptr.To("assay-metrics"), Path: "/metrics", Interval: "1s", RelabelConfigs: relabel("client")},
			},
		},
	}
	got := PodMonitor("papers", testTrial(), system, map[string]string{"release": "stack", v1alpha1.LabelSystem: "not to be replaced"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("PodMonitor (-want +got):\n%s", diff)
	}
}

func TestScrapeInterval(t *testing.T) {
	s := &v1alpha1.SystemSpec{}
	if got := ScrapeInterval(s); got != usualInterval {
		t.Errorf("without metrics: %v, want %v", got, usualInterval)
	}
	s.Replicas.Metrics, s.Clients.Metrics = &v1alpha1.MetricsEndpoint{}, &v1alpha1.MetricsEndpoint{Interval: "5s"}
	if got := ScrapeInterval(s); got.Seconds() != 5 {
		t.Errorf("the longest of 1s and 5s: %v", got)
	}
}
