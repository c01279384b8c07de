package chaosmesh

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"assay.dev/assay/operator/api/v1alpha1"
)

func TestHowOftenContainersAreRestarted(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, spec string
		lasted     time.Duration
		limit      int
		agent      bool
		containers []string
	}{
		"a container that is killed":        {"PodChaos", `{"action":"container-kill","containerNames":["db"]}`, time.Hour, 1, false, []string{"db"}},
		"each container is killed":          {"PodChaos", `{"action":"container-kill"}`, 0, 1, false, nil},
		"a pod that fails for a moment":     {"PodChaos", `{"action":"pod-failure"}`, 9 * time.Second, 3, true, nil},
		"a pod that fails for a while":      {"PodChaos", `{"action":"pod-failure"}`, 30 * time.Second, 5, true, nil},                  // after 10 s and 30 s
		"a pod that fails for a long time":  {"PodChaos", `{"action":"pod-failure"}`, 10*time.Second*31 + 5*time.Minute, 9, true, nil}, // 10+20+40+80+160 s, then 300 s
		"a pod that is deleted":             {"PodChaos", `{"action":"pod-kill"}`, time.Hour, 0, false, nil},
		"something else of the same action": {"StressChaos", `{"action":"container-kill","containerNames":["db"]}`, time.Hour, 0, false, nil},
		"nonsense":                          {"PodChaos", `{"action":"container-kill","containerNames":"db"}`, time.Hour, 1, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := &v1alpha1.Fault{ChaosMesh: &v1alpha1.ChaosMesh{Kind: tc.kind, Spec: runtime.RawExtension{Raw: []byte(tc.spec)}}}
			if got := RestartLimit(f, tc.lasted); got != tc.limit {
				t.Errorf("at most %d restarts, want %d", got, tc.limit)
			}
			if got := RestartsAgent(f); got != tc.agent {
				t.Errorf("the agent is restarted: %v, want %v", got, tc.agent)
			}
			if d := cmp.Diff(tc.containers, RestartedContainers(f)); d != "" {
				t.Errorf("containers (-want +got):\n%s", d)
			}
		})
	}
	crash := &v1alpha1.Fault{NodeKill: &v1alpha1.NodeKill{}}
	if RestartsAgent(crash) || RestartLimit(crash, time.Hour) != 0 || RestartedContainers(crash) != nil {
		t.Error("a nodeKill restarts containers")
	}
}
