package monitoring

import (
	"context"
	"fmt"
	"slices"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// Installation describes Prometheus in the cluster of this manager. Nil: there is none.
type Installation struct {
	// PodMonitors: the manager makes PodMonitors for trials whose System serves metrics, if the
	// cluster has the kind.
	PodMonitors bool
	// Labels of PodMonitors, by which the installed Prometheus selects them.
	Labels map[string]string
	// Mapper knows the kinds of the cluster, and learns of new ones.
	Mapper meta.RESTMapper
	// NamespaceLabel is the label that holds the namespace of a series. Empty:
	// DefaultNamespaceLabel.
	NamespaceLabel string
	// Server to ask. Nil: there are no measurements by queries.
	Server *Server
	// Numbers answers measurements of trials. Targets says whether Prometheus scrapes their pods.
	Numbers *Desk[Request, []results.Measurement]
	Targets *Desk[Pods, bool]
}

// Open opens the desks. They close with the context.
func (i *Installation) Open(ctx context.Context) {
	i.Numbers = &Desk[Request, []results.Measurement]{Context: ctx, Evaluate: func(ctx context.Context, r Request) []results.Measurement {
		return i.Server.Evaluate(ctx, i.namespaceLabel(), r)
	}}
	i.Targets = &Desk[Pods, bool]{Context: ctx, Evaluate: func(ctx context.Context, p Pods) bool { return i.Server.Scrapes(ctx, i.namespaceLabel(), p) }}
}

// PodMonitorLabels returns the labels of PodMonitors.
func (i *Installation) PodMonitorLabels() map[string]string { return i.Labels }

// Ask begins to answer a trial's request, once. It returns the answer when there is one.
func (i *Installation) Ask(trial types.UID, request func() Request) (answer []results.Measurement, done bool) {
	if i.Server == nil {
		r := request()
		out := make([]results.Measurement, len(r.Measurements))
		for k, m := range r.Measurements {
			out[k] = results.Measurement{Name: m.Name, Reason: "the manager knows no Prometheus any more: prometheus.url of the chart is not set"}
		}
		return out, true
	}
	return i.Numbers.Ask(trial, request)
}

// Scraped reports whether Prometheus scrapes all pods of a trial. known is false until the answer
// is known, or the time to wait is over.
func (i *Installation) Scraped(trial types.UID, pods func() Pods) (all, known bool) {
	if i.Server == nil {
		return false, true
	}
	return i.Targets.Ask(trial, pods)
}

// Forget forgets the questions and answers of a trial.
func (i *Installation) Forget(trial types.UID) {
	i.Numbers.Forget(trial)
	i.Targets.Forget(trial)
}

// HasPodMonitors reports whether to make PodMonitors now. The kind may be installed after the
// manager.
func (i *Installation) HasPodMonitors() (bool, error) {
	if i == nil || !i.PodMonitors {
		return false, nil
	}
	_, err := i.Mapper.RESTMapping(schema.GroupKind{Group: monitoringv1.SchemeGroupVersion.Group, Kind: monitoringv1.PodMonitorsKind}, monitoringv1.Version)
	switch {
	case meta.IsNoMatchError(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for the kind PodMonitor: %w", err)
	}
	return true, nil
}

// Check says why this installation cannot make the measurements of an experiment with these
// systems. Nil: it can.
func (i *Installation) Check(systems []v1alpha1.SystemSpec) error {
	if i == nil || i.Server == nil {
		return fmt.Errorf("this installation of Assay knows no Prometheus to ask; its owner sets prometheus.url of the chart")
	}
	if !i.PodMonitors {
		return nil // another tool of the owner makes Prometheus scrape pods
	}
	if !slices.ContainsFunc(systems, func(s v1alpha1.SystemSpec) bool { return Serves(&s) }) {
		return nil // the measurements read other metrics, of nodes or kubelets
	}
	has, err := i.HasPodMonitors()
	if err == nil && !has {
		err = fmt.Errorf("nobody would scrape the pods of a trial: the cluster has no kind PodMonitor (monitoring.coreos.com/v1); install the Prometheus operator, " +
			"or have pods scraped in another way and set prometheus.podMonitors.enabled: false of the chart")
	}
	return err
}

// CheckQuery returns the mistake in a measurement's query, or nil.
func (i *Installation) CheckQuery(m v1alpha1.Measurement, namespace string, spec *v1alpha1.TrialSpec) error {
	return check(m, namespace, spec, i.namespaceLabel())
}

func (i *Installation) namespaceLabel() string {
	if i == nil || i.NamespaceLabel == "" {
		return DefaultNamespaceLabel
	}
	return i.NamespaceLabel
}
