package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// notes is what helm says after an installation. The verb helm template leaves it out, and Helm 3
// wants a cluster even for a dry run. So a copy of the chart has it as an object.
func notes(t *testing.T, flags ...string) string {
	t.Helper()
	chart := t.TempDir()
	if err := os.CopyFS(chart, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(chart, "templates", "NOTES.txt"), filepath.Join(chart, "notes.txt")); err != nil {
		t.Fatal(err)
	}
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\ndata:\n  notes: {{ tpl (.Files.Get \"notes.txt\") . | toJson }}\n"
	if err := os.WriteFile(filepath.Join(chart, "templates", "said.yaml"), []byte(object), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, err := helm(t, append([]string{"template", "assay", chart, "--namespace=assay-system", "--show-only=templates/said.yaml"}, flags...)...)
	if err != nil {
		t.Fatalf("helm template: %v\n%s", err, errs)
	}
	var said corev1.ConfigMap
	if err := yaml.UnmarshalStrict([]byte(out), &said); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	return said.Data["notes"]
}

// Anyone who may not have privileged namespaces was told about no other way.
func TestNotesOfferBothProfiles(t *testing.T) {
	for namespace, flags := range map[string][]string{"papers": nil, "lab": {"--set=namespaces={lab}"}} {
		said := notes(t, flags...)
		if created := strings.Contains(said, "kubectl create namespace "+namespace+"\n"); created != (flags == nil) {
			t.Errorf("a namespace is to be created: %t; it is the installation's: %t", created, flags != nil)
		}
		for _, want := range []string{
			"kubectl label namespace " + namespace + " pod-security.kubernetes.io/enforce=privileged\n",
			"pod-security.kubernetes.io/enforce=restricted", "--set network.shaping=None", "docs/guide/restricted.md",
			"kubectl assay run -f experiments/failure-fp.yaml --profile smoke --wait -n " + namespace + "\n",
		} {
			if !strings.Contains(said, want) {
				t.Errorf("the notes do not say %q:\n%s", want, said)
			}
		}
		for line := range strings.Lines(said) {
			if len(strings.TrimRight(line, "\n")) > 104 {
				t.Errorf("a line is too long for a terminal: %s", line)
			}
		}
	}
}
