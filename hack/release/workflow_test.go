package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The workflow runs the scripts that the dry run runs, with actions of a commit that cannot change,
// and with no right that its jobs do not name.
func TestWorkflowIsTheDryRun(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, ".github", "workflows", "release.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var w struct {
		Permissions map[string]string
		Jobs        map[string]struct {
			Permissions map[string]string
			Steps       []struct{ Name, Uses, Run string }
		}
	}
	if err := yaml.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
		t.Errorf("jobs that name no rights have %v", w.Permissions)
	}
	pinned := regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40}$`)
	var run strings.Builder
	for name, job := range w.Jobs {
		for _, s := range job.Steps {
			if s.Uses != "" && !pinned.MatchString(s.Uses) {
				t.Errorf("job %s uses %s, which can change: pin it to a commit", name, s.Uses)
			}
			run.WriteString(s.Run + "\n")
		}
	}
	dry, err := os.ReadFile("dryrun.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range []string{"hack/release/build.sh", "hack/release/push.sh"} {
		if !strings.Contains(run.String(), script) || !strings.Contains(string(dry), strings.TrimPrefix(script, "hack/")) {
			t.Errorf("workflow and dry run do not both run %s", script)
		}
	}
}

// The manifest takes archives by their names, in order, with the checksum of what is there.
func TestManifest(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"kubectl-assay-linux-amd64.tar.gz": "one", "kubectl-assay-darwin-arm64.tar.gz": "two", "other.txt": "three"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(dir, "v0.2.0", "https://example.org/v0.2.0/", filepath.Join("..", "..", ".krew.yaml")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, manifest))
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Spec struct {
			Version   string
			Platforms []struct{ URI, SHA256 string }
		}
	}
	if err := yaml.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	const sumOfTwo = "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"
	if p := m.Spec.Platforms; m.Spec.Version != "v0.2.0" || len(p) != 2 || p[0].URI != "https://example.org/v0.2.0/kubectl-assay-darwin-arm64.tar.gz" || p[0].SHA256 != sumOfTwo {
		t.Errorf("the manifest is\n%s", text)
	}
	sums, err := os.ReadFile(filepath.Join(dir, checksums))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(sums), "\n") != 4 || !strings.Contains(string(sums), sumOfTwo+"  kubectl-assay-darwin-arm64.tar.gz\n") {
		t.Errorf("the checksums are\n%s", sums)
	}
	if err := run(t.TempDir(), "v0.2.0", "", ".krew.yaml"); err == nil || !strings.Contains(err.Error(), "no archive") {
		t.Errorf("a release without archives: %v", err)
	}
}
