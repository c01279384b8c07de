package trial

import (
	"errors"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/experiment/monitoring"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

// oracle plays a cluster's Prometheus.
type oracle struct {
	kind    bool // the cluster knows the kind PodMonitor
	answer  []results.Measurement
	asked   *monitoring.Request
	pods    *monitoring.Pods // the pods asked about
	scraped *bool            // nil: not known yet
	forgets int
}

func (o *oracle) HasPodMonitors() (bool, error)       { return o.kind, nil }
func (o *oracle) PodMonitorLabels() map[string]string { return map[string]string{"release": "stack"} }
func (o *oracle) Forget(types.UID)                    { o.forgets++ }

func (o *oracle) Ask(_ types.UID, request func() monitoring.Request) ([]results.Measurement, bool) {
	if o.asked == nil {
		r := request()
		o.asked = &r
	}
	return o.answer, o.answer != nil
}

func (o *oracle) Scraped(_ types.UID, pods func() monitoring.Pods) (all, known bool) {
	if o.pods == nil {
		p := pods()
		o.pods = &p
	}
	return o.scraped != nil && *o.scraped, o.scraped != nil
}

func measuring(s *v1alpha1.ExperimentSpec) {
	s.Measurements = []v1alpha1.Measurement{
		{Name: "cpu", Query: "sum(cpu)", Over: v1alpha1.OverLast},
		{Name: "memory", Query: "max(memory)", Over: v1alpha1.OverMaximum, Required: true},
	}
}

func TestMeasurements(t *testing.T) {
	number, none := 12.5, "the query gives no series"
	for name, tc := range map[string]struct {
		answer          []results.Measurement
		outcome, reason string
		condition       metav1.ConditionStatus
		message         string
		headline        []v1alpha1.MeasuredValue
	}{
		"all are there": {
			[]results.Measurement{{Name: "cpu", Value: &number}, {Name: "memory", Value: &number}}, v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded,
			metav1.ConditionTrue, "There are 2 measurements.", []v1alpha1.MeasuredValue{{Name: "cpu", Value: "12.5"}, {Name: "memory", Value: "12.5"}},
		},
		"one is missing": {
			[]results.Measurement{{Name: "cpu", Reason: none}, {Name: "memory", Value: &number}}, v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded,
			metav1.ConditionFalse, "Not measured: cpu: the query gives no series.", []v1alpha1.MeasuredValue{{Name: "cpu", Reason: none}, {Name: "memory", Value: "12.5"}},
		},
		"one that is required is missing": {
			[]results.Measurement{{Name: "cpu", Value: &number}, {Name: "memory", Reason: none}}, v1alpha1.ReasonInvalid, v1alpha1.ReasonNotMeasured,
			metav1.ConditionFalse, "Not measured: memory: the query gives no series.", []v1alpha1.MeasuredValue{{Name: "cpu", Value: "12.5"}, {Name: "memory", Reason: none}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := &oracle{}
			p := newPlayOf(t, nil, measuring)
			p.r.Prometheus = o
			p.released()
			p.measured(100, 0)
			p.settle(true)
			if c := p.condition(v1alpha1.TrialMeasured); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonAskingPrometheus {
				t.Fatalf("while Prometheus is asked: %s %s", c.Status, c.Reason)
			}
			zero := time.Unix(0, p.trial().Status.ZeroUnixNanos)
			if w := o.asked.Window; !w.From.Equal(zero) || w.To.Sub(w.From) != 20*time.Second {
				t.Errorf("asked for %v to %v, want 20s from t = 0 at %v", w.From, w.To, zero)
			}
			if !o.asked.Asked.Equal(p.clock.Now()) {
				t.Errorf("asked at %v, want %v", o.asked.Asked, p.clock.Now())
			}
			o.answer = tc.answer
			p.settle(true)
			if c := p.condition(v1alpha1.TrialMeasured); c.Status != tc.condition || c.Message != tc.message {
				t.Errorf("Measured is %s: %s; want %s: %s", c.Status, c.Message, tc.condition, tc.message)
			}
			trial := p.wantEnd(tc.outcome, tc.reason)
			if diff := cmp.Diff(tc.answer, trial.Measurements); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.headline, p.trial().Status.Headline.Measurements); diff != "" {
				t.Errorf("headline (-want +got):\n%s", diff)
			}
			if o.forgets == 0 {
				t.Error("what was asked is not forgotten")
			}
		})
	}
}

// Numbers that clients count themselves are measured without Prometheus, and merged with
// Prometheus' answers.
func TestCountersOfClientsAreMeasured(t *testing.T) {
	number := 12.5
	o := &oracle{answer: []results.Measurement{{Name: "memory", Value: &number}}}
	p := newPlayOf(t, nil, func(s *v1alpha1.ExperimentSpec) {
		s.Measurements = []v1alpha1.Measurement{
			{Name: "fast", Counter: "fastPathCommits", Required: true}, {Name: "memory", Query: "max(memory)", Over: v1alpha1.OverMaximum},
			{Name: "slowShare", Counter: "slowPathCommits", Per: "fastPathCommits"}, {Name: "unknown", Counter: "noSuchCounter"},
		}
	})
	p.r.Prometheus = o
	p.released()
	p.measured(100, 0)
	p.settle(true)
	if len(o.asked.Measurements) != 1 || o.asked.Measurements[0].Name != "memory" {
		t.Errorf("Prometheus is asked for %v", o.asked.Measurements)
	}
	trial := p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
	fast, slow := float64(trial.Driver["fastPathCommits"]), float64(trial.Driver["slowPathCommits"])
	if fast == 0 || slow == 0 {
		t.Fatalf("the clients counted %v", trial.Driver)
	}
	share := slow / fast
	want := []results.Measurement{{Name: "fast", Value: &fast}, {Name: "memory", Value: &number}, {Name: "slowShare", Value: &share}, {Name: "unknown", Reason: "no client reports the counter noSuchCounter"}}
	if diff := cmp.Diff(want, trial.Measurements); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if c := p.condition(v1alpha1.TrialMeasured); c.Message != "Not measured: unknown: no client reports the counter noSuchCounter." {
		t.Errorf("Measured says %s", c.Message)
	}
}

// A manager that lost its Prometheus during a trial reports that, and never a number.
func TestMeasurementsWithoutPrometheus(t *testing.T) {
	p := newPlayOf(t, nil, measuring)
	p.released()
	p.measured(100, 0)
	p.settle(true)
	trial := p.wantEnd(v1alpha1.ReasonInvalid, v1alpha1.ReasonNotMeasured)
	for _, m := range trial.Measurements {
		if m.Value != nil || !strings.Contains(m.Reason, "knows no Prometheus") {
			t.Errorf("%s: %v %s", m.Name, m.Value, m.Reason)
		}
	}
}

// podMonitorKind defines the kind of the Prometheus operator, without the schema of its spec. Tests
// look at the made and deleted objects, not at how the operator reads them.
const podMonitorKind = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "podmonitors.monitoring.coreos.com",
"annotations": {"api-approved.kubernetes.io": "unapproved, a test's"}}, "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced",
"names": {"kind": "PodMonitor", "listKind": "PodMonitorList", "plural": "podmonitors", "singular": "podmonitor"}, "versions": [{"name": "v1", "served": true, "storage": true,
"schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}`

// A trial with measurements is not released before Prometheus scrapes its pods. Prometheus notices
// the first PodMonitor of an experiment late. If it never does, the trial goes on.
func TestReleaseWaitsUntilPodsAreScraped(t *testing.T) {
	for name, scraped := range map[string]bool{"they are": true, "they never are": false} {
		t.Run(name, func(t *testing.T) {
			o := &oracle{kind: true}
			p := newPlayOf(t, func(s *v1alpha1.SystemSpec) { s.Replicas.Metrics = &v1alpha1.MetricsEndpoint{Port: 9102} }, measuring)
			if err := monitoringv1.AddToScheme(p.env.Scheme); err != nil {
				t.Fatal(err)
			}
			p.r.Prometheus = o
			p.deployed()
			p.settle(true)
			if o.pods == nil || o.pods.Trial != p.key.Name || o.pods.Namespace != p.key.Namespace || o.pods.Count != len(p.layout().Replicas()) {
				t.Fatalf("Prometheus was asked about %+v, want the replicas of %s", o.pods, p.key)
			}
			if p.trial().Status.ZeroUnixNanos != 0 {
				t.Fatal("the trial was released before its pods were scraped")
			}
			if c := p.condition(v1alpha1.TrialMeasured); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "Waiting until Prometheus scrapes") {
				t.Errorf("meanwhile: %+v", c)
			}
			p.clock.Step(engine.ScrapedTimeout - time.Second) // longer than the barrier's deadline for clients, which were not asked to come there yet
			p.settle(true)
			o.scraped = &scraped
			p.settle(true)
			if p.trial().Status.ZeroUnixNanos == 0 {
				t.Fatal("the trial is not released")
			}
			if c := p.condition(v1alpha1.TrialMeasured); strings.Contains(c.Message, "goes on without") == scraped {
				t.Errorf("afterwards: %+v", c)
			}
		})
	}
}

func TestPodMonitorIsTheExperiments(t *testing.T) {
	p := newPlayIn(t, &testenv.Get(t).Env, func(s *v1alpha1.SystemSpec) { s.Replicas.Metrics = &v1alpha1.MetricsEndpoint{Port: 9102} }, nil)
	if err := monitoringv1.AddToScheme(p.env.Scheme); err != nil {
		t.Fatal(err)
	}
	installation := &monitoring.Installation{PodMonitors: true, Labels: map[string]string{"release": "stack"}, Mapper: p.env.Client.RESTMapper()}
	installation.Open(t.Context())
	p.r.Prometheus = installation
	if has, err := installation.HasPodMonitors(); has || err != nil {
		t.Fatalf("the kind is there before it is installed: %v %v", has, err)
	}
	kind := &unstructured.Unstructured{}
	if err := kind.UnmarshalJSON([]byte(podMonitorKind)); err != nil {
		t.Fatal(err)
	}
	if err := p.env.Client.Create(t.Context(), kind); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		has, err := installation.HasPodMonitors()
		if err != nil {
			t.Fatal(err)
		}
		if has {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the kind is not noticed")
		}
	}
	p.released()
	pm := &monitoringv1.PodMonitor{}
	key, exp := types.NamespacedName{Namespace: p.ns, Name: "exp-echo"}, &v1alpha1.Experiment{}
	if err := errors.Join(p.env.Client.Get(t.Context(), key, pm), p.env.Client.Get(t.Context(), types.NamespacedName{Namespace: p.ns, Name: "exp"}, exp)); err != nil {
		t.Fatal(err)
	}
	if !metav1.IsControlledBy(pm, exp) || pm.Labels["release"] != "stack" || pm.Spec.Selector.MatchLabels[v1alpha1.LabelExperiment] != "exp" {
		t.Errorf("the PodMonitor is %+v", pm)
	}
	p.measured(100, 0)
	p.settle(true)
	p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
	version := pm.ResourceVersion
	p.key = p.newTrial("trial-1") // the second trial finds the PodMonitor
	p.released()
	if err := p.env.Client.Get(t.Context(), key, pm); err != nil || pm.ResourceVersion != version {
		t.Errorf("the next trial has another PodMonitor: %v", err)
	}
}
