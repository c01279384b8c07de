package house

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// withKubernetes are the modules that the first `make demo-kind` builds with Kubernetes' client
// libraries: those of Assay, of the node image, and of helm.
var withKubernetes = []string{".", "hack/without-registry/node-image/hyper", "hack/cluster/helm"}

// Go compiles a package again for each set of versions of its dependencies. If the three modules
// differ in one of these, a machine with empty caches compiles Kubernetes' client libraries once
// more. That takes more than a minute.
func TestModulesShareKubernetesLibraries(t *testing.T) {
	versions := map[string]map[string]string{} // by required module, then by module of ours
	for _, dir := range withKubernetes {
		for path, version := range required(t, dir) {
			if versions[path] == nil {
				versions[path] = map[string]string{}
			}
			versions[path][dir] = version
		}
	}
	shared := run(t, ".", "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}",
		"k8s.io/client-go/kubernetes", "k8s.io/client-go/tools/clientcmd", "k8s.io/client-go/dynamic")
	seen := map[string]bool{}
	for path := range strings.FieldsSeq(shared) {
		if seen[path] {
			continue
		}
		seen[path] = true
		for _, dir := range withKubernetes[1:] {
			if ours, theirs := versions[path]["."], versions[path][dir]; ours != theirs {
				t.Errorf("%s is %q in go.mod, and %q in %s/go.mod; take the newer in both: go get %s@VERSION", path, ours, theirs, dir, path)
			}
		}
	}
	if len(seen) < 20 || !seen["k8s.io/client-go"] {
		t.Errorf("go list names %d modules below client-go: %v; want 20 or more", len(seen), seen)
	}
}

// required returns the version of each module that a go.mod requires, after its replacements.
func required(t *testing.T, dir string) map[string]string {
	t.Helper()
	type module struct{ Path, Version string }
	var file struct {
		Require []module
		Replace []struct{ Old, New module }
	}
	if err := json.Unmarshal([]byte(run(t, dir, "go", "mod", "edit", "-json")), &file); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, m := range file.Require {
		versions[m.Path] = m.Version
	}
	for _, r := range file.Replace {
		versions[r.Old.Path] = r.New.Version
	}
	return versions
}

func run(t *testing.T, dir string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = filepath.Join("../../..", dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v in %s: %v", command, dir, err)
	}
	return string(out)
}
