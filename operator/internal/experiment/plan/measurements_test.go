package plan_test

import (
	"errors"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

func TestMeasurementsAreChecked(t *testing.T) {
	exp := failover().Set(func(s *v1alpha1.ExperimentSpec) {
		s.Measurements = []v1alpha1.Measurement{{Name: "cpu", Query: "good"}, {Name: "disk", Query: "bad"}, {Name: "throughput", Query: "good"}}
	}).Obj()
	points := 0
	checks := plan.Checks{
		Measurement: func(m v1alpha1.Measurement, namespace string, trial *v1alpha1.TrialSpec) error {
			points++
			if m.Query == "bad" {
				return errors.New("not PromQL")
			}
			if namespace != exp.Namespace || len(trial.Measurements) != 3 {
				t.Errorf("checked for namespace %s and a trial with %d measurements", namespace, len(trial.Measurements))
			}
			return nil
		},
		Prometheus: func(systems []v1alpha1.SystemSpec) error {
			if len(systems) != 1 || systems[0].Replicas.Count == "" {
				t.Errorf("asked about %v", systems)
			}
			return errors.New("knows no Prometheus")
		},
	}
	p, errs := plan.Validate(exp, systems(builders.System("basil")), checks)
	if p != nil || len(errs) != 3 || !anyContainsAll(errs, []string{"spec.measurements", "knows no Prometheus"}) ||
		!anyContainsAll(errs, []string{"spec.measurements[1].query", "bad", "not PromQL"}) ||
		!anyContainsAll(errs, []string{"spec.measurements[2].name", "throughput", "a column of Assay's own"}) {
		t.Errorf("got %v", errs.ToAggregate())
	}
	if points < 3 {
		t.Errorf("%d queries were checked: not those of every point", points)
	}
}

// Counters of the clients need no Prometheus.
func TestCountersAreMeasuredWithoutPrometheus(t *testing.T) {
	exp := failover().Set(func(s *v1alpha1.ExperimentSpec) {
		s.Measurements = []v1alpha1.Measurement{{Name: "fast", Counter: "fastPathCommits"}}
		// A baseline may be a value that only a profile has. It is then the baseline of that
		// profile.
		s.Profiles = []v1alpha1.Profile{{Name: "small", Sweep: []v1alpha1.Axis{{Axis: "clients", Values: builders.Values(1)}}}}
		s.Figures = []v1alpha1.Figure{{Name: "f", SpeedUp: &v1alpha1.SpeedUp{Over: map[string]v1alpha1.Value{"clients": builders.Value(1)}}}, {Name: "g", Percentiles: &v1alpha1.Percentiles{}}}
	}).Obj()
	p, errs := plan.Validate(exp, systems(builders.System("basil")), plan.Checks{
		Measurement: func(m v1alpha1.Measurement, _ string, _ *v1alpha1.TrialSpec) error {
			return errors.New("not PromQL: " + m.Name)
		},
		Prometheus: func([]v1alpha1.SystemSpec) error { return errors.New("knows no Prometheus") },
	})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	if of := p.Spec.Figures[0].SpeedUp.Of; of != "Throughput" {
		t.Errorf("a speed-up is of %q by default", of)
	}
	if of := p.Spec.Figures[1].Percentiles.Of; len(of) != 3 || of[1] != "P95" {
		t.Errorf("percentiles are %q by default", of)
	}
}

func TestMetricsInterval(t *testing.T) {
	for interval, good := range map[v1alpha1.Duration]bool{"": true, "1s": true, "1m": true, "100ms": false, "2m": false, "fast": false} {
		s := builders.System("basil").Obj().Spec
		s.Replicas.Metrics, s.Clients.Metrics = &v1alpha1.MetricsEndpoint{Port: 1, Interval: interval}, &v1alpha1.MetricsEndpoint{Port: 1, Interval: interval}
		errs := plan.ValidateSystem(&s, nil)
		if good != (len(errs) == 0) || !good && !anyContainsAll(errs, []string{"spec.replicas.metrics.interval"}) || !good && !anyContainsAll(errs, []string{"spec.clients.metrics.interval"}) {
			t.Errorf("%q: %v", interval, errs.ToAggregate())
		}
	}
}
