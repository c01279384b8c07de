package monitoring

import (
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/render"
)

// Labels that a PodMonitor gives the series of a trial's pods, besides those of the Prometheus
// operator (namespace, pod, container, endpoint).
const (
	labelExperiment = "assay_experiment"
	labelTrial      = "assay_trial"
	labelPoint      = "assay_point"
	labelPodType    = "assay_pod_type"  // replica, component or client
	labelComponent  = "assay_component" // of components only
	labelRegion     = "assay_region"    // of replicas and components only
	labelShard      = "assay_shard"     // of replicas only
	// labelAxis is followed by the name of an axis: assay_axis_variant. Its value is the value of
	// the trial's point.
	labelAxis = "assay_axis_"
)

// PodMonitor makes Prometheus scrape the pods of an experiment's trials with one System, and no
// others. It is nil if the System serves no metrics. The installed Prometheus selects monitors by
// the labels in more. Assay's own labels win over them.
//
// One PodMonitor serves all these trials. A Prometheus of the operator takes up to four and a half
// minutes to notice a new PodMonitor. (The kubelet brings its configuration within a minute and a
// half. The config reloader may see that only when it looks next, every three minutes:
// https://github.com/prometheus-operator/prometheus-operator/pull/7366.) Then it takes some seconds
// to notice new pods. So labels and annotations of pods state the facts that differ between trials.
//
// The PodMonitor has the name of the experiment's snapshot of the System, which no other experiment
// has. The experiment owns it.
func PodMonitor(namespace string, spec *v1alpha1.TrialSpec, system *v1alpha1.SystemSpec, more map[string]string) *monitoringv1.PodMonitor {
	var endpoints []monitoringv1.PodMetricsEndpoint
	for _, part := range scraped(system) {
		endpoints = append(endpoints, endpoint(part))
	}
	if len(endpoints) == 0 {
		return nil
	}
	own := map[string]string{}
	for k, v := range more {
		own[k] = v
	}
	selected := map[string]string{v1alpha1.LabelExperiment: spec.Experiment, v1alpha1.LabelSystem: spec.System.Name}
	for k, v := range selected {
		own[k] = v
	}
	return &monitoringv1.PodMonitor{
		ObjectMeta: metav1.ObjectMeta{Name: spec.System.Revision, Namespace: namespace, Labels: own},
		Spec:       monitoringv1.PodMonitorSpec{Selector: metav1.LabelSelector{MatchLabels: selected}, PodMetricsEndpoints: endpoints},
	}
}

// part is a part of a System's pods that serves metrics.
type part struct {
	name      string
	component string // empty: no component
	metrics   *v1alpha1.MetricsEndpoint
}

// Serves reports whether pods of the System serve metrics.
func Serves(system *v1alpha1.SystemSpec) bool { return len(scraped(system)) > 0 }

func scraped(system *v1alpha1.SystemSpec) []part {
	var parts []part
	all := []part{{v1alpha1.PodTypeReplica, "", system.Replicas.Metrics}, {v1alpha1.PodTypeClient, "", system.Clients.Metrics}}
	for _, c := range system.Components {
		all = append(all, part{v1alpha1.PodTypeComponent, c.Name, c.Metrics})
	}
	for _, p := range all {
		if p.metrics != nil {
			parts = append(parts, p)
		}
	}
	return parts
}

func endpoint(p part) monitoringv1.PodMetricsEndpoint {
	m, which := p.metrics, []monitoringv1.RelabelConfig{
		{Action: "keep", SourceLabels: []monitoringv1.LabelName{podLabel(v1alpha1.LabelPodType)}, Regex: p.name},
	}
	if p.component != "" {
		which = append(which, monitoringv1.RelabelConfig{Action: "keep", SourceLabels: []monitoringv1.LabelName{podLabel(v1alpha1.LabelComponent)}, Regex: p.component},
			copied(v1alpha1.LabelComponent, labelComponent))
	}
	path := m.Path
	if path == "" {
		path = "/metrics"
	}
	return monitoringv1.PodMetricsEndpoint{
		Port: ptr.To(render.MetricsPort), Path: path, Interval: monitoringv1.Duration(promDuration(interval(m))),
		RelabelConfigs: append(which,
			copied(v1alpha1.LabelPodType, labelPodType), copied(v1alpha1.LabelRegion, labelRegion), copied(v1alpha1.LabelShard, labelShard),
			copied(v1alpha1.LabelTrial, labelTrial), copied(v1alpha1.LabelExperiment, labelExperiment), copied(v1alpha1.LabelPoint, labelPoint),
			// Values of axes may be longer than the value of a label, so they are annotations.
			monitoringv1.RelabelConfig{Action: "labelmap", Regex: "__meta_kubernetes_pod_annotation_" + sanitized(v1alpha1.AnnotationAxisPrefix) + "(.+)", Replacement: ptr.To(labelAxis + "$1")},
		),
	}
}

// podLabel returns the name that the discovery of targets gives to a label of a pod.
func podLabel(label string) monitoringv1.LabelName {
	return monitoringv1.LabelName("__meta_kubernetes_pod_label_" + sanitized(label))
}

func sanitized(name string) string {
	return strings.NewReplacer(".", "_", "/", "_", "-", "_").Replace(name)
}

func copied(podsLabel, to string) monitoringv1.RelabelConfig {
	return monitoringv1.RelabelConfig{Action: "replace", SourceLabels: []monitoringv1.LabelName{podLabel(podsLabel)}, TargetLabel: to}
}
