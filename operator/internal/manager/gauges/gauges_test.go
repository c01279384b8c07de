package gauges

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/builders"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// trial returns a trial with a schedule of 40 s that was admitted some time ago, or never.
func trial(name string, admitted time.Duration, conditions ...string) *v1alpha1.Trial {
	t := builders.Trial(name).Obj()
	t.Spec.Schedule = v1alpha1.Schedule{WarmUp: "5s", Measure: "20s", CoolDown: "5s", Drain: "10s"}
	if admitted > 0 {
		at := metav1.NewMicroTime(now.Add(-admitted))
		t.Status.Times.Admitted = &at
	}
	t.Status.Conditions = nil
	for _, c := range conditions {
		t.Status.Conditions = append(t.Status.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue})
	}
	return t
}

func experiment(name string, stored metav1.ConditionStatus) *v1alpha1.Experiment {
	e := builders.Experiment(name).Obj()
	e.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ExperimentResultsStored, Status: stored}}
	return e
}

func TestGauges(t *testing.T) {
	late := trial("late", 100*time.Second, v1alpha1.TrialAdmitted)
	early := trial("early", 10*time.Second, v1alpha1.TrialAdmitted)
	waits := trial("waits", 0)
	over := trial("over", time.Hour, v1alpha1.TrialAdmitted, v1alpha1.TrialComplete)
	for name, tc := range map[string]struct {
		objects []client.Object
		follows bool
		want    map[string]float64
	}{
		"nothing": {nil, false, map[string]float64{
			"assay_trials queued": 0, "assay_trials running": 0, "assay_trial_overdue_seconds": 0, "assay_experiments_results_unstored": 0}},
		"all kinds of trials": {[]client.Object{late, early, waits, over}, false, map[string]float64{
			"assay_trials queued": 1, "assay_trials running": 2, "assay_trial_overdue_seconds": 60, "assay_experiments_results_unstored": 0}},
		"in its schedule": {[]client.Object{early}, false, map[string]float64{
			"assay_trials queued": 0, "assay_trials running": 1, "assay_trial_overdue_seconds": 0, "assay_experiments_results_unstored": 0}},
		"unstored": {[]client.Object{experiment("a", metav1.ConditionFalse), experiment("b", metav1.ConditionFalse), experiment("c", metav1.ConditionTrue)}, false,
			map[string]float64{"assay_trials queued": 0, "assay_trials running": 0, "assay_trial_overdue_seconds": 0, "assay_experiments_results_unstored": 2}},
		"a manager that follows": {[]client.Object{late}, true, map[string]float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			r := prometheus.NewPedanticRegistry()
			r.MustRegister(&Collector{
				Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).Build(), Clock: clocktesting.NewFakePassiveClock(now),
				Leading: func() bool { return !tc.follows }, Context: t.Context(),
			})
			families, err := r.Gather()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, values(families)); diff != "" {
				t.Errorf("gauges (-want +got):\n%s", diff)
			}
		})
	}
}

func values(families []*dto.MetricFamily) map[string]float64 {
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			out[strings.TrimSpace(name)] = m.GetGauge().GetValue()
		}
	}
	return out
}
