package install

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	clireport "assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/testuntil"
)

const (
	prometheusExperiments = "install-prometheus"
	// idleTime is how long managers have nothing to do before Prometheus is asked what that costs.
	idleTime = time.Minute
	// processTolerance is by how much two measurements of the same processor time may differ, as a share of ours: both take a sample a second and not at the same time, and a
	// window of ten seconds has ten.
	processTolerance = 0.2
)

// prometheus is one that runs in the cluster: its API, and a file with the chart's values for it.
type prometheus struct {
	promv1.API
	values  string
	hurried time.Time
}

// withPrometheus installs the operator and a Prometheus, for as long as the test lasts. What the release has of the operator's kinds must be gone by then.
func (o *owner) withPrometheus(t *testing.T) *prometheus {
	t.Helper()
	script := filepath.Join(root, "hack", "prometheus", "install.sh")
	t.Cleanup(func() { o.insist(t, script, "down") })
	values := filepath.Join(t.TempDir(), "prometheus.yaml")
	if err := os.WriteFile(values, []byte(o.insist(t, script, "up")), 0o600); err != nil {
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

// hurry has the kubelet look at Prometheus' pod, which it does by itself within a minute and a half: what the operator has written into a Secret for Prometheus gets there with that.
// It does so every few seconds, however often it is called.
func (p *prometheus) hurry(ctx context.Context, o *owner) {
	const every = 3 * time.Second
	if time.Since(p.hurried) < every {
		return
	}
	p.hurried = time.Now()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "monitoring", Name: "prometheus-small-0"}}
	patch := fmt.Sprintf(`{"metadata": {"annotations": {"assay.dev/hurry": "%d"}}}`, p.hurried.UnixNano())
	_ = o.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(patch))) // or it comes later
}

// released reports whether a trial of the experiment has been released, which waits for Prometheus to scrape its pods.
func (o *owner) released(t *testing.T, exp *v1alpha1.Experiment) bool {
	t.Helper()
	return slices.ContainsFunc(o.trials(t, exp), func(trial v1alpha1.Trial) bool { return trial.Status.ZeroUnixNanos != 0 })
}

// number of a query that gives one series, at an instant.
func (p *prometheus) number(ctx context.Context, query string, at time.Time) (float64, error) {
	answer, _, err := p.Query(ctx, query, at)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", query, err)
	}
	if v, ok := answer.(model.Vector); ok && len(v) == 1 {
		return float64(v[0].Value), nil
	}
	return 0, fmt.Errorf("%s gives %v, want one series", query, answer)
}

// testIdleMinute asks Prometheus for the working set and the processor time of each manager over a minute in which no trial ran.
func (o *owner) testIdleMinute(t *testing.T, prom *prometheus, from time.Time) {
	testuntil.Needs(t, 90*time.Second)
	memory, cores := o.usualCost(t, func() (float64, float64) {
		memory, cores := o.idleMinute(t, prom, from)
		from = time.Now()
		return memory, cores
	})
	if memory >= idleMemory {
		t.Errorf("an idle manager takes %.1f MB, want less than %d MB", memory/(1<<20), idleMemory>>20)
	}
	if cores >= idleCPU {
		t.Errorf("an idle manager takes %.1f millicores, want less than %.0f", 1000*cores, 1000*idleCPU)
	}
}

// idleMinute returns the most that any manager took in the first idle minute after an instant.
func (o *owner) idleMinute(t *testing.T, prom *prometheus, from time.Time) (memory, cores float64) {
	t.Helper()
	var names []string
	var pods string
	eventually(t, 2*patience, "Prometheus has an idle minute of every manager", func(ctx context.Context) (bool, error) {
		prom.hurry(ctx, o)
		now := time.Now()
		names = o.managers(t)
		all := strings.Join(names, "|")
		pods = fmt.Sprintf(`{namespace=%q, container="manager", pod=~%q}`, namespace, all)
		scraped, err := prom.number(ctx, fmt.Sprintf(`count(up{job="assay-metrics", namespace=%q, pod=~%q} == 1)`, namespace, all), now)
		if err != nil || int(scraped) != len(names) {
			return false, errors.Join(err, fmt.Errorf("%.0f of %d managers are scraped", scraped, len(names)))
		}
		// Samples of the kubelets are from up to some twenty seconds ago.
		oldest, err := prom.number(ctx, "min(min_over_time(timestamp(container_memory_working_set_bytes"+pods+")[5m:5s]))", now)
		if err != nil {
			return false, err
		}
		newest, err := prom.number(ctx, "min(timestamp(container_memory_working_set_bytes"+pods+"))", now)
		since := math.Max(oldest, float64(from.Unix()))
		return err == nil && newest-since >= idleTime.Seconds(), errors.Join(err, fmt.Errorf("it has %.0f seconds", newest-since))
	})
	list := &v1alpha1.TrialList{}
	if err := o.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if !meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, v1alpha1.TrialComplete) {
			t.Fatalf("trial %s is not over: managers are not idle", list.Items[i].Name)
		}
	}
	to := time.Now()
	window := promv1.Range{Start: to.Add(-idleTime), End: to, Step: 5 * time.Second}
	memory = prom.most(t, "sum by (pod) (container_memory_working_set_bytes"+pods+")", window, len(names))
	cores = prom.most(t, "sum by (pod) (rate(container_cpu_usage_seconds_total"+pods+"[1m]))", promv1.Range{Start: to, End: to, Step: time.Second}, len(names))
	t.Logf("%d idle managers: working set at most %.1f MB, %.1f millicores", len(names), memory/(1<<20), 1000*cores)
	return memory, cores
}

// managers are the names of those pods that are to stay.
func (o *owner) managers(t *testing.T) []string {
	t.Helper()
	pods, err := o.clientset.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=manager"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			names = append(names, pods.Items[i].Name)
		}
	}
	return names
}

// most is the greatest value of so many series over a time. None of them may be 0: it would not have been measured.
func (p *prometheus) most(t *testing.T, query string, over promv1.Range, series int) float64 {
	t.Helper()
	greatest := 0.0
	eventually(t, time.Minute, fmt.Sprintf("%s gives %d series", query, series), func(ctx context.Context) (bool, error) {
		answer, _, err := p.QueryRange(ctx, query, over)
		if err != nil {
			return false, err
		}
		m, ok := answer.(model.Matrix)
		if !ok || len(m) != series || series == 0 {
			return false, fmt.Errorf("it gives %v", answer)
		}
		greatest = 0
		for _, s := range m {
			here := 0.0
			for _, v := range s.Values {
				here = math.Max(here, float64(v.Value))
			}
			if here == 0 {
				return false, fmt.Errorf("it gives nothing but 0 for %s", s.Metric)
			}
			greatest = math.Max(greatest, here)
		}
		return true, nil
	})
	return greatest
}

// testRulesAndDashboard: every alert of ours is evaluated without an error, and every query of the dashboard is understood. Those about what a manager says all the time have a
// value; the others need experiments.
func (o *owner) testRulesAndDashboard(t *testing.T, prom *prometheus) {
	testuntil.Needs(t, 30*time.Second)
	eventually(t, patience, "Prometheus evaluates the alerts", func(ctx context.Context) (bool, error) {
		prom.hurry(ctx, o)
		rules, err := prom.Rules(ctx)
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
		return healthy == 4, fmt.Errorf("%d are healthy, want 4", healthy)
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
	eventually(t, patience, "every query of the dashboard is understood, and half of them have a value", func(ctx context.Context) (bool, error) {
		queries, answered := 0, 0
		for _, p := range dashboard.Panels {
			for _, target := range p.Targets {
				queries++
				answer, _, err := prom.Query(ctx, target.Expr, time.Now())
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

// testMeasurement compares what Prometheus says of the replicas' processor time with our own readings. A machine that stands still for a second of a window of ten spoils a comparison:
// when one is off, the experiment is run twice more, and the median counts.
func (o *owner) testMeasurement(t *testing.T, prom *prometheus, s3 s3Server) {
	testuntil.Needs(t, 2*time.Minute)
	o.makeNamespace(t, prometheusExperiments)
	o.create(t, system(t, "basil", prometheusExperiments))
	differences := map[string][]float64{} // as a share of our readings, by variant
	off := func(ds []float64) bool { return median(ds) > processTolerance }
	for round := 1; round <= 3; round++ {
		for variant, d := range o.measured(t, prom, s3, round) {
			differences[variant] = append(differences[variant], d)
		}
		if round == 1 && !slices.ContainsFunc(slices.Collect(maps.Values(differences)), off) {
			break
		}
	}
	if len(differences) != 2 {
		t.Errorf("two variants were to be compared: %v", differences)
	}
	for variant, ds := range differences {
		if off(ds) {
			t.Errorf("%s: processor time by Prometheus and by our readings differ by %.2f of ours in the median of %.2f, want at most %.2f", variant, median(ds), ds, processTolerance)
		}
	}
}

// median of an odd number of values.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// measured runs failure-fp at smoke size, once with and once without its crash, and returns how far Prometheus and our own readings are apart, by variant.
func (o *owner) measured(t *testing.T, prom *prometheus, s3 s3Server, round int) map[string]float64 {
	t.Helper()
	exp := o.applyMeasured(t, round)
	o.checkPodMonitor(t, exp)
	eventually(t, 3*patience, "the experiment is complete and stored", func(ctx context.Context) (bool, error) {
		if !o.released(t, exp) {
			prom.hurry(ctx, o)
		}
		c, err := o.resultsStored(ctx, exp)
		done := meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete)
		return err == nil && done && c.Status == metav1.ConditionTrue, errors.Join(err, fmt.Errorf("%+v, %+v", exp.Status.Trials, c))
	})
	if c := exp.Status.Trials; c.Succeeded != 2 || c.Failed != 0 {
		t.Errorf("%+v; want 2 valid trials and none that failed", c)
	}
	eventually(t, patience, "the PodMonitor is gone", func(ctx context.Context) (bool, error) {
		list := &monitoringv1.PodMonitorList{}
		err := o.List(ctx, list, client.InNamespace(exp.Namespace))
		return err == nil && len(list.Items) == 0, errors.Join(err, fmt.Errorf("%d are left", len(list.Items)))
	})
	folder := store.ExperimentFolder(exp.Namespace, exp.Name, string(exp.UID))
	if n, err := store.Verify(t.Context(), s3.S3, folder); err != nil || n == 0 {
		t.Errorf("%d objects are stored and right: %v", n, err)
	}
	differences := map[string]float64{}
	for _, trial := range o.trials(t, exp) {
		if c := meta.FindStatusCondition(trial.Status.Conditions, v1alpha1.TrialValid); c != nil && c.Status == metav1.ConditionTrue {
			variant, d := o.compareProcessorTime(t, s3, folder.Trial(trial.Name))
			differences[variant] = d
		} else {
			t.Logf("trial %s was repeated: %+v", trial.Name, c)
		}
	}
	if text := o.report(t, exp); !strings.Contains(text, "cpuSeconds s") || lacksNumber(text) {
		t.Errorf("the report has no column cpuSeconds, or no number in it:\n%s", text)
	} else {
		t.Log("\n" + text)
	}
	eventually(t, patience, "Prometheus has the measurement as a result of the experiment", func(ctx context.Context) (bool, error) {
		n, err := prom.number(ctx, fmt.Sprintf(`count(assay_result_measurement{experiment=%q, experiment_namespace=%q, measurement="cpuSeconds"} > 0)`, exp.Name, exp.Namespace), time.Now())
		return n == 2, err
	})
	return differences
}

// lacksNumber reports whether a report says that a number could not be had. That a trial was repeated since ResourcesNotMeasured is something else.
func lacksNumber(report string) bool {
	return regexp.MustCompile(`\bNotMeasured\b`).MatchString(report)
}

// applyMeasured applies the experiment of the repository with measurements, one trial of each of two variants, without its claims.
func (o *owner) applyMeasured(t *testing.T, round int) *v1alpha1.Experiment {
	t.Helper()
	exp := &v1alpha1.Experiment{}
	read(t, filepath.Join(root, "experiments", "failure-fp.yaml"), exp)
	exp.Namespace, exp.Name = prometheusExperiments, fmt.Sprintf("%s-%d", exp.Name, round)
	spec := &exp.Spec
	read(t, filepath.Join("testdata", "prometheus.yaml"), &spec.Measurements)
	spec.Profile, spec.Claims, spec.Reported = "smoke", nil, nil
	spec.Profiles[0].Tolerances.Steal, spec.Profiles[0].Tolerances.StartSpread = "100%", "1s" // two readings of the same are compared
	spec.Profiles[0].Claims, spec.Profiles[0].Repetitions = nil, &v1alpha1.Repetitions{Min: 1}
	variants := &spec.Sweep[1]
	variants.Points = []v1alpha1.AxisPoint{variants.Points[0], variants.Points[2]}
	// The webhook of a manager that does not know the kind PodMonitor yet refuses it: it came a moment ago.
	eventually(t, patience, "the experiment is taken", func(ctx context.Context) (bool, error) {
		err := o.Create(ctx, exp)
		return err == nil, err
	})
	return exp
}

// checkPodMonitor waits for that of an experiment, and looks whose it is.
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

// compareProcessorTime of all replicas together in the window: by their own counters, which Prometheus has scraped, and by the kernel's, which agents have read. It returns how far
// they are apart, as a share of the latter, and the trial's variant.
func (o *owner) compareProcessorTime(t *testing.T, s3 s3Server, folder store.Folder) (variant string, difference float64) {
	t.Helper()
	const limit = 16 << 20
	_, text, err := store.ReadAll(t.Context(), s3.S3, folder.Key("trial.json"), limit)
	if err != nil {
		t.Fatal(err)
	}
	trial, err := results.DecodeTrial(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(trial.Measurements) != 2 || trial.Measurements[0].Value == nil || trial.Measurements[1].Value == nil {
		t.Fatalf("%s: measurements %+v, want two numbers", folder, trial.Measurements)
	}
	ours, most := 0.0, 0.0
	for _, p := range trial.Pods {
		if p.Part == v1alpha1.PartReplica && p.Resources != nil {
			ours += p.Resources.CPUMeanCores * p.Resources.Seconds
			most = math.Max(most, float64(p.Resources.MemoryMaxBytes)/(1<<20))
		}
	}
	theirs, memory := *trial.Measurements[0].Value, *trial.Measurements[1].Value
	t.Logf("%s: the replicas used %.2f s of processors by Prometheus and %.2f s by our readings; at most %.0f MiB resident by Prometheus, working set %.0f MiB by our readings",
		folder, theirs, ours, memory, most)
	if ours <= 0 {
		t.Fatalf("%s: %.2f s by our readings", folder, ours)
	}
	// Resident are pages of the program's file, too, and the working set has what the kernel holds for the process: the same thing in kind, not in amount.
	if memory < most/4 || memory > 8*most {
		t.Errorf("%s: %.0f MiB by Prometheus and %.0f MiB by our readings", folder, memory, most)
	}
	return trial.Coordinates["variant"], math.Abs(theirs-ours) / ours
}

// report is what "kubectl assay report" prints of an experiment.
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
