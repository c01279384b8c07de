package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The workflow runs the scripts of the dry run. Its actions are pinned to commits, and its jobs
// name every right.
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

// Every workflow builds with the Go of go.mod, uses actions that cannot change, and runs existing
// targets of make. Sudo passes on the variables that a step sets for its command. actionlint checks
// expressions and permissions (make lint).
func TestWorkflows(t *testing.T) {
	root := filepath.Join("..", "..")
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%d workflows, %v; want two at least", len(files), err)
	}
	targets := targetsOfMake(t, root)
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	toolchain := regexp.MustCompile(`(?m)^toolchain go(.*)$`).FindSubmatch(gomod)
	if toolchain == nil {
		t.Fatal("go.mod names no toolchain")
	}
	pinned := regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40}$`)
	called := regexp.MustCompile(`\bmake "?([a-z$][\w$-]*)`)
	installs := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var w struct {
			Jobs map[string]struct {
				Strategy struct{ Matrix struct{ Lane []string } }
				Steps    []struct {
					Name, Uses, Run string
					With            map[string]any
					Env             map[string]string
				}
			}
		}
		if err := yaml.Unmarshal(text, &w); err != nil {
			t.Fatal(err)
		}
		for name, job := range w.Jobs {
			for _, s := range job.Steps {
				for _, v := range clearedBySudo(s.Run, s.Env) {
					t.Errorf("%s: job %s: sudo clears %s before its command", file, name, v)
				}
				if s.Uses != "" && !pinned.MatchString(s.Uses) {
					t.Errorf("%s: job %s uses %s, which can change: pin it to a commit", file, name, s.Uses)
				}
				if strings.HasPrefix(s.Uses, "actions/setup-go@") {
					v, _ := s.With["go-version"].(string)
					installs++
					if v != string(toolchain[1]) {
						t.Errorf("%s: job %s installs Go %q, and go.mod names go%s", file, name, v, toolchain[1])
					}
				}
				for _, m := range called.FindAllStringSubmatch(s.Run, -1) {
					if m[1] == "test-$LANE" {
						for _, lane := range job.Strategy.Matrix.Lane {
							if !targets["test-"+lane] {
								t.Errorf("%s: job %s runs make test-%s, which does not exist", file, name, lane)
							}
						}
					} else if !targets[m[1]] {
						t.Errorf("%s: job %s runs make %s, which does not exist", file, name, m[1])
					}
				}
			}
		}
	}
	if installs == 0 {
		t.Error("no job installs Go")
	}
}

// clearedBySudo lists the variables of a step that its command should see and does not: sudo keeps
// only those of --preserve-env. One that the step's own shell expands is not needed behind sudo.
func clearedBySudo(run string, env map[string]string) (cleared []string) {
	if !strings.Contains(run, "sudo ") {
		return nil
	}
	kept := regexp.MustCompile(`--preserve-env=([\w,]+)`).FindStringSubmatch(run)
	for name := range env {
		if (len(kept) < 2 || !slices.Contains(strings.Split(kept[1], ","), name)) && !strings.Contains(run, "$"+name) {
			cleared = append(cleared, name)
		}
	}
	return cleared
}

func TestClearedBySudo(t *testing.T) {
	env := map[string]string{"LANE": "kind", "NODE_SOURCE": "pull"}
	for run, want := range map[string][]string{
		`make "test-$LANE"`: nil,
		`sudo --preserve-env=PATH env HOME="$HOME" make "test-$LANE"`:             {"NODE_SOURCE"},
		`sudo env HOME="$HOME" make "test-$LANE"`:                                 {"NODE_SOURCE"},
		`sudo --preserve-env=PATH,NODE_SOURCE env HOME="$HOME" make "test-$LANE"`: nil,
	} {
		if got := clearedBySudo(run, env); !slices.Equal(got, want) {
			t.Errorf("%s: %v are cleared, want %v", run, got, want)
		}
	}
}

func targetsOfMake(t *testing.T, root string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "hack", "make", "*.mk"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^([a-z][\w-]*):`).FindAllSubmatch(text, -1) {
			found[string(m[1])] = true
		}
	}
	return found
}

// A job begins with a clean clone, which has no scratch directory. make licences passes there. The
// test also shows its output for a program with a forbidden licence.
func TestLicencesInACleanClone(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, program, want string
		fails               bool
	}{
		{name: "allowed", program: "exit 0"},
		{name: "forbidden", program: "echo 'W1127 no file' >&2; echo 'example.com/p has AGPL-3.0' >&2; exit 1", want: "example.com/p has AGPL-3.0", fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			clone, bin := t.TempDir(), t.TempDir()
			for _, name := range []string{"Makefile", "hack"} {
				if err := os.Symlink(filepath.Join(root, name), filepath.Join(clone, name)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(bin, "go"), []byte("#!/bin/sh\n"+c.program+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "make", "licences")
			cmd.Dir, cmd.Env = clone, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails || !strings.Contains(string(out), c.want) || strings.Contains(string(out), "W1127") || strings.Contains(string(out), "No such file") {
				t.Errorf("make licences: %v\n%s", err, out)
			}
		})
	}
}

// The manifest lists archives by name, in order, with the checksums of the files.
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
