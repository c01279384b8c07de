package timeline

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
)

func kill(name, at string, lasts *v1alpha1.Duration) v1alpha1.Fault {
	return v1alpha1.Fault{Name: name, At: v1alpha1.Duration(at), For: lasts, NodeKill: &v1alpha1.NodeKill{}}
}

func TestBuild(t *testing.T) {
	three := v1alpha1.Duration("3s")
	pods := func(names ...string) func(v1alpha1.Target) []string {
		return func(v1alpha1.Target) []string { return names }
	}
	tests := map[string]struct {
		faults  []v1alpha1.Fault
		target  func(v1alpha1.Target) []string
		want    []Action
		wantErr string
	}{
		"no fault": {target: pods("a")},
		"for good": {
			faults: []v1alpha1.Fault{kill("crash", "-2s", nil)}, target: pods("a"),
			want: []Action{{ID: "crash/kill/a", Fault: "crash", Pod: "a", Kind: Kill, At: -2 * time.Second}},
		},
		"for a time, two pods, in order of time": {
			faults: []v1alpha1.Fault{kill("crash", "1s", &three)}, target: pods("b", "a"),
			want: []Action{
				{ID: "crash/kill/a", Fault: "crash", Pod: "a", Kind: Kill, At: time.Second},
				{ID: "crash/kill/b", Fault: "crash", Pod: "b", Kind: Kill, At: time.Second},
				{ID: "crash/revive/a", Fault: "crash", Pod: "a", Kind: Revive, At: 4 * time.Second},
				{ID: "crash/revive/b", Fault: "crash", Pod: "b", Kind: Revive, At: 4 * time.Second},
			},
		},
		"nobody hit":    {faults: []v1alpha1.Fault{kill("crash", "0s", nil)}, target: pods(), wantErr: "hits no replica"},
		"nothing to do": {faults: []v1alpha1.Fault{{Name: "x"}}, target: pods("a"), wantErr: "set nodeKill"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Build(tc.faults, tc.target)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("error %v, want one with %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("actions (-want +got):\n%s", d)
			}
		})
	}
}
