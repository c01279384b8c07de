package chart

import (
	"slices"
	"strings"
	"testing"
)

// Values about the cluster's Prometheus reach managers; secrets stay in their Secret.
func TestPrometheus(t *testing.T) {
	args := render(t).manager.Spec.Template.Spec.Containers[0].Args
	if argument(args, "--prometheus-url") != "" || argument(args, "--pod-monitors") != "true" {
		t.Errorf("by default: %v", args)
	}
	r := render(t, "--set=prometheus.url=https://prometheus.monitoring.svc:9090,prometheus.bearerToken.secret=reader,prometheus.ca.secret=authority,prometheus.namespaceLabel=kubernetes_namespace",
		"--set=prometheus.podMonitors.labels.release=stack,prometheus.podMonitors.labels.a\\.b/c=d")
	manager := r.manager.Spec.Template.Spec
	args = manager.Containers[0].Args
	for flag, want := range map[string]string{
		"--prometheus-url": "https://prometheus.monitoring.svc:9090", "--prometheus-token-file": "/etc/assay/prometheus/token", "--prometheus-ca-file": "/etc/assay/prometheus/ca.crt",
		"--prometheus-namespace-label": "kubernetes_namespace",
	} {
		if got := argument(args, flag); got != want {
			t.Errorf("%s is %q, want %q", flag, got, want)
		}
	}
	for _, want := range []string{"--pod-monitor-labels=release=stack", "--pod-monitor-labels=a.b/c=d"} {
		if !slices.Contains(args, want) {
			t.Errorf("there is no %s in %v", want, args)
		}
	}
	var secrets []string
	for _, v := range manager.Volumes {
		if v.Name == "prometheus" {
			for _, s := range v.Projected.Sources {
				secrets = append(secrets, s.Secret.Name+" "+s.Secret.Items[0].Key+" "+s.Secret.Items[0].Path)
			}
		}
	}
	if !slices.Equal(secrets, []string{"reader token token", "authority ca.crt ca.crt"}) {
		t.Errorf("the Secrets are %q", secrets)
	}
}

func TestWrongPrometheusIsRefused(t *testing.T) {
	for name, tc := range map[string]struct{ set, want string }{
		"no scheme":       {"prometheus.url=prometheus:9090", "url"},
		"password in URL": {"prometheus.url=http://user:secret@prometheus", "url"},
		"no label":        {"prometheus.namespaceLabel=kubernetes-namespace", "namespaceLabel"},
		"token in values": {"prometheus.bearerToken.token=abc", "token"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, errs, err := helm(t, "template", "assay", ".", "--set="+tc.set); err == nil || !strings.Contains(errs, tc.want) {
				t.Errorf("--set=%s: %v\n%s%s", tc.set, err, errs, out)
			}
		})
	}
}
