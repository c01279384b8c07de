package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// module is the path of the repository's Go module.
const module = "assay.dev/assay/"

// tests are tests of one package that one call of its test binary runs.
type tests struct {
	pkg   string   // below module
	names []string // of tests, or of one test if parts are given
	parts []string // parts of the test; nil: all of them
}

// readList reads tests.txt: lines of a package and the names of tests, or TEST/PART.
func readList(r io.Reader) ([]tests, error) {
	var list []tests
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		f := strings.Fields(text)
		if len(f) == 0 {
			continue
		}
		if len(f) != 2 || strings.Count(f[1], "/") > 1 {
			return nil, fmt.Errorf("line %d is %q, want a package and TEST or TEST/PART", n, lines.Text())
		}
		list = add(list, f[0], f[1])
	}
	return list, lines.Err()
}

func add(list []tests, pkg, name string) []tests {
	test, part, isPart := strings.Cut(name, "/")
	i := slices.IndexFunc(list, func(t tests) bool {
		return t.pkg == pkg && (t.parts != nil) == isPart && (!isPart || t.names[0] == test)
	})
	switch {
	case i < 0 && isPart:
		return append(list, tests{pkg, []string{test}, []string{part}})
	case i < 0:
		return append(list, tests{pkg: pkg, names: []string{test}})
	case isPart:
		list[i].parts = append(list[i].parts, part)
	default:
		list[i].names = append(list[i].names, test)
	}
	return list
}

// only keeps the tests of some packages, given as ./operator/internal/node/netem/... or without the
// dots. Without patterns it keeps all.
func only(list []tests, patterns []string) []tests {
	if len(patterns) == 0 {
		return list
	}
	return slices.DeleteFunc(list, func(t tests) bool {
		return !slices.ContainsFunc(patterns, func(p string) bool {
			p, below := strings.CutSuffix(strings.TrimPrefix(strings.TrimPrefix(p, module), "./"), "/...")
			return t.pkg == p || below && strings.HasPrefix(t.pkg, p+"/")
		})
	})
}

// binary is the name that go test -c gives to the package's tests.
func (t tests) binary() string { return path.Base(t.pkg) + ".test" }

// run is the value of the flag -test.run.
func (t tests) run() string {
	value := "^(" + strings.Join(t.names, "|") + ")$"
	if t.parts != nil {
		value += "/^(" + strings.Join(t.parts, "|") + ")$"
	}
	return value
}

// all names that must pass, as go test -v prints them.
func (t tests) all() []string {
	if t.parts == nil {
		return t.names
	}
	names := []string{t.names[0]}
	for _, part := range t.parts {
		names = append(names, t.names[0]+"/"+part)
	}
	return names
}

// verdict is a line of -test.v=test2json. A test may log the output of another test, whose lines
// have no mark.
var verdict = regexp.MustCompile(`^\x16--- (PASS|FAIL|SKIP): (\S+)`)

// outcomes of tests by name.
func outcomes(output string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(output) {
		if m := verdict.FindStringSubmatch(line); m != nil {
			found[m[2]] = m[1]
		}
	}
	return found
}

// wrong returns the errors in the output of these tests: each must have passed, and no part of them
// may be skipped. The machine has everything that they need.
func (t tests) wrong(output string) []string {
	found := outcomes(output)
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if found[name] == "SKIP" {
			wrong = append(wrong, fmt.Sprintf("%s %s was skipped", t.pkg, name))
		}
	}
	for _, name := range t.all() {
		switch found[name] {
		case "PASS", "SKIP":
		case "FAIL":
			wrong = append(wrong, fmt.Sprintf("%s %s failed", t.pkg, name))
		default:
			wrong = append(wrong, fmt.Sprintf("%s %s did not run: is there such a test?", t.pkg, name))
		}
	}
	return wrong
}

// failed are the tests that ran and failed. If only one test is given, they are its failed parts.
func (t tests) failed(output string) (list []tests) {
	found := outcomes(output)
	for _, name := range t.all() {
		if found[name] == "FAIL" && (t.parts == nil || name != t.names[0]) {
			list = add(list, t.pkg, name)
		}
	}
	return list
}

// count is the number of tests, or of parts of tests.
func count(list []tests) (n int) {
	for _, t := range list {
		n += max(len(t.parts), len(t.names))
	}
	return n
}

// ran reports whether any test ran.
func ran(output string) bool { return len(outcomes(output)) > 0 }
