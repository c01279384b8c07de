package chaosmesh

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestKindsOfAnInstallation: a kind must be one of the cluster, and its owner must allow it.
func TestKindsOfAnInstallation(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{GroupVersion})
	mapper.Add(GroupVersion.WithKind("IOChaos"), meta.RESTScopeNamespace)
	for name, tc := range map[string]struct {
		enabled    bool
		kind, want string
	}{
		"allowed and there":      {true, "IOChaos", ""},
		"not allowed":            {false, "IOChaos", "chaosMesh.enabled: true"},
		"not there":              {true, "TimeChaos", "the cluster has no kind TimeChaos"},
		"neither allowed, there": {false, "TimeChaos", "chaosMesh.enabled: true"},
	} {
		err := (&Installation{Enabled: tc.enabled, Mapper: mapper}).Check(tc.kind)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
