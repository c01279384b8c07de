package simulation

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/analysis/validity"
)

var (
	known  = flag.Bool("known", false, "put known defects back, one by one, and find each by seeds of its own")
	within = flag.Int("within", 500, "how many seeds may be taken to find a known defect")
	only   = flag.String("only", "", "the one known defect to put back")
)

// defect is a former defect. Changes of the code put it back.
type defect struct {
	name, doc string
	// want is a part of the violation that it causes.
	want    string
	changes []replacement
}

// replacement of text that occurs once in a file.
type replacement struct{ file, old, new string }

var defects = []defect{
	{"R1", "a run whose plan is lost is judged without its faults", "was judged by", []replacement{
		{"operator/internal/analysis/validity/validity.go", "\t{\"plan known\", planKnown},\n", ""},
		{"operator/internal/analysis/validity/validity.go", "\t{\"everything accounted for\", accounted},\n", ""},
	}},
	{"R2", "a pod that is being evicted counts as alive", "unplanned", []replacement{
		{"operator/internal/analysis/validity/live.go", "case p.Deleting && !o.Replaces:", "case false:"},
		{"operator/internal/analysis/validity/podfacts.go", "p.Evicted = evicted(pod)", ""},
	}},
	{"R3", "files that cannot be kept hold the pools for ever", "hours after", []replacement{
		{"operator/internal/engine/cleanup.go", "KeepFiles(ctx, s.subject()); err != nil {", "KeepFiles(ctx, s.subject()); err != nil {\n\t\tif true {\n\t\t\treturn Retry(err)\n\t\t}"},
	}},
	{"R4", "a report that cannot be read is called the environment's fault", "blames the environment", []replacement{
		{"operator/test/simulation/agentclient_test.go", "a.disk.unreadable = true", "a.disk.unreadable = false"},
	}},
	{"R5", "a process that is lost with its container is called an exit", "blames the system", []replacement{
		{"operator/test/simulation/agentreport_test.go", "s.State, s.ExitCode, s.Starts, s.Exited = protocol.StateLost,", "s.State, s.ExitCode, s.Starts, s.Exited = protocol.StateExited,"},
	}},
	{"R7", "an error that comes before every phase has no deadline", "hours after", []replacement{
		{"operator/internal/engine/engine.go", "if !s.outcomeKnown() && s.overdue()", "if false && s.overdue()"},
	}},
	{"no files", "an agent takes whatever files a manager gives it", "ran with", []replacement{
		{
			"operator/test/simulation/agent_test.go", "json.Unmarshal(r.body, &files) != nil || protocol.FilesDigest(files) != wanted",
			"json.Unmarshal(r.body, &files) != nil",
		},
		{"operator/internal/manager/coordinator/server.go", "\tcase !now.directed:\n\t\tnotYet(w)\n", ""},
	}},
}

// The simulation finds defects that people or tests found before. The test puts each defect back in
// an overlay of the tree, and runs seeds until one finds it. Without -known it only checks, without
// a build, whether each defect can still be put back.
func TestKnownDefectsAreFound(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if !*known {
		for _, d := range defects {
			d.putBack(t, root, t.TempDir())
		}
		return
	}
	table := fmt.Sprintf("%-10s %-60s %-8s %s\n", "defect", "what", "seed", "shown by")
	for _, d := range defects {
		if *only != "" && d.name != *only {
			continue
		}
		began := time.Now()
		seed, shown := d.find(t, root)
		if seed == "" {
			t.Errorf("%s (%s) was not found within %d seeds", d.name, d.doc, *within)
			seed = "none"
		}
		line := fmt.Sprintf("%-10s %-60s %-8s %s", d.name, d.doc, seed, shown)
		t.Logf("%s (%v)", line, time.Since(began).Round(time.Second))
		table += line + "\n"
	}
	fmt.Print(table)
}

// The second change of a file undid the first one. So only half of R1 was put back, and none of 500
// seeds found it.
func TestADefectIsPutBackByAllOfItsChanges(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range defects {
		replaced := d.putBack(t, root, t.TempDir())
		for _, c := range d.changes {
			broken, err := os.ReadFile(replaced[filepath.Join(root, c.file)])
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(broken), c.new) || !strings.Contains(c.new, c.old) && strings.Contains(string(broken), c.old) {
				t.Errorf("%s: %s still holds %q", d.name, c.file, c.old)
			}
		}
	}
}

// lostPlan is the first seed that finds R1. Its history deletes the prepare step's Secret, and ends
// the manager in the run. The next manager cannot know the planned faults and links.
const lostPlan = 5

// The test puts R1 back by removing the two checks that fixed it. If histories have changed and
// this seed no longer finds R1, make sim-known KNOWN=R1 names another seed.
func TestASeedFindsARunWhosePlanIsLost(t *testing.T) {
	if h := play(lostPlan, false); len(h.violations) > 0 {
		t.Fatalf("seed %d without the defect: %q", lostPlan, h.violations)
	}
	whole := validity.AfterRun
	defer func() { validity.AfterRun = whole }()
	validity.AfterRun = slices.DeleteFunc(slices.Clone(whole), func(c validity.Check) bool {
		return c.Name == "plan known" || c.Name == "everything accounted for"
	})
	if n := len(whole) - len(validity.AfterRun); n != 2 {
		t.Fatalf("%d checks are dropped, want 2", n)
	}
	h := play(lostPlan, false)
	if !slices.ContainsFunc(h.violations, func(v string) bool { return strings.Contains(v, "counts, and was judged by 0 of its 1 actions") }) {
		t.Errorf("seed %d with the defect, disturbed by %q: %q", lostPlan, h.disturbed, h.violations)
	}
}

var found = regexp.MustCompile(`seed (\d+), disturbed by .*\n\s+(.*)`)

// putBack writes the changed files of the defect into a folder, and returns the files that they
// replace.
func (d defect) putBack(t *testing.T, root, dir string) map[string]string {
	t.Helper()
	replaced := map[string]string{}
	for i, c := range d.changes {
		from := filepath.Join(root, c.file)
		broken := replaced[from] // by another change of the same file
		if broken == "" {
			broken = filepath.Join(dir, fmt.Sprintf("broken%d.go", i))
			replaced[from] = broken
		} else {
			from = broken
		}
		source, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), c.old); n != 1 {
			t.Fatalf("%s: %s holds %q %d times, want once", d.name, c.file, c.old, n)
		}
		if err := os.WriteFile(broken, []byte(strings.Replace(string(source), c.old, c.new, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return replaced
}

// find runs seeds on the code with the defect.
func (d defect) find(t *testing.T, root string) (seed, shown string) {
	t.Helper()
	dir := t.TempDir()
	replaced := d.putBack(t, root, dir)
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "simulation.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build with %s: %v\n%s", d.name, err, out)
	}
	out, err := exec.CommandContext(t.Context(), binary, "-test.run=^TestSeeds$", "-test.timeout=0", "-until-bad", fmt.Sprintf("-seeds=%d", *within), "-want="+d.want).CombinedOutput()
	if err == nil {
		return "", ""
	}
	m := found.FindStringSubmatch(string(out))
	if m == nil {
		t.Fatalf("%s: %v\n%s", d.name, err, out)
	}
	return m[1], m[2]
}
