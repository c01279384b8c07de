package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/results"
)

// before is the earlier version, and the folder with its programs, its images and its tree.
type before struct{ dir, version string }

// theVersionBefore is the build of hack/cluster/version-before.sh.
func theVersionBefore(t *testing.T) before {
	t.Helper()
	dir := os.Getenv("ASSAY_VERSION_BEFORE")
	if dir == "" {
		t.Skip("there is no version before this one: the clone lacks the history that hack/cluster/version-before.sh needs")
	}
	version, err := os.ReadFile(filepath.Join(dir, "version"))
	if err != nil {
		t.Fatal(err)
	}
	return before{dir, strings.TrimSpace(string(version))}
}

// An owner upgrades the managers while trials run. The pods of these trials have the agents of the
// earlier version. These agents carry out every kind of fault that one machine supports.
func TestAnOldAgentUnderThisManager(t *testing.T) {
	b := theVersionBefore(t)
	this := ours(t)
	this.images = filepath.Join(b.dir, "images") + "," + this.images // the first folder that has an image counts
	for _, trial := range everyFault(t, this, "../../..") {
		if trial.Software.Manager == b.version {
			t.Errorf("the manager is of version %s, which is the version before", trial.Software.Manager)
		}
		for _, p := range trial.Pods {
			if p.Agent != b.version {
				t.Errorf("the agent of pod %s is of version %q, want %q", p.Name, p.Agent, b.version)
			}
		}
	}
}

// An owner rolls an upgrade back while trials run. The pods of these trials have agents of this
// version.
func TestThisAgentUnderAnOldManager(t *testing.T) {
	b := theVersionBefore(t)
	old := ours(t)
	old.program = filepath.Join(b.dir, "kubectl-assay")
	for _, trial := range everyFault(t, old, filepath.Join(b.dir, "tree")) {
		if trial.Software.Manager != b.version {
			t.Errorf("the manager is of version %q, want %q", trial.Software.Manager, b.version)
		}
		for _, p := range trial.Pods {
			if p.Agent == b.version || p.Agent == "" {
				t.Errorf("the agent of pod %s is of version %q, want another than that of the manager", p.Name, p.Agent)
			}
		}
	}
}

// everyFault runs one trial of pods and one of machines by a build, with the experiments and the
// System of a tree. A trial is valid only if each fault was carried out, confirmed and ended.
func everyFault(t *testing.T, b build, tree string) []*results.Trial {
	t.Helper()
	files := filepath.Join(tree, "operator", "test", "local", "testdata")
	pods := validRun(t, b, "faults", "1 of 1 planned trial valid", filepath.Join(files, "faults.yaml"), systemWithARole(t, tree))
	if len(pods.Pods) < 8 || pods.Summary.Counters.Committed == 0 {
		t.Errorf("the results have %d pods and %d transactions", len(pods.Pods), pods.Summary.Counters.Committed)
	}
	machines := validRun(t, b, "marks", "4 of 4 planned trials valid", filepath.Join(files, "marks.yaml"))
	if len(machines.Rows) != 4 || len(machines.Sessions) == 0 {
		t.Errorf("the script left %d rows and %d sessions", len(machines.Rows), len(machines.Sessions))
	}
	return []*results.Trial{pods, machines}
}

// validRun runs an experiment whose one trial must be valid, with all kinds of faults.
func validRun(t *testing.T, b build, experiment, want string, files ...string) *results.Trial {
	t.Helper()
	dir := t.TempDir()
	args := []string{"run", "--wait"}
	for _, f := range files {
		args = append(args, "-f", f)
	}
	out, said, code := b.run(t, dir, args...)
	if code != 0 || !strings.Contains(out, want) {
		t.Fatalf("%s: exit code %d\n%s\n%s", experiment, code, said, out)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("%s: left after the run: %q", experiment, left)
	}
	trial := validTrial(t, filepath.Join(dir, experiment, "configmaps"))
	kinds := map[string]bool{}
	for i := range trial.Faults {
		kinds[trial.Faults[i].Kind] = true
	}
	for _, kind := range []string{"Kill", "Revive", "Pause", "Resume", "Cut", "Heal", "Degrade", "Restore"} {
		if !kinds[kind] {
			t.Errorf("%s: no pod did %s", experiment, kind)
		}
	}
	return trial
}
