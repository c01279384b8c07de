package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/testkit/testenv"
)

// The examples of docs/spec are accepted; the System is created first.
func TestDocumentedExamplesAreAccepted(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	root, err := testenv.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"system.md", "experiment.md"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", "spec", file))
		if err != nil {
			t.Fatal(err)
		}
		examples := strings.Split(string(text), "```yaml\n")[1:]
		if len(examples) == 0 {
			t.Errorf("docs/spec/%s has no example", file)
		}
		for _, example := range examples {
			example, _, _ = strings.Cut(example, "```")
			if strings.HasPrefix(example, "# ") {
				continue // a part of an object; hack/docs compares it with the schema
			}
			obj := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(example), &obj.Object); err != nil {
				t.Fatalf("docs/spec/%s: %v", file, err)
			}
			obj.SetNamespace(ns)
			if err := apply(t, env, obj); err != nil {
				t.Errorf("docs/spec/%s: %v", file, err)
			}
		}
	}
}
