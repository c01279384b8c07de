package render

import (
	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/api/v1alpha1"
)

// MetricsPort is the name of the port at which a trial's pod serves metrics. Prometheus finds a
// pod's ports by the declarations of its containers.
const MetricsPort = "assay-metrics"

// exposeMetrics declares the port of a pod's metrics, on its first container. The declaration opens
// nothing.
func exposeMetrics(pod *corev1.PodSpec, m *v1alpha1.MetricsEndpoint) {
	if m != nil && len(pod.Containers) > 0 {
		pod.Containers[0].Ports = append(pod.Containers[0].Ports, corev1.ContainerPort{Name: MetricsPort, ContainerPort: m.Port, Protocol: corev1.ProtocolTCP})
	}
}
