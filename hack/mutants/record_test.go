package main

import (
	"os/exec"
	"strings"
	"testing"
)

// A record holds what a commit's changes came to; a tree with changes of its own begins anew.
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
