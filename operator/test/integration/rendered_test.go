package integration

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/testkit/testenv"
)

// The API server accepts the chart's objects for some sets of values: defaults, an owner with
// little trust, and stores. A test in operator/test/install has the set with everything, since that
// needs kinds of other programs.
func TestServerTakesWhatIsRendered(t *testing.T) {
	env := testenv.Get(t)
	root, err := testenv.Root()
	if err != nil {
		t.Fatal(err)
	}
	helm, err := exec.LookPath("helm")
	if err != nil {
		if helm, err = exec.LookPath(filepath.Join(root, ".work", "bin", "helm")); err != nil {
			t.Fatal("helm is not on PATH: hack/cluster/tools.sh helm builds it")
		}
	}
	chart := filepath.Join(root, "charts", "assay")
	for _, name := range []string{"assay-system", "papers", "lab"} { // namespaces that the values name
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := env.Client.Create(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
	}
	for name, flags := range map[string][]string{
		"default":  nil,
		"hardened": {"--values=" + chart + "/testdata/hardened.yaml"},
		"stores":   {"--values=" + chart + "/testdata/stores.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			// Hooks have an order: a pod whose account does not exist yet would be rejected. helm
			// test makes the real ones.
			cmd := exec.CommandContext(t.Context(), helm, append([]string{"template", "assay", chart, "-n", "assay-system", "--no-hooks"}, flags...)...)
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Run(); err != nil {
				t.Fatalf("helm template: %v\n%s", err, errs.String())
			}
			taken := 0
			for documents := yaml.NewYAMLOrJSONDecoder(&out, 4096); ; {
				obj := &unstructured.Unstructured{}
				if err := documents.Decode(&obj.Object); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				if len(obj.Object) == 0 {
					continue
				}
				if obj.GetKind() == "ValidatingWebhookConfiguration" {
					obj.SetName("rendered") // the webhooks of this package have this name already, and another address
				}
				if namespaced, err := env.Client.IsObjectNamespaced(obj); err != nil {
					t.Errorf("%s %s: %v", obj.GetKind(), obj.GetName(), err)
					continue
				} else if namespaced && obj.GetNamespace() == "" {
					obj.SetNamespace("assay-system")
				}
				err := env.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.DryRunAll, client.ForceOwnership, client.FieldOwner("test"))
				if err != nil {
					t.Errorf("%s %s: %v", obj.GetKind(), obj.GetName(), err)
					continue
				}
				taken++
			}
			if taken < 17 {
				t.Errorf("%d objects were taken, want at least 17", taken)
			}
		})
	}
}
