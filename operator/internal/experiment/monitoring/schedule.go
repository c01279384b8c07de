package monitoring

import (
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
)

// usualInterval is the interval between samples of pods without a PodMonitor of Assay. The default
// of Prometheus is a minute, that of the operator 30 s.
const usualInterval = 30 * time.Second

// leastInterval is the default of MetricsEndpoint.
const leastInterval = time.Second

func interval(m *v1alpha1.MetricsEndpoint) time.Duration {
	if d := m.Interval.OrZero(); d > 0 {
		return d
	}
	return leastInterval
}

// ScrapeInterval is the longest time between two samples of a pod of the System.
func ScrapeInterval(system *v1alpha1.SystemSpec) time.Duration {
	longest := time.Duration(0)
	for _, p := range scraped(system) {
		longest = max(longest, interval(p.metrics))
	}
	if longest == 0 {
		return usualInterval
	}
	return longest
}
