package archive

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// failures counts failed attempts to store.
var failures = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "assay_store_failures_total",
	Help: "Attempts to put a trial's or an experiment's results into a store that failed, by store.",
}, []string{"store"})

func init() {
	metrics.Registry.MustRegister(failures)
}
