package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// arm is a change of the body of a function that returns a value, and what the function returns
// without and with it. Without these the change stands in a program of its own.
type arm struct{ body, change, off, on string }

var arms = []arm{
	// Two changes of one operator share a place; each operand is evaluated once.
	{"return 1 < one(), count", "<= for <", "false 1", "true 1"},
	{"return 1 < one(), count", ">= for <", "false 1", "true 1"},
	{"return 2 <= one(), count", "> for <=", "false 1", "true 1"},
	{"return 1 <= one(), count", "< for <=", "true 1", "false 1"},
	{"return 1 > one()", ">= for >", "false", "true"},
	{"return one() > 0", "<= for >", "true", "false"},
	{"return one() >= 1", "> for >=", "true", "false"},
	{"return one() >= 2", "< for >=", "false", "true"},
	{"return math.NaN() < 1", ">= for <", "false", "false"}, // no order at all
	{`return "a" < text`, "<= for <", "true", "true"},
	{"return nothing == nil", "!= for ==", "true", "false"},
	{"return nothing != nil", "== for !=", "false", "true"},
	{"return struct{ a int }{one()} == struct{ a int }{1}", "!= for ==", "true", "false"},

	// The second operand is evaluated when Go evaluates it.
	{"return yes && one() == 2, count", "|| for &&", "false 1", "true 0"},
	{"return no && one() == 1, count", "|| for &&", "false 0", "true 1"},
	{"return yes || one() == 2, count", "&& for ||", "true 0", "false 1"},
	{"return no || one() == 2 || yes", "&& for ||", "true", "false"},
	{"return !no", "  for !", "true", "false"},
	{"return any(true)", "false for true", "true", "false"},
	{"return any(false)", "true for false", "false", "true"},

	{"return 5 + one()", "- for +", "6", "4"},
	{"return 5 - one() - 2", "+ for -", "2", "6"},
	{"return 1.5 - float64(one())", "+ for -", "0.5", "2.5"},
	{"return uint8(5) - uint8(one())", "+ for -", "4", "6"},
	{"return 6 * two()", "/ for *", "12", "3"},
	{"return 6 / two()", "* for /", "3", "12"},
	{"return 5 % two()", "* for %", "1", "10"},
	{"return time.Duration(two()) * time.Second", "/ for *", "2s", "0s"},
	{"a := -one()\n\treturn a", "  for -", "-1", "1"},
	{"a := map[string]int{}\n\ta[text]++\n\treturn a[text]", "-- for ++", "1", "-1"},
	{"a := uint8(3)\n\ta--\n\treturn a", "++ for --", "2", "4"},
	{"n := 0\n\tfor i := 4; i > 0; i -= two() {\n\t\tif n++; n > 4 {\n\t\t\tbreak\n\t\t}\n\t}\n\treturn n", "+= for -=", "2", "5"},
	{"a := 1.5\n\ta += 2\n\treturn a", "-= for +=", "3.5", "-0.5"},

	// A literal has the type of its place.
	{"return []string{text, text + text}[0]", "1 for 0", "b", "bb"},
	{"var a float64 = 1\n\treturn a / 2", "3 for 2", "0.5", "0.3333333333333333"},
	{"return 2 * time.Second", "3 for 2", "2s", "3s"},
	{"const a = 7\n\treturn len([3]int{}) + a", "4 for 3", "", ""},
	{"type yes bool\n\tvar a yes = true\n\treturn a", "false for true", "true", "false"},

	{"a := one()\n\ta = 5\n\treturn a", "without a = 5", "5", "1"},
	{"one()\n\treturn count", "without one()", "1", "0"},
	{"switch {\n\tcase yes:\n\t\tone() // counts\n\t}\n\treturn count", "without one()", "1", "0"},
	{"a := 1\n\tif a = two(); a > 0 {\n\t\ta++\n\t}\n\treturn a", "without a = two()", "", ""},

	// One change lies within another.
	{"return one()+two()*3 < 8 && !no", "|| for &&", "true", "true"},
	{"return one()+two()*3 < 8 && !no", ">= for <", "true", "false"},
	{"return one()+two()*3 < 8 && !no", "<= for <", "true", "true"},
	{"return one()+two()*3 < 8 && !no", "- for +", "true", "true"},
	{"return one()+two()*3 < 8 && !no", "4 for 3", "true", "false"},
	{"return one()+two()*3 < 8 && !no", "  for !", "true", "false"},
}

const armsBegin = `package main

import "fmt"

var (
	count   int
	nothing error
	text    = "b"
	yes, no = 1 == len(text), 2 == len(text)
)

func one() int { count++; return 1 }

func two() int { return 2 }

func show(of ...any) { fmt.Println(of...); count = 0 }

`

// One program holds all changes of all arms. It does what the tree does while they are off, and a
// change affects nothing but its own function.
func TestChangesBehindSwitches(t *testing.T) {
	root := t.TempDir()
	write(t, root, "go.mod", "module example.com/p\n\ngo 1.26\n")
	write(t, root, "p_test.go", "package main\n")
	main := armsBegin + "func main() {\n"
	for i, a := range arms {
		imports := ""
		for _, p := range []string{"math", "time"} {
			if strings.Contains(a.body, p+".") {
				imports += fmt.Sprintf("import %q\n", p)
			}
		}
		result := map[bool]string{true: "(any, int)", false: "any"}[strings.HasSuffix(a.body, ", count")]
		write(t, root, fileOf(i), fmt.Sprintf("package main\n\n%s\nfunc f%d() %s {\n\t%s\n}\n", imports, i, result, a.body))
		main += fmt.Sprintf("\tshow(f%d())\n", i)
	}
	write(t, root, "p.go", main+"}\n")
	c, err := load(t.Context(), root, []string{"."})
	if err != nil {
		t.Fatal(err)
	}
	var all []change
	for _, one := range c.changes() {
		if one.file != "p.go" && c.possible(one) {
			all = append(all, one)
		}
	}
	texts, alone, err := c.together(all)
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range texts {
		write(t, root, file, string(text))
	}
	program := filepath.Join(root, "p")
	if out, err := command(t.Context(), root, "go", "build", "-o", program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := func(id int) []string {
		cmd := command(t.Context(), root, program)
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", switchOf, id))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("change %d: %v: %s", id, err, out)
		}
		return strings.Split(string(out), "\n")
	}
	off := run(0)
	for i, a := range arms {
		at := slices.IndexFunc(all, func(one change) bool {
			return one.file == fileOf(i) && strings.HasSuffix(one.String(), fmt.Sprintf(":%d %s", one.line, a.change))
		})
		if at < 0 {
			t.Errorf("%q has no change %q", a.body, a.change)
			continue
		}
		if got := slices.Contains(alone, all[at]); got != (a.on == "") {
			t.Errorf("%q with %q is alone: %t", a.body, a.change, got)
		}
		if a.on == "" {
			continue
		}
		want := slices.Clone(off)
		want[i] = a.on
		if diff := cmp.Diff(want, run(all[at].number())); off[i] != a.off || diff != "" {
			t.Errorf("%q is %q, want %q; with %q (-want +got):\n%s", a.body, off[i], a.off, a.change, diff)
		}
	}
}

func fileOf(arm int) string { return fmt.Sprintf("f%d.go", arm) }
