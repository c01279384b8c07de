package monitoring

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

func TestWhetherPodMonitorsAreMade(t *testing.T) {
	version := schema.GroupVersion{Group: monitoringv1.SchemeGroupVersion.Group, Version: monitoringv1.Version}
	with, without := meta.NewDefaultRESTMapper(nil), meta.NewDefaultRESTMapper(nil)
	with.Add(version.WithKind(monitoringv1.PodMonitorsKind), meta.RESTScopeNamespace)
	for name, tc := range map[string]struct {
		i    *Installation
		want bool
	}{
		"no installation":     {nil, false},
		"switched off":        {&Installation{Mapper: with}, false},
		"without the kind":    {&Installation{PodMonitors: true, Mapper: without}, false},
		"on, and with a kind": {&Installation{PodMonitors: true, Mapper: with}, true},
	} {
		if got, err := tc.i.HasPodMonitors(); got != tc.want || err != nil {
			t.Errorf("%s: %v, %v; want %v", name, got, err, tc.want)
		}
	}
}

// A manager cannot ask a Prometheus that the installation does not know.
func TestMeasurementsNeedAServer(t *testing.T) {
	for name, tc := range map[string]struct {
		i    *Installation
		want string
	}{
		"no installation": {nil, "knows no Prometheus to ask"},
		"no server":       {&Installation{}, "knows no Prometheus to ask"},
		"a server":        {&Installation{Server: &Server{}}, ""},
	} {
		err := tc.i.Check(nil)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// A trial that is forgotten is asked about anew, at both desks.
func TestBothDesksForget(t *testing.T) {
	i := Installation{
		Numbers: &Desk[Request, []results.Measurement]{Context: t.Context(), Evaluate: func(context.Context, Request) []results.Measurement { return nil }},
		Targets: &Desk[Pods, bool]{Context: t.Context(), Evaluate: func(context.Context, Pods) bool { return true }},
		Server:  &Server{},
	}
	var questions []string
	for range 2 {
		i.Ask("u", func() Request { questions = append(questions, "numbers"); return Request{} })
		i.Scraped("u", func() Pods { questions = append(questions, "targets"); return Pods{} })
		i.Forget("u")
	}
	if diff := cmp.Diff([]string{"numbers", "targets", "numbers", "targets"}, questions); diff != "" {
		t.Errorf("questions (-want +got)\n%s", diff)
	}
}

// A manager that knows no Prometheus any more answers at once, with a reason for each measurement.
func TestAnswersWithoutAServer(t *testing.T) {
	var i Installation
	answer, done := i.Ask("u", func() Request {
		return Request{Measurements: []v1alpha1.Measurement{{Name: "a"}, {Name: "b"}}, Asked: time.Now()}
	})
	why := "the manager knows no Prometheus any more: prometheus.url of the chart is not set"
	if diff := cmp.Diff([]results.Measurement{{Name: "a", Reason: why}, {Name: "b", Reason: why}}, answer); diff != "" || !done {
		t.Errorf("done %v (-want +got)\n%s", done, diff)
	}
	if all, known := i.Scraped("u", nil); all || !known {
		t.Errorf("all are scraped %v, known %v; want that it is known that they are not", all, known)
	}
}
