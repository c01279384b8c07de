// Package extend adds one extension of each kind in docs/extending.md to a copy of the tree: a kind
// of fault, a result store, a System, a parser, a verb. It builds the copy, runs small tests there,
// and counts the files that an author changes. It has tests only.
package extend

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../../.." // of the repository

// addition is the change of an author to the tree.
type addition struct {
	// lines to add to files of the tree, each below an existing line.
	lines map[string][]line
	// most files that an author writes or edits. Tests and generated files do not count.
	most int
	// check has commands, by the folder of the copy in which they run.
	check []command
}

type line struct{ below, add string }

type command struct {
	dir  string
	args []string
}

// additions by their name, which is also the name of the file in testdata with the new files.
var additions = map[string]addition{
	"fault": {
		lines: map[string][]line{"operator/api/v1alpha1/fault_types.go": {
			{"	Pause *Pause `json:\"pause,omitempty\"`\n", "\n	// stutter pauses replicas, each for itself.\n	// +optional\n	Stutter *Stutter `json:\"stutter,omitempty\"`\n"},
			{"[has(self.nodeKill), has(self.pause), ", "has(self.stutter), "},
		}},
		most: 2,
		check: []command{
			{".", []string{"go", "tool", "-modfile=hack/tools/go.mod", "controller-gen", "object", "crd", "paths=./operator/api/...", "output:crd:dir=crds"}},
			{".", []string{"grep", "stutter:", "crds/assay.dev_experiments.yaml"}},
			{".", []string{"go", "test", "./operator/internal/experiment/fault", "-run", "^(TestEveryFieldIsAKind|TestStutter)$"}},
		},
	},
	"store": {
		lines: map[string][]line{"operator/cmd/manager/stores.go": {
			{"	\"assay.dev/assay/operator/internal/store/s3\"\n", "	\"assay.dev/assay/operator/internal/store/volume\"\n"},
			{"var storeKinds = map[string]store.Open{", "\"Volume\": volume.Open, "},
		}},
		most: 2,
		check: []command{
			{".", []string{"go", "test", "./operator/internal/store/volume"}},
			{".", []string{"go", "vet", "./operator/cmd/manager"}},
		},
	},
	"system": {
		most: 3, // all in one folder
		check: []command{
			{"hack/images", []string{"go", "run", ".", "-list", "../../systems/*/images.txt", "-root", "../..", "-out", "../../.work/images", "assay/newcomer"}},
			{".", []string{"grep", "^assay/newcomer", ".work/images/index.tsv"}},
			{".", []string{"go", "test", "./hack/test", "-run", "^TestSystemsHaveLanes$"}},
		},
	},
	"parser": {
		lines: map[string][]line{"operator/internal/results/parsers/parsers.go": {
			{"	{Name: FormatYCSB, table: parseYCSB},\n", "	{Name: \"Pairs\", table: parsePairs},\n"},
		}},
		most:  2,
		check: []command{{".", []string{"go", "test", "./operator/internal/results/parsers", "-run", "^TestPairs$"}}},
	},
	"verb": {
		lines: map[string][]line{"operator/cmd/kubectl-assay/main.go": {
			{"	\"assay.dev/assay/operator/internal/cli/fetch\"\n", "	\"assay.dev/assay/operator/internal/cli/greet\"\n"},
			{"version.Command(s), ", "greet.Command(s), "},
		}},
		most: 2,
		check: []command{
			{".", []string{"go", "test", "./operator/internal/cli/greet"}},
			{".", []string{"go", "vet", "./operator/cmd/kubectl-assay"}},
		},
	},
}

// A newcomer adds each kind of extension without a search through the tree.
func TestOneOfEach(t *testing.T) {
	tree := copyTree(t)
	t.Setenv("ASSAY_CACHE", t.TempDir())                                          // the program of a System is built there
	for _, name := range []string{"store", "system", "parser", "verb", "fault"} { // the API last, since all packages import it
		t.Run(name, func(t *testing.T) {
			a := additions[name]
			touched := write(t, tree, name, a)
			t.Logf("%s: %d files touched: %s", name, len(touched), strings.Join(touched, ", "))
			if len(touched) == 0 || len(touched) > a.most {
				t.Errorf("an author touches %d files; at most %d were enough", len(touched), a.most)
			}
			for _, c := range a.check {
				run(t, filepath.Join(tree, c.dir), c.args)
			}
		})
	}
}

// The document has each added line as it is here, so that a reader who follows it makes the same
// change.
func TestTheDocumentSaysSo(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(root, "docs", "extending.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range additions {
		for _, file := range slices.Sorted(maps.Keys(a.lines)) {
			if !strings.Contains(string(document), file) {
				t.Errorf("%s: docs/extending.md does not name %s", name, file)
			}
		}
	}
}

// write adds the files and lines, and returns the files that an author changes.
func write(t *testing.T, tree, name string, a addition) (touched []string) {
	t.Helper()
	for file, lines := range a.lines {
		text, err := os.ReadFile(filepath.Join(tree, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			if strings.Count(string(text), l.below) != 1 {
				t.Fatalf("%s has %q %d times, want once", file, l.below, strings.Count(string(text), l.below))
			}
			text = []byte(strings.Replace(string(text), l.below, l.below+l.add, 1))
		}
		put(t, filepath.Join(tree, file), text)
		touched = append(touched, file)
	}
	added, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(string(added), "\n-- ") {
		head, text, found := strings.Cut(strings.TrimPrefix(part, "-- "), " --\n")
		if !found {
			continue // the comment at the top
		}
		if file, appended := strings.CutPrefix(head, "append "); appended {
			before, err := os.ReadFile(filepath.Join(tree, file))
			if err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(tree, file), append(before, []byte("\n"+text+"\n")...))
			continue
		}
		put(t, filepath.Join(tree, head), []byte(text+"\n"))
		if !strings.HasSuffix(head, "_test.go") {
			touched = append(touched, head)
		}
	}
	slices.Sort(touched)
	return touched
}

func put(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil { // #nosec G306 -- source code
		t.Fatal(err)
	}
}

// copyTree copies the tracked files of the folders to build, from the working tree.
func copyTree(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "--", "go.mod", "go.sum", "operator", "hack", "systems", "config").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	tree := t.TempDir()
	for name := range strings.FieldsSeq(string(out)) {
		info, err := os.Lstat(filepath.Join(root, name))
		if err != nil || !info.Mode().IsRegular() {
			continue // deleted and not yet committed, or a link
		}
		if err := copyFile(filepath.Join(root, name), filepath.Join(tree, name), info.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

func copyFile(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return out.Close()
}

func run(t *testing.T, dir string, args []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
