package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A record holds the results of a commit's changes. A tree with changes of its own begins anew.
func TestRecordsGoOn(t *testing.T) {
	root := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	write(t, root, ".gitignore", "/.work/\n")
	write(t, root, ".work/mutants/keep", "")
	git("init", "--quiet")
	git("add", ".")
	git("commit", "--quiet", "-m", "first")

	known := func(seed uint64) int {
		t.Helper()
		r, err := openRecord(t.Context(), root, nil, seed, []string{"p"})
		if err != nil {
			t.Fatal(err)
		}
		defer r.file.Close()
		n := len(r.known)
		if err := r.keep(result{Change: "p.go:1", Outcome: survived}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i, step := range []struct {
		seed uint64
		want int
	}{{1, 0}, {1, 1}, {2, 0}} {
		if got := known(step.seed); got != step.want {
			t.Errorf("step %d: %d results are known, want %d", i, got, step.want)
		}
	}
	write(t, root, "new.go", "package p\n")
	for range 2 {
		if got := known(1); got != 0 {
			t.Errorf("%d results are known of a tree with changes", got)
		}
	}
}

// Two runs of one tree at the same time write to no common file, and both end.
func TestRunsOfOneTreeDoNotMeet(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	for name, text := range map[string]string{
		".gitignore":  "/.work/\n",
		"go.mod":      "module example.com/p\n\ngo 1.26\n",
		"p/p.go":      "package p\n\nfunc Twice(a int) int { return 2 * a }\n",
		"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestTwice(t *testing.T) {\n\tif Twice(2) != 4 {\n\t\tt.Error()\n\t}\n}\n",
	} {
		write(t, root, name, text)
	}
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	git("init", "--quiet")
	git("add", ".")
	git("commit", "--quiet", "-m", "first")

	folders := map[string]bool{}
	for range 2 {
		for _, kind := range []string{"named", "random"} {
			folder, err := scratch(root, kind)
			if err != nil || folders[folder] || filepath.Dir(folder) != filepath.Join(root, ".work", "mutants") {
				t.Errorf("scratch of %s is %q, %v, beside %v", kind, folder, err, folders)
			}
			folders[folder] = true
		}
	}

	patterns := []string{"p"}
	all, err := allChanges(t.Context(), root, patterns)
	if err != nil {
		t.Fatal(err)
	}
	other, err := openRecord(t.Context(), root, all, 1, patterns)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := random(t.Context(), &out, 1, 1, 1, patterns); err == nil || !strings.Contains(err.Error(), "another run draws the same changes with seed 1") {
		t.Errorf("beside a run with the same seed: %v\n%s", err, &out)
	}
	if err := random(t.Context(), &out, 1, 1, 2, patterns); err != nil {
		t.Errorf("beside a run with another seed: %v\n%s", err, &out)
	}
	if err := other.file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := random(t.Context(), &out, 1, 1, 1, patterns); err != nil {
		t.Errorf("after the run with the same seed: %v\n%s", err, &out)
	}
	left, err := filepath.Glob(".work/mutants/*/*")
	if err != nil || len(left) > 0 {
		t.Errorf("the runs left %v, %v", left, err)
	}
	if err := run(t.Context(), []string{"nobody"}); err == nil || !strings.Contains(err.Error(), `no mutant "nobody"`) {
		t.Errorf("a name that no mutant has: %v", err)
	}
}

func TestTableOfPackages(t *testing.T) {
	d := &drawn{record: &record{known: map[string]result{}}, packages: map[string]*[3]int{
		"./b": {killed: 2, survived: 1}, "./a": {killed: 4}, "./c": {noProgram: 1},
	}}
	var b strings.Builder
	d.table(&b)
	var got []string
	for line := range strings.Lines(b.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if want := "package killed survived rate|./a 4 0 100%|./b 2 1 66%"; strings.Join(got, "|") != want {
		t.Errorf("the table is %q, want %q", got, want)
	}
}
