// Package integration tests user stories against a real API server: rejected objects with their
// messages, accepted objects, and the cost of many experiments.
package integration

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/experiment/chaosmesh"
	"assay.dev/assay/operator/internal/experiment/monitoring"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/webhook"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

var checks = plan.Checks{Templates: render.Check, Claim: claims.Check, Reads: claims.Reads, Shapes: claims.Shapes, Functions: claims.FunctionsOf, Measurement: monitoring.Check, UnusedParameters: true}

func TestMain(m *testing.M) {
	code := testenv.Run(m, testenv.Options{Webhooks: func(mgr ctrl.Manager) error {
		checks.Capabilities = func(s *v1alpha1.SystemSpec) error { return plan.CheckCapabilities(s, []string{"IPC_LOCK"}) }
		checks.ChaosMesh = (&chaosmesh.Installation{Enabled: true, Mapper: mgr.GetRESTMapper()}).Check
		return webhook.Setup(mgr, mgr.GetAPIReader(), checks, render.ParseTemplate)
	}})
	if program != "" {
		_ = os.RemoveAll(filepath.Dir(program)) // it is in the folder of temporary files
	}
	os.Exit(code)
}

// program is the manager's program; empty: no test has asked for it yet.
var (
	program     string
	programOnce sync.Once
)

// managerProgram builds the manager, once for all tests.
func managerProgram(t testing.TB) string {
	t.Helper()
	programOnce.Do(func() {
		dir, err := os.MkdirTemp("", "assay-manager-")
		if err != nil {
			t.Fatal(err)
		}
		program = filepath.Join(dir, "manager")
		if out, err := exec.Command("go", "build", "-o", program, "assay.dev/assay/operator/cmd/manager").CombinedOutput(); err != nil {
			t.Fatalf("build the manager: %v\n%s", err, out)
		}
	})
	return program
}

// samples reads a file of config/samples.
func sample(t testing.TB, name string) *unstructured.Unstructured {
	t.Helper()
	root, err := testenv.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "config", "samples", name))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &obj.Object); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return obj
}

// set puts a YAML value at a path such as "spec.sweep.0.values". "-" as the last element appends to
// a list, and an empty value removes a field.
func set(t testing.TB, obj *unstructured.Unstructured, path, value string) {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(value), &v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	obj.Object = put(t, obj.Object, strings.Split(path, "."), v, value == "").(map[string]any)
}

func put(t testing.TB, in any, path []string, v any, remove bool) any {
	t.Helper()
	if len(path) == 0 {
		return v
	}
	switch node := in.(type) {
	case []any:
		if path[0] == "-" {
			return append(node, v)
		}
		i := int(path[0][0] - '0')
		node[i] = put(t, node[i], path[1:], v, remove)
		return node
	case map[string]any:
		if remove && len(path) == 1 {
			delete(node, path[0])
			return node
		}
		node[path[0]] = put(t, node[path[0]], path[1:], v, remove)
		return node
	case nil:
		if path[0] == "-" {
			return []any{v}
		}
		return map[string]any{path[0]: put(t, nil, path[1:], v, remove)}
	}
	t.Fatalf("no path %v in %v", path, in)
	return nil
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func fromJSON(t testing.TB, text []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatal(err)
	}
}
