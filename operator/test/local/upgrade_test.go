package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/results"
)

// before is the version before this one, and the folder with its programs, its images and its tree.
type before struct{ dir, version string }

// theVersionBefore is what hack/cluster/version-before.sh has built.
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

// An owner upgrades the managers while trials run, whose pods have the agents of the version
// before. These carry out every kind of fault that one machine has.
func TestAnOldAgentUnderThisManager(t *testing.T) {
	b := theVersionBefore(t)
	this := ours(t)
	this.images = filepath.Join(b.dir, "images") + "," + this.images // the first that has an image is taken
	trial := everyFault(t, this, "../../..")
	if trial.Software.Manager == b.version {
		t.Errorf("the manager is of version %s, which is the version before", trial.Software.Manager)
	}
	for _, p := range trial.Pods {
		if p.Agent != b.version {
			t.Errorf("the agent of pod %s is of version %q, want %q", p.Name, p.Agent, b.version)
		}
	}
}

// An owner rolls an upgrade back while trials run, whose pods have agents of this version.
func TestThisAgentUnderAnOldManager(t *testing.T) {
	b := theVersionBefore(t)
	old := ours(t)
	old.program = filepath.Join(b.dir, "kubectl-assay")
	trial := everyFault(t, old, filepath.Join(b.dir, "tree"))
	if trial.Software.Manager != b.version {
		t.Errorf("the manager is of version %q, want %q", trial.Software.Manager, b.version)
	}
	for _, p := range trial.Pods {
		if p.Agent == b.version || p.Agent == "" {
			t.Errorf("the agent of pod %s is of version %q, want another than that of the manager", p.Name, p.Agent)
		}
	}
}

// everyFault runs one trial by a build, with the experiment and the System of a tree. The trial is
// valid only if each fault was carried out, confirmed and ended.
func everyFault(t *testing.T, b build, tree string) *results.Trial {
	t.Helper()
	dir := t.TempDir()
	out, said, code := b.run(t, dir, "run", "--wait", "-f", filepath.Join(tree, "operator/test/local/testdata/faults.yaml"), "-f", systemWithARole(t, tree))
	if code != 0 || !strings.Contains(out, "1 of 1 planned trial valid") {
		t.Fatalf("exit code %d\n%s\n%s", code, said, out)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left after the run: %q", left)
	}
	trial := validTrial(t, filepath.Join(dir, "faults", "configmaps"))
	kinds := map[string]bool{}
	for i := range trial.Faults {
		kinds[trial.Faults[i].Kind] = true
	}
	for _, kind := range []string{"Kill", "Revive", "Pause", "Resume", "Cut", "Heal", "Degrade", "Restore"} {
		if !kinds[kind] {
			t.Errorf("no pod did %s", kind)
		}
	}
	if len(trial.Pods) < 8 || trial.Summary.Counters.Committed == 0 {
		t.Errorf("the results have %d pods and %d transactions", len(trial.Pods), trial.Summary.Counters.Committed)
	}
	return trial
}
