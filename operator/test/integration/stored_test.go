package integration

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/testkit/testenv"
)

// Today's CRDs accept the objects that earlier managers have stored, and drop no field of them. A
// manager that takes over writes such statuses again.
func TestStoredObjectsAreAccepted(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	root, err := testenv.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "operator/api/v1alpha1/testdata/stored/*/*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d stored objects: %v", len(files), err)
	}
	slices.SortFunc(files, func(a, b string) int { // Systems first
		return strings.Compare(strings.Replace(a, "/system-", "/0", 1), strings.Replace(b, "/system-", "/0", 1))
	})
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			stored := &unstructured.Unstructured{}
			if text, err = yaml.YAMLToJSON(text); err != nil {
				t.Fatal(err)
			}
			if err := stored.UnmarshalJSON(text); err != nil { // integers stay integers
				t.Fatal(err)
			}
			o := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": stored.GetAPIVersion(), "kind": stored.GetKind(), "metadata": map[string]any{"namespace": ns, "name": stored.GetName()}, "spec": stored.Object["spec"],
			}}
			if err := env.Client.Create(t.Context(), o); err != nil {
				t.Fatalf("create it: %v", err)
			}
			if status, has := stored.Object["status"]; has {
				o.Object["status"] = status
				if err := env.Client.Status().Update(t.Context(), o); err != nil {
					t.Fatalf("write its status: %v", err)
				}
			}
			if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"spec", "status"} {
				if what := lost(part, stored.Object[part], o.Object[part]); what != "" {
					t.Errorf("what was stored is lost or changed: %s", what)
				}
			}
		})
	}
}

// lost names the parts of a stored value that the read value lacks; empty: none. The read value may
// have defaults, too.
func lost(path string, stored, read any) string {
	switch stored := stored.(type) {
	case nil:
		return ""
	case map[string]any:
		now, is := read.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(stored)) {
			if _, has := now[name]; !is || !has {
				return path + "." + name + " is gone"
			}
			if what := lost(path+"."+name, stored[name], now[name]); what != "" {
				return what
			}
		}
		return ""
	case []any:
		now, _ := read.([]any)
		if len(now) != len(stored) {
			return fmt.Sprintf("%s has %d elements and had %d", path, len(now), len(stored))
		}
		for i := range stored {
			if what := lost(fmt.Sprintf("%s[%d]", path, i), stored[i], now[i]); what != "" {
				return what
			}
		}
		return ""
	}
	if stored != read {
		return fmt.Sprintf("%s is %v and was %v", path, read, stored)
	}
	return ""
}
