package integration

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/testkit/testenv"
)

// Measurements that cannot work are rejected when they are applied. The schema or the webhook names
// the problem.
func TestMeasurementsAreRefused(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	system := sample(t, "systems/driver.yaml")
	system.SetNamespace(ns)
	if err := apply(t, env, system); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ path, value, want string }{
		"another namespace": {"spec.measurements.0.query", `'sum(up{namespace="kube-system"})'`, `asks for namespace="kube-system"; an experiment reads metrics of its own namespace only`},
		"not PromQL":        {"spec.measurements.0.query", "sum(up", "spec.measurements[0].query: Invalid value: \"sum(up\": sum(up: not PromQL, at character 7"},
		"no placeholder":    {"spec.measurements.0.query", `'up{a="{{.Pod}}"}'`, "can't evaluate field Pod"},
		"a range":           {"spec.measurements.0.query", `'up[5s]'`, "a number is needed"},
		"no such over":      {"spec.measurements.0.over", "Median", `supported values: "Last", "Mean", "Minimum", "Maximum"`},
		"no name":           {"spec.measurements.0.name", "cpu-seconds", "spec.measurements[0].name"},
		"our column":        {"spec.measurements.1.name", "meanLatency", "a column of Assay's own"},
		"twice":             {"spec.measurements.1.name", "cpuSeconds", "Duplicate value"},
		"an unknown claim":  {"spec.claims.0.expr", `"measurement(name='cpuSecond', fastPath=true) < 1"`, "did you mean cpuSeconds?"},
	} {
		t.Run(name, func(t *testing.T) {
			exp := sample(t, "experiment-measurements.yaml")
			exp.SetNamespace(ns)
			set(t, exp, tc.path, tc.value)
			if err := apply(t, env, exp); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v\nwant %s", err, tc.want)
			}
		})
	}
}
