package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

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
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, "p.go", program, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changesOf(set, "p.go", []byte(program), tree) {
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

// Two tests, the first of which is slow. The length of an array stands behind no switch.
const (
	sum      = "package p\n\nfunc Add(a, b int) int {\n\tn := a + b\n\tif n < 0 {\n\t\treturn 0\n\t}\n\treturn n\n}\n\nfunc Three() int { return len([3]int{}) }\n\nfunc Join(a string) string { return a + a }\n"
	sumTests = `package p

import "testing"

var computed int

func TestAdd(t *testing.T) {
	for i := range 1 << 29 { // more than is quick
		computed += i
	}
	if Add(1, 2) != 3 || Three() != 3 {
		t.Error("wrong")
	}
}

func TestZero(t *testing.T) {
	if Add(2, -2) != 0 {
		t.Error("wrong")
	}
}
`
)

func TestChangesAreTried(t *testing.T) {
	repository(t, map[string]string{"go.mod": "module example.com/p\n\ngo 1.26\n", "p/p.go": sum, "p/p_test.go": sumTests})
	var out strings.Builder
	err := random(t.Context(), &out, 100, 2, 1, []string{"p"})
	if err == nil || err.Error() != "3 of 6 survived, more than one in ten" {
		t.Error(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(regexp.MustCompile(` +[0-9]+ s `).ReplaceAllString(line, "")), " "))
	}
	slices.Sort(got)
	want := []string{
		"./p 3 3 50%",
		"3 of 6 killed by the tests of their own package",
		"6 of 7 places, drawn with seed 1; 1 more do not compile",
		"killed p/p.go:11 4 for 3: TestAdd",
		"killed p/p.go:4 - for +: TestZero", // the quick test comes first
		"killed p/p.go:5 >= for <: TestAdd",
		"package killed survived rate",
		"survived p/p.go:5 1 for 0",
		"survived p/p.go:5 <= for <",
		"survived p/p.go:6 1 for 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTestsThatFailProveNothing(t *testing.T) {
	repository(t, map[string]string{"go.mod": "module example.com/p\n\ngo 1.26\n", "p/p.go": sum, "p/p_test.go": strings.Replace(sumTests, "!= 0", "== 0", 1)})
	err := random(t.Context(), t.Output(), 1, 1, 1, []string{"p"})
	if err == nil || err.Error() != "the tests of ./p fail without any change: TestZero" {
		t.Error(err)
	}
}

// A changed program may compute without end, or want all memory.
func TestTestsAreBounded(t *testing.T) {
	for _, body := range []string{"for {\n}", "for a := []int{1}; ; {\n\ta = append(a, a...)\n}"} {
		t.Run(body, func(t *testing.T) {
			root := t.TempDir()
			write(t, root, "go.mod", "module example.com/p\n\ngo 1.26\n")
			write(t, root, "p_test.go", "package p\n\nimport \"testing\"\n\nfunc TestEnds(*testing.T) {\n"+body+"\n}\n")
			p := &trial{root: root, pkg: ".", folder: t.TempDir()}
			program, err := p.build(t.Context(), "p", nil)
			if err != nil {
				t.Fatal(err)
			}
			out, err := p.program(t.Context(), program, time.Second).CombinedOutput()
			if by := noticedBy(out, err); err == nil || by != "the bound of processor time" && !strings.Contains(by, "out of memory") {
				t.Errorf("%v, %q", err, by)
			}
		})
	}
}

func TestThePackagesThatDecideExist(t *testing.T) {
	code, err := load(t.Context(), mustAbs(t, "../.."), pure)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, c := range code.changes() {
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
