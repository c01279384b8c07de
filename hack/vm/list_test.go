package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadList(t *testing.T) {
	got, err := readList(strings.NewReader("# why\noperator/a TestX\noperator/a TestY # too\n\noperator/b TestZ/EDT\noperator/b TestZ/Netem\noperator/b TestX\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []tests{
		{pkg: "operator/a", names: []string{"TestX", "TestY"}},
		{pkg: "operator/b", names: []string{"TestZ"}, parts: []string{"EDT", "Netem"}},
		{pkg: "operator/b", names: []string{"TestX"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(tests{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if run := got[1].run(); run != "^(TestZ)$/^(EDT|Netem)$" {
		t.Errorf("run = %q", run)
	}
	if _, err := readList(strings.NewReader("operator/a\n")); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a line without a test: error = %v", err)
	}
	if left := only(slices.Clone(got), []string{"./operator/..."}); len(left) != 3 {
		t.Errorf("below operator are %v", left)
	}
	if left := only(slices.Clone(got), []string{"./operator/b"}); len(left) != 2 {
		t.Errorf("of operator/b are %v", left)
	}
}

// The error names a test that is missing, has failed, was skipped, or has a skipped part.
func TestWrong(t *testing.T) {
	list := tests{pkg: "p", names: []string{"TestX", "TestY"}}
	parts := tests{pkg: "p", names: []string{"TestX"}, parts: []string{"EDT"}}
	for name, tc := range map[string]struct {
		tests  tests
		output string
		want   []string
	}{
		"both pass":      {list, "\x16--- PASS: TestX (0.00s)\n\x16--- PASS: TestY (1.00s)\nPASS\n", nil},
		"one is gone":    {list, "\x16--- PASS: TestX (0.00s)\nPASS\n", []string{"p TestY did not run: is there such a test?"}},
		"one fails":      {list, "\x16--- PASS: TestX (0.00s)\n\x16--- FAIL: TestY (1.00s)\nFAIL\n", []string{"p TestY failed"}},
		"one is skipped": {list, "\x16--- PASS: TestX (0.00s)\n\x16--- SKIP: TestY (1.00s)\nPASS\n", []string{"p TestY was skipped"}},
		"no tests":       {list, "testing: warning: no tests to run\nPASS\n", []string{"p TestX did not run: is there such a test?", "p TestY did not run: is there such a test?"}},
		"a part":         {parts, "\x16--- PASS: TestX (0.00s)\n\x16--- PASS: TestX/EDT (0.00s)\n", nil},
		"in a log":       {tests{pkg: "p", names: []string{"TestX"}}, "        --- PASS: TestX (0.00s)\n", []string{"p TestX did not run: is there such a test?"}},
		"no such part":   {parts, "\x16--- PASS: TestX (0.00s)\n", []string{"p TestX/EDT did not run: is there such a test?"}},
		"a part skips":   {parts, "\x16--- PASS: TestX (0.00s)\n\x16--- SKIP: TestX/EDT (0.00s)\n", []string{"p TestX/EDT was skipped"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.tests.wrong(tc.output)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Failed tests run once more: a whole test, or its failed parts.
func TestFailed(t *testing.T) {
	parts := tests{pkg: "p", names: []string{"TestX"}, parts: []string{"EDT", "Netem", "NFQueue"}}
	for name, tc := range map[string]struct {
		tests  tests
		output string
		want   []tests
		count  int
	}{
		"nothing": {tests{pkg: "p", names: []string{"TestX"}}, "\x16--- PASS: TestX (0.00s)\n", nil, 0},
		"one of two, with a part": {tests{pkg: "p", names: []string{"TestX", "TestY"}},
			"\x16--- FAIL: TestX/EDT (0.00s)\n\x16--- FAIL: TestX (0.00s)\n\x16--- PASS: TestY (0.00s)\n", []tests{{pkg: "p", names: []string{"TestX"}}}, 1},
		"two parts": {parts, "\x16--- FAIL: TestX/EDT (0.00s)\n\x16--- PASS: TestX/Netem (0.00s)\n\x16--- FAIL: TestX/NFQueue (0.00s)\n\x16--- FAIL: TestX (0.00s)\n",
			[]tests{{pkg: "p", names: []string{"TestX"}, parts: []string{"EDT", "NFQueue"}}}, 2},
		"what did not run": {tests{pkg: "p", names: []string{"TestX"}}, "PASS\n", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.tests.failed(tc.output)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(tests{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if n := count(got); n != tc.count {
				t.Errorf("%d tests, want %d", n, tc.count)
			}
		})
	}
}

// Every test of the list exists. This check needs no boot.
func TestListedTestsExist(t *testing.T) {
	text, err := os.ReadFile("tests.txt")
	if err != nil {
		t.Fatal(err)
	}
	list, err := readList(strings.NewReader(string(text)))
	if err != nil || len(list) == 0 {
		t.Fatalf("tests.txt has %d entries: %v", len(list), err)
	}
	for _, l := range list {
		files, err := filepath.Glob(filepath.Join("..", "..", l.pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var source strings.Builder
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(text)
		}
		for _, name := range l.names {
			if !regexp.MustCompile(`(?m)^func ` + name + `\(`).MatchString(source.String()) {
				t.Errorf("%s has no %s", l.pkg, name)
			}
		}
	}
}
