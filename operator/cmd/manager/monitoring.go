package main

import (
	"context"
	"fmt"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	"assay.dev/assay/operator/internal/experiment/monitoring"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// monitoringOptions say which parts of Prometheus the cluster has.
type monitoringOptions struct {
	server         monitoring.ServerOptions
	namespaceLabel string
	podMonitors    bool
	labels         map[string]string
}

func (o *monitoringOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.server.URL, "prometheus-url", "", "Prometheus that measurements of experiments are asked of; default: there is none, and experiments with measurements are refused")
	f.StringVar(&o.server.TokenFile, "prometheus-token-file", "", "file with a bearer token for it; default: none is sent")
	f.StringVar(&o.server.CAFile, "prometheus-ca-file", "", "file with the PEM certificates that its own is checked with; default: those that everybody trusts")
	f.StringVar(&o.namespaceLabel, "prometheus-namespace-label", monitoring.DefaultNamespaceLabel, "label of its series that holds the namespace; an experiment reads those of its own only")
	f.BoolVar(&o.podMonitors, "pod-monitors", true, "make a PodMonitor for each experiment whose System serves metrics, while its trials run, where the cluster has the kind")
	f.StringToStringVar(&o.labels, "pod-monitor-labels", nil, "labels of these PodMonitors, by which a Prometheus selects them, as release=monitoring")
}

// addKinds lets the manager make PodMonitors.
func (o *monitoringOptions) addKinds(scheme *runtime.Scheme) error {
	return monitoringv1.AddToScheme(scheme)
}

// build reads the certificates; It sends no request to Prometheus: a manager must start without it.
func (o *monitoringOptions) build(ctx context.Context, mgr ctrl.Manager) (*monitoring.Installation, error) {
	i := &monitoring.Installation{PodMonitors: o.podMonitors, Labels: o.labels, Mapper: mgr.GetRESTMapper(), NamespaceLabel: o.namespaceLabel}
	if o.server.URL != "" {
		o.server.Now = time.Now
		server, err := monitoring.NewServer(o.server)
		if err != nil {
			return nil, fmt.Errorf("--prometheus-url: %w", err)
		}
		i.Server = server
	}
	i.Open(ctx)
	return i, nil
}

// withMonitoring adds the checks that depend on the cluster's Prometheus.
func withMonitoring(checks plan.Checks, i *monitoring.Installation) plan.Checks {
	checks.Measurement, checks.Prometheus = i.CheckQuery, i.Check
	return checks
}
