package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository is a tree with one commit, in which the test then is.
func repository(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	t.Chdir(root)
	write(t, root, ".gitignore", "/.work/\n")
	for name, text := range files {
		write(t, root, name, text)
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"commit", "--quiet", "-m", "first"}} {
		args = append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return root
}

// A record holds the results of a commit's changes. A tree with changes of its own begins anew.
func TestRecordsGoOn(t *testing.T) {
	root := repository(t, map[string]string{".work/mutants/keep": ""})
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
	root := repository(t, map[string]string{
		"go.mod":      "module example.com/p\n\ngo 1.26\n",
		"p/p.go":      "package p\n\nfunc Twice(a int) int { return 2 * a }\n",
		"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestTwice(t *testing.T) {\n\tif Twice(2) != 4 {\n\t\tt.Error()\n\t}\n}\n",
	})
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
	c, err := load(t.Context(), root, patterns)
	if err != nil {
		t.Fatal(err)
	}
	drawn, _ := c.draw(1, 1)
	other, err := openRecord(t.Context(), root, drawn, 1, patterns)
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
