package gauges

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"assay.dev/assay/operator/api/v1alpha1"
)

func ended(experiment string, number int, point int32, outcome string, throughputMilli int64) *v1alpha1.Trial {
	t := &v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: "papers", Name: fmt.Sprintf("%s-%d", experiment, number)}}
	t.Spec.Experiment, t.Spec.Point = experiment, v1alpha1.Point{Index: point, Coordinates: map[string]string{"variant": "fp", "clients": "10"}}
	if outcome != "" {
		t.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TrialComplete, Status: metav1.ConditionTrue, Reason: outcome}}
		t.Status.Headline = &v1alpha1.Headline{ThroughputMilli: throughputMilli, MeanLatencyMicroseconds: 2000, P50LatencyMicroseconds: 1000, P90LatencyMicroseconds: 3000,
			P99LatencyMicroseconds: 4000, P999LatencyMicroseconds: 5000, Measurements: []v1alpha1.MeasuredValue{{Name: "cpu", Value: "1.5"}, {Name: "memory", Reason: "not scraped"}}}
	}
	return t
}

func gatherResults(t *testing.T, leads bool, objects ...client.Object) map[string]float64 {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(&Results{Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), Leading: func() bool { return leads }, Context: t.Context()})
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return values(families)
}

func demo(name string, age time.Duration) *v1alpha1.Experiment {
	e := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "papers", Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))}}
	e.Status.Claims = []v1alpha1.ClaimStatus{{Name: "faster", Verdict: v1alpha1.VerdictConsistent}}
	return e
}

func TestResults(t *testing.T) {
	objects := []client.Object{demo("demo", 0), ended("demo", 0, 0, "Succeeded", 100_000), ended("demo", 1, 0, "Succeeded", 200_000),
		ended("demo", 2, 0, "Invalid", 9_000_000), ended("demo", 3, 0, "", 0), ended("demo", 4, maxPoints, "Succeeded", 1)}
	point := " clients=10,variant=fp demo papers"
	want := map[string]float64{
		"assay_result_throughput" + point + " 0 fp": 150, "assay_result_measurement clients=10,variant=fp demo papers cpu 0 fp": 1.5,
		"assay_result_trials clients=10,variant=fp demo papers Succeeded 0 fp": 2, "assay_result_trials clients=10,variant=fp demo papers Invalid 0 fp": 1,
		"assay_claim_verdict faster demo papers true Consistent": 1, "assay_results_left_out experiments": 0, "assay_results_left_out points": 1,
	}
	for statistic, seconds := range map[string]float64{"mean": 0.002, "p50": 0.001, "p90": 0.003, "p99": 0.004, "p999": 0.005} {
		want["assay_result_latency_seconds"+point+" 0 "+statistic+" fp"] = seconds
	}
	if diff := cmp.Diff(want, gatherResults(t, true, objects...)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if got := gatherResults(t, false, objects...); len(got) > 0 {
		t.Errorf("a manager that follows exports %v", got)
	}
}

// If there are very many experiments, only the latest have series.
func TestResultsAreBounded(t *testing.T) {
	var objects []client.Object
	for i := range maxExperiments + 3 {
		objects = append(objects, demo(fmt.Sprintf("e%d", i), time.Duration(i)*time.Hour))
	}
	got := gatherResults(t, true, objects...)
	if got["assay_results_left_out experiments"] != 3 || got["assay_claim_verdict faster e0 papers true Consistent"] != 1 {
		t.Errorf("got %v", got)
	}
	if _, there := got[fmt.Sprintf("assay_claim_verdict faster e%d papers true Consistent", maxExperiments)]; there {
		t.Error("the oldest is exported")
	}
}
