package install

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	clireport "assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
)

const (
	// processTolerance is how much two measurements of the same processor time may differ, as a
	// share of ours. Each takes a sample a second, at different instants, and a window of ten
	// seconds has ten.
	processTolerance = 0.2
)

// prometheus is a Prometheus in the cluster: its API, and a file with the chart's values for it.
type prometheus struct {
	promv1.API
	values  string
	hurried time.Time
}

// withPrometheus installs the operator and a Prometheus. Before that, the release must have no
// objects of the operator's kinds.
func (o *owner) withPrometheus(t *testing.T) *prometheus {
	t.Helper()
	values := filepath.Join(o.dir, "prometheus.yaml")
	if err := os.WriteFile(values, []byte(o.insist(t, prometheusScript, "up")), 0o600); err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(o.config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := api.NewClient(api.Config{Address: o.config.Host + "/api/v1/namespaces/monitoring/services/prometheus-operated:web/proxy", RoundTripper: transport})
	if err != nil {
		t.Fatal(err)
	}
	return &prometheus{API: promv1.NewAPI(c), values: values}
}

// hurry makes the kubelet look at Prometheus' pod, and so brings the operator's Secret into the
// pod. Otherwise the kubelet does so within a minute and a half. hurry acts every few seconds,
// however often it is called.
func (p *prometheus) hurry(ctx context.Context, o *owner) {
	const every = 3 * time.Second
	if time.Since(p.hurried) < every {
		return
	}
	p.hurried = time.Now()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "monitoring", Name: "prometheus-small-0"}}
	patch := fmt.Sprintf(`{"metadata": {"annotations": {"assay.dev/hurry": "%d"}}}`, p.hurried.UnixNano())
	_ = o.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(patch))) // if this fails, the Secret comes later
}

// released reports whether a trial of the experiment has been released. A trial waits until
// Prometheus scrapes its pods.
func (o *owner) released(t *testing.T, exp *v1alpha1.Experiment) bool {
	t.Helper()
	return slices.ContainsFunc(o.trials(t, exp), func(trial v1alpha1.Trial) bool { return trial.Status.ZeroUnixNanos != 0 })
}

// number is the result of a query for one series, at an instant.
func (p *prometheus) number(ctx context.Context, query string, at time.Time) (float64, error) {
	answer, _, _, err := p.Query(ctx, query, at)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", query, err)
	}
	if v, ok := answer.(model.Vector); ok && len(v) == 1 {
		return float64(v[0].Value), nil
	}
	return 0, fmt.Errorf("%s gives %v, want one series", query, answer)
}

// alerts counts the alerts that the chart has installed.
func (o *owner) alerts(t *testing.T) (n int) {
	t.Helper()
	if err := monitoringv1.AddToScheme(o.Scheme()); err != nil {
		t.Fatal(err)
	}
	list := &monitoringv1.PrometheusRuleList{}
	if err := o.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for _, object := range list.Items {
		for _, g := range object.Spec.Groups {
			for _, r := range g.Rules {
				if strings.HasPrefix(r.Alert, "Assay") {
					n++
				}
			}
		}
	}
	if n == 0 {
		t.Fatal("the chart has installed no alerts")
	}
	return n
}

// Every alert of ours is evaluated without an error, and every query of the dashboard is valid.
// Queries about a manager's constant metrics have a value; the others need experiments.
func TestPrometheusRulesAndDashboard(t *testing.T) {
	o := withOthers(t)
	prom := o.others.prom
	want := o.alerts(t)
	eventually(t, patience, "Prometheus evaluates the alerts", func(ctx context.Context) (bool, error) {
		prom.hurry(ctx, o)
		rules, err := prom.Rules(ctx, nil)
		if err != nil {
			return false, err
		}
		healthy := 0
		for _, g := range rules.Groups {
			for _, r := range g.Rules {
				if a, ok := r.(promv1.AlertingRule); ok && strings.HasPrefix(a.Name, "Assay") {
					if a.Health == promv1.RuleHealthBad {
						return false, fmt.Errorf("alert %s: %s", a.Name, a.LastError)
					}
					if a.Health == promv1.RuleHealthGood {
						healthy++
					}
				}
			}
		}
		return healthy == want, fmt.Errorf("%d are healthy, want %d", healthy, want)
	})
	text, err := os.ReadFile(filepath.Join(chart, "files", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	if len(dashboard.Panels) < 5 {
		t.Fatalf("the dashboard has %d panels", len(dashboard.Panels))
	}
	eventually(t, patience, "every query of the dashboard is understood, and half of them have a value", func(ctx context.Context) (bool, error) {
		queries, answered := 0, 0
		for _, p := range dashboard.Panels {
			for _, target := range p.Targets {
				queries++
				answer, _, _, err := prom.Query(ctx, target.Expr, time.Now())
				if err != nil {
					return false, fmt.Errorf("the dashboard's %s: %w", target.Expr, err)
				}
				if v, ok := answer.(model.Vector); ok && len(v) > 0 {
					answered++
				}
			}
		}
		if answered >= queries/2 {
			t.Logf("of %d queries of the dashboard %d have a value", queries, answered)
		}
		return answered >= queries/2, fmt.Errorf("of %d queries of the dashboard %d have a value", queries, answered)
	})
}

// lacksNumber reports whether a report says that a number is missing. A trial that was repeated
// because of ResourcesNotMeasured is another case.
func lacksNumber(report string) bool {
	return regexp.MustCompile(`\bNotMeasured\b`).MatchString(report)
}

// checkPodMonitor waits for the PodMonitor of an experiment, and checks its owner.
func (o *owner) checkPodMonitor(t *testing.T, exp *v1alpha1.Experiment) {
	t.Helper()
	if err := monitoringv1.AddToScheme(o.Scheme()); err != nil {
		t.Fatal(err)
	}
	var monitor monitoringv1.PodMonitor
	eventually(t, patience, "there is a PodMonitor", func(ctx context.Context) (bool, error) {
		list := &monitoringv1.PodMonitorList{}
		if err := o.List(ctx, list, client.InNamespace(exp.Namespace)); err != nil || len(list.Items) != 1 {
			return false, errors.Join(err, fmt.Errorf("%d are", len(list.Items)))
		}
		monitor = list.Items[0]
		return true, nil
	})
	if !metav1.IsControlledBy(&monitor, exp) || monitor.Labels["release"] != "small" {
		t.Errorf("the PodMonitor is not the experiment's or not what Prometheus selects: %+v", monitor.ObjectMeta)
	}
}

// compareProcessorTime compares the processor time of all replicas together in the window: by their
// own counters, which Prometheus has scraped, and by the kernel's counters, which agents have read.
// It returns the difference as a share of the latter.
func compareProcessorTime(t *testing.T, trial results.Trial) (difference float64) {
	t.Helper()
	ours, most := 0.0, 0.0
	for _, p := range trial.Pods {
		if p.Part == v1alpha1.PodTypeReplica && p.Resources != nil {
			ours += p.Resources.CPUMeanCores * p.Resources.Seconds
			most = math.Max(most, float64(p.Resources.MemoryMaxBytes)/(1<<20))
		}
	}
	theirs, memory := *trial.Measurements[0].Value, *trial.Measurements[1].Value
	t.Logf("%s %v: the replicas used %.2f s of processors by Prometheus and %.2f s by our readings; at most %.0f MiB resident by Prometheus, working set %.0f MiB by our readings",
		trial.Name, trial.Coordinates, theirs, ours, memory, most)
	if ours <= 0 {
		t.Fatalf("%s: %.2f s by our readings", trial.Name, ours)
	}
	// The two numbers are of the same kind, but not equal: resident pages include the program's
	// file, and the working set includes memory that the kernel holds for the process.
	if memory < most/4 || memory > 8*most {
		t.Errorf("%s: %.0f MiB by Prometheus and %.0f MiB by our readings", trial.Name, memory, most)
	}
	return math.Abs(theirs-ours) / ours
}

// report is the output of "kubectl assay report" for an experiment.
func (o *owner) report(t *testing.T, exp *v1alpha1.Experiment) string {
	t.Helper()
	var out, errs bytes.Buffer
	s := &session.Session{Out: &out, Err: &errs, Now: time.Now, Sleep: session.Sleep, Connect: func() (session.Cluster, error) {
		return session.Cluster{Client: o.Client, Namespace: exp.Namespace}, nil
	}}
	if err := clireport.Run(t.Context(), s, clireport.Options{Name: exp.Name}); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	return out.String()
}

// The chart renders all objects that are off by default, and an API server with their kinds accepts
// them. The kinds of cert-manager are missing here. Tests in operator/test/integration cover other
// values.
func TestServerTakesEverything(t *testing.T) {
	o := withOthers(t)
	for _, ns := range []string{"papers", "lab"} { // namespaces that the values name
		if err := o.Get(t.Context(), client.ObjectKey{Name: ns}, &corev1.Namespace{}); apierrors.IsNotFound(err) {
			o.makeNamespace(t, ns)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	flags, without := o.kinds(t)
	if want := []string{"Certificate"}; !slices.Equal(without, want) {
		t.Errorf("the cluster lacks %v, and what needs them is not shown to the server; want %v", without, want)
	}
	// Hooks have an order: a pod whose account does not exist yet would be rejected. helm test
	// makes the real ones.
	text := o.run(t, "helm", append([]string{"template", release, chart, "-n", namespace, "--no-hooks",
		"--values=" + chart + "/testdata/everything.yaml", "--set=dashboard.namespace="}, flags...)...)
	file := filepath.Join(t.TempDir(), "rendered.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := o.insist(t, "kubectl", "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", file)
	if taken, rendered := strings.Count(out, "serverside-applied"), strings.Count("\n"+text, "\nkind: "); taken != rendered || taken < 17 {
		t.Errorf("%d of %d objects were taken:\n%s", taken, rendered, out)
	}
}

// kinds are the flags of helm template that name the foreign kinds of this cluster. They turn off
// the objects of all other kinds, which are in without.
func (o *owner) kinds(t *testing.T) (flags, without []string) {
	t.Helper()
	for _, k := range []struct{ group, resource, kind, value string }{
		{"monitoring.coreos.com/v1", "servicemonitors", "ServiceMonitor", "metrics.serviceMonitor.enabled"},
		{"monitoring.coreos.com/v1", "prometheusrules", "PrometheusRule", "metrics.rules.enabled"},
		{"cert-manager.io/v1", "certificates", "Certificate", "certificates.certManager.enabled"},
	} {
		list, err := o.clientset.Discovery().ServerResourcesForGroupVersion(k.group)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			t.Fatal(err)
		case slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == k.resource }):
			flags = append(flags, "--api-versions="+k.group+"/"+k.kind)
			continue
		}
		flags, without = append(flags, "--set="+k.value+"=false"), append(without, k.kind)
	}
	return flags, without
}
