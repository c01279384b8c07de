package gauges

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// These bounds limit the exported series: to the newest experiments, and to the first points of
// each. The omitted experiments and points are counted. At most some 50 * 256 * (8 + 2 * 16) series
// are exported. An experiment of 40 points with two measurements has 440.
const (
	maxExperiments = 50
	maxPoints      = 256
)

var (
	pointLabels    = []string{"experiment_namespace", "experiment", "point", "variant", "coordinates"}
	throughputDesc = prometheus.NewDesc("assay_result_throughput", "Committed transactions per second: mean over the valid trials of a point.", pointLabels, nil)
	latencyDesc    = prometheus.NewDesc("assay_result_latency_seconds",
		"Latency of committed transactions: mean over the valid trials of a point of each trial's mean (statistic mean) or quantile (statistic p50, p90, p99, p999).",
		append(slices.Clone(pointLabels), "statistic"), nil)
	measurementDesc = prometheus.NewDesc("assay_result_measurement", "A measurement that Prometheus was asked for: mean over the valid trials of a point that have it.",
		append(slices.Clone(pointLabels), "measurement"), nil)
	outcomesDesc = prometheus.NewDesc("assay_result_trials", "Trials of a point that are over, by outcome.", append(slices.Clone(pointLabels), "outcome"), nil)
	verdictDesc  = prometheus.NewDesc("assay_claim_verdict", "1 for the verdict that a claim has; preliminary is true until the experiment is complete.", []string{"experiment_namespace", "experiment", "claim", "verdict", "preliminary"}, nil)
	leftOutDesc  = prometheus.NewDesc("assay_results_left_out", "Experiments and points whose results are not exported, since there are too many.", []string{"what"}, nil)
)

// Results exports the results of experiments, as the cache has them at the time. A manager that
// does not lead exports none.
type Results struct {
	Reader  client.Reader
	Leading func() bool
	// Context ends with the manager.
	Context context.Context
}

// Describe names the metrics.
func (r *Results) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{throughputDesc, latencyDesc, measurementDesc, outcomesDesc, verdictDesc, leftOutDesc} {
		ch <- d
	}
}

// Collect computes the metrics.
func (r *Results) Collect(ch chan<- prometheus.Metric) {
	if !r.Leading() {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context, scrapeTimeout)
	defer cancel()
	experiments, trials := &v1alpha1.ExperimentList{}, &v1alpha1.TrialList{}
	// Nothing changes the objects, so the cache's own ones can be used.
	if err := r.Reader.List(ctx, experiments, client.UnsafeDisableDeepCopy); err != nil {
		ch <- prometheus.NewInvalidMetric(verdictDesc, err)
		return
	}
	if err := r.Reader.List(ctx, trials, client.UnsafeDisableDeepCopy); err != nil {
		ch <- prometheus.NewInvalidMetric(throughputDesc, err)
		return
	}
	latest := slices.Clone(experiments.Items)
	slices.SortFunc(latest, func(a, b v1alpha1.Experiment) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	left := max(0, len(latest)-maxExperiments)
	latest = latest[:len(latest)-left]
	byExperiment := map[[2]string][]*v1alpha1.Trial{}
	for i := range trials.Items {
		t := &trials.Items[i]
		key := [2]string{t.Namespace, t.Spec.Experiment}
		byExperiment[key] = append(byExperiment[key], t)
	}
	points := 0
	for i := range latest {
		e := &latest[i]
		preliminary := strconv.FormatBool(!meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ExperimentComplete))
		for _, c := range e.Status.Claims {
			ch <- prometheus.MustNewConstMetric(verdictDesc, prometheus.GaugeValue, 1, e.Namespace, e.Name, c.Name, string(c.Verdict), preliminary)
		}
		points += collectPoints(ch, e, byExperiment[[2]string{e.Namespace, e.Name}])
	}
	ch <- prometheus.MustNewConstMetric(leftOutDesc, prometheus.GaugeValue, float64(left), "experiments")
	ch <- prometheus.MustNewConstMetric(leftOutDesc, prometheus.GaugeValue, float64(points), "points")
}

// tally adds up the results of a point's trials.
type tally struct {
	labels   []string
	outcomes map[string]int
	sums     map[string]float64 // by the name of a statistic
	counts   map[string]int
}

func (t *tally) add(statistic string, x float64) {
	t.sums[statistic] += x
	t.counts[statistic]++
}

// collectPoints sends the metrics of an experiment's points, and returns how many points it left
// out.
func collectPoints(ch chan<- prometheus.Metric, e *v1alpha1.Experiment, trials []*v1alpha1.Trial) (left int) {
	tallies := map[int32]*tally{}
	for _, t := range trials {
		outcome := outcomeOf(t)
		if outcome == "" {
			continue
		}
		if t.Spec.Point.Index >= maxPoints {
			left = max(left, int(t.Spec.Point.Index)-maxPoints+1)
			continue
		}
		p := tallies[t.Spec.Point.Index]
		if p == nil {
			p = &tally{labels: labelsOf(e, t), outcomes: map[string]int{}, sums: map[string]float64{}, counts: map[string]int{}}
			tallies[t.Spec.Point.Index] = p
		}
		p.outcomes[outcome]++
		if h := t.Status.Headline; h != nil && outcome == v1alpha1.ReasonSucceeded {
			p.measured(h)
		}
	}
	for _, p := range tallies {
		p.collect(ch)
	}
	return left
}

func outcomeOf(t *v1alpha1.Trial) string {
	for _, c := range t.Status.Conditions {
		if c.Type == v1alpha1.TrialComplete && c.Status == "True" {
			return c.Reason
		}
	}
	return ""
}

func labelsOf(e *v1alpha1.Experiment, t *v1alpha1.Trial) []string {
	var parts []string
	for axis, value := range t.Spec.Point.Coordinates {
		parts = append(parts, axis+"="+value)
	}
	slices.Sort(parts)
	return []string{e.Namespace, e.Name, strconv.Itoa(int(t.Spec.Point.Index)), t.Spec.Point.Coordinates["variant"], strings.Join(parts, ",")}
}

// throughput is a statistic, but no latency. Measurements have a prefix, since they may have any
// name.
const (
	throughput        = "throughput"
	measurementPrefix = "measurement "
)

func (t *tally) measured(h *v1alpha1.Headline) {
	t.add(throughput, float64(h.ThroughputMilli)/1000)
	for statistic, micros := range map[string]int64{
		"mean": h.MeanLatencyMicroseconds, "p50": h.P50LatencyMicroseconds, "p90": h.P90LatencyMicroseconds, "p99": h.P99LatencyMicroseconds, "p999": h.P999LatencyMicroseconds,
	} {
		t.add(statistic, float64(micros)/1e6)
	}
	for _, m := range h.Measurements {
		if x, err := strconv.ParseFloat(m.Value, 64); err == nil {
			t.add(measurementPrefix+m.Name, x)
		}
	}
}

func (t *tally) collect(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, x float64, more ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, x, slices.Concat(t.labels, more)...)
	}
	for outcome, n := range t.outcomes {
		send(outcomesDesc, float64(n), outcome)
	}
	for statistic, sum := range t.sums {
		mean := sum / float64(t.counts[statistic])
		if name, ok := strings.CutPrefix(statistic, measurementPrefix); ok {
			send(measurementDesc, mean, name)
		} else if statistic == throughput {
			send(throughputDesc, mean)
		} else {
			send(latencyDesc, mean, statistic)
		}
	}
}
