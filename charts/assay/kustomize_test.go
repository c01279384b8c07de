package chart

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// objectsOf are the objects of a text, by kind and name, without what Helm says of itself.
func objectsOf(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, doc := range regexp.MustCompile(`(?m)^---\n`).Split(text, -1) {
		o := unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if o.Object == nil {
			continue
		}
		withoutHelm(o.Object)
		all[o.GetKind()+"/"+o.GetNamespace()+"/"+o.GetName()] = o.Object
	}
	return all
}

// withoutHelm drops labels and annotations by which Helm knows its objects, wherever they are.
func withoutHelm(fields map[string]any) {
	for key, value := range fields {
		inner, _ := value.(map[string]any)
		if key == "labels" || key == "annotations" {
			for name, is := range inner {
				if strings.HasPrefix(name, "helm.sh/") || is == "Helm" {
					delete(inner, name)
				}
			}
		}
		withoutHelm(inner)
	}
}

// Without Helm, users apply the same objects: kubectl apply -k config/default.
func TestKustomizeBaseIsTheChart(t *testing.T) {
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "kubectl", "kustomize", "../../config/default")
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kubectl kustomize: %v\n%s; run make test-chart, which provides kubectl", err, errs.String())
	}
	got := objectsOf(t, string(out))
	rendered, stderr, err := helm(t, "template", "assay", ".", "--namespace=assay-system", "--no-hooks")
	if err != nil {
		t.Fatalf("helm template: %v\n%s", err, stderr)
	}
	want := objectsOf(t, rendered)
	want["Namespace//assay-system"] = map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "assay-system"}}
	// The kinds carry labels of the release in the chart, and are as generated in the base.
	for name, o := range want {
		if strings.HasPrefix(name, "CustomResourceDefinition/") {
			delete(o["metadata"].(map[string]any), "labels")
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config/default is not the chart with default values: run make manager-manifest (-chart +base):\n%s", diff)
	}
	// docs/guide/install.md has a patch of this argument.
	args, _, _ := unstructured.NestedSlice(got["Deployment/assay-system/assay-manager"], "spec", "template", "spec", "containers")
	if first := args[0].(map[string]any)["args"].([]any)[0].(string); !strings.HasPrefix(first, "--agent-image=") {
		t.Errorf("the manager's first argument is %s, and overlays replace the agent's image there", first)
	}
	if bytes.Contains(out, []byte("helm")) {
		t.Error("the base speaks of Helm, which its users do not have")
	}
}
