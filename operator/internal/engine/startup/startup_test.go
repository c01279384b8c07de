package startup

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

// said looks reports up by pod.
func said(reports map[string]*protocol.Report) Reports {
	return func(pod string) *protocol.Report { return reports[pod] }
}

func TestWhoStarts(t *testing.T) {
	ready := &protocol.Report{Ready: true}
	gated := &protocol.Report{WaitingFor: "no line matches"}
	for name, tc := range map[string]struct {
		order   v1alpha1.StartOrder
		reports map[string]*protocol.Report
		started []string
		waiting string
		limit   time.Duration
	}{
		"all at once":          {v1alpha1.StartParallel, nil, []string{"a", "b", "c"}, "a is not ready", time.Second},
		"all are ready":        {v1alpha1.StartParallel, map[string]*protocol.Report{"a": ready, "b": ready, "c": ready}, []string{"a", "b", "c"}, "", time.Second},
		"the first that waits": {v1alpha1.StartParallel, map[string]*protocol.Report{"a": ready, "b": gated}, []string{"a", "b", "c"}, "b is not ready: no line matches", time.Second},
		"one by one":           {v1alpha1.StartOneByOne, map[string]*protocol.Report{"a": ready, "b": gated, "c": ready}, []string{"a", "b"}, "b is not ready: no line matches", 3 * time.Second},
		"all, one by one":      {v1alpha1.StartOneByOne, map[string]*protocol.Report{"a": ready, "b": ready, "c": ready}, []string{"a", "b", "c"}, "", 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			g := GroupOf([]string{"a", "b", "c"}, &v1alpha1.ReplicasSpec{Start: tc.order, ReadyTimeout: "1s"})
			started, waiting := g.Started(said(tc.reports))
			if got := slices.Sorted(maps.Keys(started)); !slices.Equal(got, tc.started) || waiting != tc.waiting || g.Limit() != tc.limit {
				t.Errorf("started %v, waiting %q, limit %v; want %v, %q, %v", got, waiting, g.Limit(), tc.started, tc.waiting, tc.limit)
			}
		})
	}
}

func TestGroupsStartOneAfterAnother(t *testing.T) {
	system := &v1alpha1.SystemSpec{Replicas: v1alpha1.ReplicasSpec{ReadyTimeout: "10s", Stop: &v1alpha1.StopSpec{Grace: "2s"}}, Components: []v1alpha1.Component{
		{Name: "last", Order: v1alpha1.OrderAfterReplicas, ReplicasSpec: v1alpha1.ReplicasSpec{ReadyTimeout: "1s"}},
		{Name: "first", ReplicasSpec: v1alpha1.ReplicasSpec{ReadyTimeout: "2s", Stop: &v1alpha1.StopSpec{Grace: "7s"}}},
		{Name: "second", Order: v1alpha1.OrderBeforeReplicas, ReplicasSpec: v1alpha1.ReplicasSpec{ReadyTimeout: "3s", Start: v1alpha1.StartOneByOne}},
	}}
	pods := func(component string) []string {
		if component == "" {
			component = "replica"
		}
		return []string{component + "-0", component + "-1"}
	}
	order, reports := OrderOf(system, pods), map[string]*protocol.Report{}
	if got := order.Limit(); got != (2+2*3+10+1)*time.Second {
		t.Errorf("limit %v", got)
	}
	if got := StopGrace(system); got != 7*time.Second {
		t.Errorf("grace %v", got)
	}
	var seen []string
	for range 20 {
		started, waiting := order.Started(said(reports))
		for _, pod := range slices.Sorted(maps.Keys(started)) {
			if !slices.Contains(seen, pod) {
				seen = append(seen, pod)
			}
		}
		if waiting == "" {
			break
		}
		pod, _, _ := strings.Cut(waiting, " ")
		reports[pod] = &protocol.Report{Ready: true}
	}
	if want := []string{"first-0", "first-1", "second-0", "second-1", "replica-0", "replica-1", "last-0", "last-1"}; !slices.Equal(seen, want) {
		t.Errorf("started in the order %q, want %q", seen, want)
	}
}

func TestSteps(t *testing.T) {
	done := func(code int, failure string) *protocol.Report {
		return &protocol.Report{Commands: []protocol.CommandResult{{ID: "load", ExitCode: code, Error: failure, Output: "what it printed"}}}
	}
	for name, tc := range map[string]struct {
		until           string
		b               *protocol.Report
		waiting, failed string
	}{
		"done":                       {"ExitZero", done(0, ""), "", ""},
		"not heard of":               {"ExitZero", nil, "step load runs in b", ""},
		"not over":                   {"ExitZero", &protocol.Report{}, "step load runs in b", ""},
		"failed":                     {"ExitZero", done(3, ""), "", "Step load failed in b with exit code 3."},
		"any exit code will do":      {"AnyExit", done(3, ""), "", ""},
		"not in time, whatever exit": {"AnyExit", done(0, "timed out"), "", "timed out"},
		"the container was restarted": {"ExitZero", func() *protocol.Report {
			r := done(0, "container server has lost its process")
			r.Containers = []protocol.ContainerState{{Name: "beside", State: protocol.StateRunning}, {Name: "server", State: protocol.StateLost}}
			return r
		}(), "step load could not run in container server of b, which was restarted: the cluster is about to say so", ""},
	} {
		t.Run(name, func(t *testing.T) {
			step := v1alpha1.Step{Name: "load", Until: tc.until}
			waiting, failed := Step(step, []string{"a", "b"}, said(map[string]*protocol.Report{"a": done(0, ""), "b": tc.b}))
			if waiting != tc.waiting || (failed == "") != (tc.failed == "") || !strings.Contains(failed, tc.failed) {
				t.Errorf("waiting %q, failed %q; want %q, %q", waiting, failed, tc.waiting, tc.failed)
			}
		})
	}
	if got := StepsLimit([]v1alpha1.Step{{Timeout: "1m"}, {Timeout: "30s"}}); got != 60*time.Second+70*time.Second+40*time.Second {
		t.Errorf("limit %v", got)
	}
}
