package podsecurity

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestCheck(t *testing.T) {
	yes, no := true, false
	plain := func(change func(*corev1.SecurityContext)) *corev1.PodSpec {
		sc := &corev1.SecurityContext{RunAsNonRoot: &yes, AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
		change(sc)
		return &corev1.PodSpec{Containers: []corev1.Container{{Name: "c", SecurityContext: sc}}}
	}
	admin := func(sc *corev1.SecurityContext) { sc.Capabilities.Add = []corev1.Capability{"NET_ADMIN"} }
	root := func(sc *corev1.SecurityContext) { sc.RunAsNonRoot, sc.RunAsUser = nil, new(int64) }
	nothing := func(*corev1.SecurityContext) {}
	const enforce, version = "pod-security.kubernetes.io/enforce", "pod-security.kubernetes.io/enforce-version"
	tests := map[string]struct {
		labels map[string]string
		pod    *corev1.PodSpec
		want   string // profile of the refusal; empty: admitted
		why    string
	}{
		"no label":                           {pod: plain(admin)},
		"privileged":                         {labels: map[string]string{enforce: "privileged"}, pod: plain(admin)},
		"baseline and a capability":          {labels: map[string]string{enforce: "baseline"}, pod: plain(admin), want: "baseline", why: "NET_ADMIN"},
		"baseline and root":                  {labels: map[string]string{enforce: "baseline"}, pod: plain(root)},
		"restricted and nothing":             {labels: map[string]string{enforce: "restricted"}, pod: plain(nothing)},
		"restricted and root":                {labels: map[string]string{enforce: "restricted"}, pod: plain(root), want: "restricted", why: "runAsNonRoot"},
		"restricted of an old version":       {labels: map[string]string{enforce: "restricted", version: "v1.20"}, pod: plain(admin), want: "restricted", why: "NET_ADMIN"},
		"a profile that does not exist":      {labels: map[string]string{enforce: "strict"}, pod: plain(root), want: "restricted", why: "runAsNonRoot"},
		"a profile that only warns":          {labels: map[string]string{"pod-security.kubernetes.io/warn": "restricted"}, pod: plain(admin)},
		"enforced, and a milder one audited": {labels: map[string]string{enforce: "baseline", "pod-security.kubernetes.io/audit": "privileged"}, pod: plain(admin), want: "baseline", why: "NET_ADMIN"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Check(tc.labels, tc.pod)
			switch {
			case err != nil:
				t.Fatal(err)
			case tc.want == "" && got != nil:
				t.Errorf("refused by %s: %s", got.Profile, got.Why)
			case tc.want != "" && (got == nil || got.Profile != tc.want || !strings.Contains(got.Why, tc.why)):
				t.Errorf("got %+v, want a refusal by %s with %q", got, tc.want, tc.why)
			}
		})
	}
}
