package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"assay.dev/assay/operator/api/v1alpha1"
)

// overlay names images like the overlay of docs/guide/install.md. The last patch is for nodes that
// cannot grant BPF, as make deploy detects.
const overlay = `resources: [../../config/default]
images:
- {name: assay/manager, newTag: %s}
patches:
- target: {kind: Deployment, name: assay-manager}
  patch: |
    - {op: replace, path: /spec/template/spec/containers/0/args/0, value: --agent-image=%s}
%s`

// Without Helm, Assay is installed by kubectl alone, runs an experiment, and is removed by kubectl.
func TestInstalledWithoutHelm(t *testing.T) {
	o := newOwner(t)
	t.Cleanup(func() { o.restore(t) })
	const ns = "install-kubectl"
	o.makeNamespace(t, ns)
	folder := o.overlay(t)
	o.run(t, filepath.Join(root, "hack", "deploy.sh"), "remove")

	o.run(t, "kubectl", "apply", "--server-side", "-k", folder)
	o.run(t, "kubectl", "rollout", "status", "deployment/assay-manager", "-n", namespace, "--timeout=5m")
	o.takenOver(t)
	exp := o.apply(t, ns, func(e *v1alpha1.Experiment) { e.Spec.Sweep = nil })
	o.complete(t, exp, 1)
	results := o.results(t, ns)

	o.run(t, "kubectl", "delete", "experiments.assay.dev", "--all", "--all-namespaces", "--timeout=5m")
	o.run(t, "kubectl", "delete", "-k", folder, "--timeout=5m")
	eventually(t, patience, "kubectl delete -k leaves nothing", func(context.Context) (bool, error) {
		left, err := o.left(t)
		return err == nil && len(left) == 0, errors.Join(err, fmt.Errorf("%v", left))
	})
	if after := o.results(t, ns); len(results) == 0 || !slices.Equal(after, results) {
		t.Errorf("results before the removal %v, after it %v", results, after)
	}
}

// overlay writes an overlay with the images of the installation that was found.
func (o *owner) overlay(t *testing.T) (folder string) {
	t.Helper()
	d, err := o.clientset.AppsV1().Deployments(namespace).Get(t.Context(), "assay-manager", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	manager := d.Spec.Template.Spec.Containers[0]
	_, tag, tagged := strings.Cut(manager.Image, ":")
	agent, named := strings.CutPrefix(manager.Args[0], "--agent-image=")
	if !tagged || !named {
		t.Fatalf("the managers run %s %v", manager.Image, manager.Args)
	}
	withoutBPF := ""
	if sets.New(manager.Args...).Has("--without-bpf") {
		withoutBPF = "    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --without-bpf}\n"
	}
	// kubectl takes a base by a relative path only.
	if folder, err = os.MkdirTemp(filepath.Join(root, ".work"), "overlay-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	text := fmt.Sprintf(overlay, tag, agent, withoutBPF)
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}
