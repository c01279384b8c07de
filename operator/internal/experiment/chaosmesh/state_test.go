package chaosmesh

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Chaos Mesh 2.8 wrote these statuses.
func TestRead(t *testing.T) {
	const conditions = `"conditions": [{"type": "Paused", "status": "False"}, {"type": "Selected", "status": "True"}, {"type": "AllInjected", "status": "%"}, {"type": "AllRecovered", "status": "False"}]`
	for name, tc := range map[string]struct {
		status string
		want   State
		wrong  string
	}{
		"nothing was said":  {status: `{"experiment": {}}`},
		"no status at all":  {status: `null`},
		"nothing is chosen": {status: `{"conditions": [{"type": "Selected", "status": "False"}, {"type": "AllInjected", "status": "False"}], "experiment": {"desiredPhase": "Run"}}`, want: State{Said: true}},
		"pods and peers": {
			status: `{` + strings.Replace(conditions, "%", "True", 1) + `, "experiment": {"containerRecords": [
				{"id": "lab/t-1", "selectorKey": ".", "phase": "Injected", "events": [{"type": "Succeeded", "operation": "Apply"}]},
				{"id": "lab/t-0", "selectorKey": ".", "phase": "Injected"}, {"id": "lab/t-2", "selectorKey": ".Target", "phase": "Injected"}], "desiredPhase": "Run"}}`,
			want: State{Said: true, Selected: true, Injected: true, Pods: []string{"t-0", "t-1"}, Peers: []string{"t-2"}},
		},
		"two containers of a pod": {
			status: `{` + strings.Replace(conditions, "%", "True", 1) + `, "experiment": {"containerRecords": [
				{"id": "lab/t-0/db", "selectorKey": ".", "phase": "Injected"}, {"id": "lab/t-0/proxy", "selectorKey": ".", "phase": "Injected"}]}}`,
			want: State{Said: true, Selected: true, Injected: true, Pods: []string{"t-0"}},
		},
		"a failure": {
			status: `{` + strings.Replace(conditions, "%", "False", 1) + `, "experiment": {"containerRecords": [{"id": "lab/t-0", "selectorKey": ".", "phase": "Not Injected/Wait", "events": [
				{"type": "Failed", "operation": "Apply", "message": "unable to set tcs for pod t-0"}]}]}}`,
			want: State{Said: true, Selected: true, Pods: []string{"t-0"}, Failure: "Chaos Mesh says that to apply lab/t-0 failed: unable to set tcs for pod t-0"},
		},
		"a failure that is over": {
			status: `{` + strings.Replace(conditions, "%", "True", 1) + `, "experiment": {"containerRecords": [{"id": "lab/t-0", "selectorKey": ".", "phase": "Injected", "events": [
				{"type": "Failed", "operation": "Apply", "message": "busy"}, {"type": "Succeeded", "operation": "Apply"}]}]}}`,
			want: State{Said: true, Selected: true, Injected: true, Pods: []string{"t-0"}},
		},
		"undone by itself": {
			status: `{` + strings.Replace(conditions, "%", "False", 1) + `, "experiment": {"containerRecords": [
				{"id": "lab/t-0", "selectorKey": ".", "phase": "Not Injected", "events": [{"type": "Succeeded", "operation": "Apply", "timestamp": "2026-11-20T18:00:00Z"},
					{"type": "Succeeded", "operation": "Recover", "timestamp": "2026-11-20T18:00:07Z"}]},
				{"id": "lab/t-1", "selectorKey": ".", "phase": "Not Injected", "events": [{"type": "Succeeded", "operation": "Recover", "timestamp": "2026-11-20T18:00:06Z"}]}]}}`,
			want: State{Said: true, Selected: true, Recovered: true, RecoveredAt: time.Date(2026, 11, 20, 18, 0, 7, 0, time.UTC), Pods: []string{"t-0", "t-1"}},
		},
		"undone in one of two": {
			status: `{` + strings.Replace(conditions, "%", "False", 1) + `, "experiment": {"containerRecords": [
				{"id": "lab/t-0", "selectorKey": ".", "phase": "Injected", "events": [{"type": "Succeeded", "operation": "Apply", "timestamp": "2026-11-20T18:00:00Z"}]},
				{"id": "lab/t-1", "selectorKey": ".", "phase": "Not Injected", "events": [{"type": "Succeeded", "operation": "Recover", "timestamp": "2026-11-20T18:00:06Z"}]}]}}`,
			want: State{Said: true, Selected: true, Pods: []string{"t-0", "t-1"}},
		},
		"a record of nothing":       {status: `{"experiment": {"containerRecords": [{"id": "t-0"}]}}`, wrong: `record "t-0" names no pod`},
		"a status of another shape": {status: `{"conditions": "none"}`, wrong: "read the status of NetworkChaos x"},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetKind("NetworkChaos")
			u.SetName("x")
			var status any
			if err := json.Unmarshal([]byte(tc.status), &status); err != nil {
				t.Fatal(err)
			}
			if status != nil {
				u.Object["status"] = status
			}
			got, err := Read(u)
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Errorf("error %v, want %q", err, tc.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrongPods(t *testing.T) {
	s := State{Pods: []string{"a", "b"}, Peers: []string{"c"}}
	for want, args := range map[string][2][]string{
		"": {{"b", "a"}, {"c"}}, "for the target, which is [a]": {{"a"}, {"c"}}, "for the peers, which is []": {{"a", "b"}, nil},
	} {
		if got := s.WrongPods(args[0], args[1]); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", args, got, want)
		}
	}
}

func TestExplain(t *testing.T) {
	if got := Explain("unable to set tcs for pod t-0"); !strings.Contains(got, "sch_netem") {
		t.Errorf("%q does not say what is missing", got)
	}
	if got := Explain("no daemon"); got != "no daemon" {
		t.Errorf("%q", got)
	}
}
