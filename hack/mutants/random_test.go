package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const program = `package p

const most = 3

func limit(a, b int) (int, bool) {
	if a < b && !done(a) {
		a += 2
		log(a)
	}
	return a - b, true
}
`

func TestChangesOfAFile(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "p.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := changesOf(root, "p.go")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range all {
		got = append(got, c.String())
	}
	want := []string{ // a constant stays as it is
		"p.go:6 || for &&", "p.go:6 <= for <", "p.go:6 >= for <", "p.go:6   for !",
		"p.go:7 -= for +=", "p.go:7 without a += 2", "p.go:7 3 for 2", "p.go:8 without log(a)",
		"p.go:10 + for -", "p.go:10 false for true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Each change is tried in an overlay of its program; the file stays as it is.
func TestChangesAreTried(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module example.com/p\n\ngo 1.26\n",
		"p/p.go":      "package p\n\nfunc Add(a, b int) int {\n\tn := a + b\n\tif n < 0 {\n\t\treturn 0\n\t}\n\treturn n\n}\n",
		"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Error(\"wrong\")\n\t}\n}\n",
	} {
		write(t, root, name, text)
	}
	all, err := changesOf(root, "p/p.go")
	if err != nil {
		t.Fatal(err)
	}
	tests := &own{}
	want := map[string]outcome{"p/p.go:4 - for +": killed, "p/p.go:5 <= for <": survived, "p/p.go:5 1 for 0": survived}
	for _, c := range all {
		end, ok := want[c.String()]
		if !ok {
			continue
		}
		delete(want, c.String())
		got, by, err := c.try(t.Context(), root, filepath.Join(t.TempDir(), "scratch"), tests)
		if err != nil || got != end || got == killed && by != "TestAdd" {
			t.Errorf("%v: outcome %d by %q, %v; want %d", c, got, by, err, end)
		}
	}
	if len(want) > 0 {
		t.Errorf("no such changes: %v", want)
	}
	broken := change{file: "p/p.go", from: 0, to: 7}
	if got, _, err := broken.try(t.Context(), root, filepath.Join(t.TempDir(), "scratch"), tests); err != nil || got != noProgram {
		t.Errorf("a file without its package: outcome %d, %v; want that it does not compile", got, err)
	}
}

func TestThePackagesThatDecideExist(t *testing.T) {
	all, err := allChanges(context.Background(), mustAbs(t, "../.."), pure)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, c := range all {
		for _, p := range pure {
			if strings.HasPrefix(c.file, strings.TrimSuffix(p, "/...")+"/") {
				seen[p]++
			}
		}
	}
	for _, p := range pure {
		if seen[p] < 20 {
			t.Errorf("%s has %d places to change, want 20 at least", p, seen[p])
		}
	}
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mustAbs(t *testing.T, dir string) string {
	t.Helper()
	path, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Slow tests come last, but do run.
func TestSlowTestsComeLast(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module example.com/p\n\ngo 1.26\n",
		"p/p.go":      "package p\n\nfunc Add(a, b int) int { return a + b }\n",
		"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestQuick(t *testing.T) {}\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Error(\"wrong\")\n\t}\n}\n",
	} {
		write(t, root, name, text)
	}
	plus, minus := change{file: "p/p.go", from: 45, to: 46, new: "-", old: "+"}, change{file: "p/p.go", from: 45, to: 46, new: "+", old: "+"}
	tests := &own{}
	tests.once.Do(func() { tests.slow = "^(TestAdd)$" })
	for c, want := range map[change]outcome{plus: killed, minus: survived} {
		got, by, err := c.try(t.Context(), root, filepath.Join(t.TempDir(), "scratch"), tests)
		if err != nil || got != want || got == killed && by != "TestAdd" {
			t.Errorf("%v: outcome %d by %q, %v; want %d", c, got, by, err, want)
		}
	}
	failing := &own{}
	write(t, root, "p/p_test.go", "package p\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) { t.Error(\"always\") }\n")
	if _, _, err := plus.try(t.Context(), root, filepath.Join(t.TempDir(), "scratch"), failing); err == nil || !strings.Contains(err.Error(), "TestAdd") {
		t.Errorf("of tests that fail without a change: %v", err)
	}
}
