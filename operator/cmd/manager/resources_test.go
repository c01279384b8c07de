package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/experiment/render"
)

// The chart gives agents the same resources as a manager without this flag.
func TestTheChartsAgentsAreTheManagers(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "charts", "assay", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Agent struct{ Resources corev1.ResourceRequirements }
	}
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(render.DefaultAgentResources(), values.Agent.Resources); diff != "" {
		t.Errorf("resources of an agent (-manager +chart):\n%s", diff)
	}
}

func TestResourcesFlag(t *testing.T) {
	for name, tc := range map[string]struct {
		text    string
		want    corev1.ResourceRequirements
		wantErr string
	}{
		"nothing": {text: `{}`},
		"both": {text: `{"requests":{"cpu":"20m"},"limits":{"cpu":1,"memory":"1Gi"}}`, want: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("20m")},
			Limits:   corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")},
		}},
		"not JSON":                  {text: `cpu=20m`, wantErr: "want JSON such as"},
		"two objects":               {text: `{} {}`, wantErr: "something follows"},
		"an unknown field":          {text: `{"request":{"cpu":"20m"}}`, wantErr: `unknown field "request"`},
		"no amount":                 {text: `{"limits":{"memory":"much"}}`, wantErr: "quantities must match"},
		"another resource":          {text: `{"limits":{"nvidia.com/gpu":1}}`, wantErr: "limits.nvidia.com/gpu: want cpu or memory"},
		"nothing of a resource":     {text: `{"requests":{"cpu":0}}`, wantErr: "requests.cpu is 0; it must be above 0"},
		"a request above its limit": {text: `{"requests":{"memory":"2Gi"},"limits":{"memory":"1Gi"}}`, wantErr: "requests.memory is 2Gi; it must be at most limits.memory, 1Gi"},
		"a request beside its limit": {text: `{"requests":{"memory":"1Gi"},"limits":{"memory":"1Gi"}}`, want: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"memory": resource.MustParse("1Gi")}, Limits: corev1.ResourceList{"memory": resource.MustParse("1Gi")},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			before := render.DefaultAgentResources()
			got := resourcesFlag{before}
			err := got.Set(tc.text)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error %v, want %q", err, tc.wantErr)
				}
				tc.want = before
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.ResourceRequirements); diff != "" {
				t.Errorf("the resources (-want +got):\n%s", diff)
			}
			var again resourcesFlag
			if err := again.Set(got.String()); err != nil {
				t.Errorf("what the flag writes, %s, it does not read: %v", got.String(), err)
			}
		})
	}
}
