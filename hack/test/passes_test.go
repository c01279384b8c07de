package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func TestLinesOfPasses(t *testing.T) {
	want := lastPass{lane: "api", at: noon, commit: "26459b8d0000", tests: 812, took: 400 * time.Second, goes: "go1.26.0", kernel: "6.1.0-18"}
	got, err := parsePass(want.String())
	if err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for name, line := range map[string]string{
		"a field is missing": "api\t2026-11-26T12:00Z\t26459b8d\t812\t6m40s\tgo1.26.0",
		"no number of tests": "api\t2026-11-26T12:00Z\t26459b8d\tmany\t6m40s\tgo1.26.0\t6.1",
		"no time":            "api\tyesterday\t26459b8d\t812\t6m40s\tgo1.26.0\t6.1",
	} {
		t.Run(name, func(t *testing.T) {
			if p, err := parsePass(line); err == nil {
				t.Errorf("%+v, want an error", p)
			}
		})
	}
}

func TestARunIsComparedWithEarlierOnes(t *testing.T) {
	lines := func(n int) (l []string) {
		for range n {
			l = append(l, "2026-11-26T12:00Z 26459b8d\tp TestFlaky")
		}
		return append(l, "2026-11-26T12:00Z 26459b8d\tp TestFlakyOther")
	}
	tests := map[string]struct {
		tests, before, second int
		want                  string
	}{
		"as many tests":              {tests: 100, before: 100},
		"a test fewer":               {tests: 99, before: 100},
		"2% fewer":                   {tests: 98, before: 100},
		"more than 2% fewer":         {tests: 97, before: 100, want: "it has 97 tests, and had 100"},
		"no pass is known":           {tests: 1},
		"third second attempt":       {tests: 5, before: 5, second: 2},
		"fourth second attempt":      {tests: 5, before: 5, second: 3, want: "mend the test"},
		"other tests do not count":   {tests: 5, before: 5},
		"fewer, and a fourth second": {tests: 50, before: 100, second: 3, want: "had 100"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ls := &laneSum{name: "unit", ended: map[string]string{}, flaky: map[string]bool{"p TestFlaky": true, "p Test0": false}}
			for i := range tc.tests {
				ls.ended["p Test"+strings.Repeat("0", i)] = "pass"
			}
			delete(ls.ended, "p Test")
			ls.ended["p TestFlaky"] = "pass"
			s := &sum{lanes: []*laneSum{ls}}
			s.compare(map[string]lastPass{"unit": {tests: tc.before}}, lines(tc.second))
			said := strings.Join(ls.wrong, "\n")
			if tc.want == "" && said != "" || !strings.Contains(said, tc.want) {
				t.Errorf("it says %q, want %q", said, tc.want)
			}
		})
	}
}

// The records of a strict run on the machine are copied into the files of the tree once.
func TestPassesComeIntoTheTree(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("ASSAY_CACHE", t.TempDir())
	t.Setenv("GIT_DIR", filepath.Join(root, ".git"))
	t.Chdir(t.TempDir())
	before := slices.Clone(lanes)
	t.Cleanup(func() { lanes = before })
	for _, dir := range []string{filepath.Dir(passesFile), "systems/mine"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("systems/mine/go.mod", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ls := &laneSum{name: "unit", to: "recorded", ended: map[string]string{"p TestA": "pass", "p TestB": "pass"}, flaky: map[string]bool{"p TestB": true}, took: time.Minute}
	failed := &laneSum{name: "kernel", to: "recorded", ended: map[string]string{"p TestC": "fail"}}
	s := &sum{lanes: []*laneSum{ls, failed}}
	of := lastPass{lane: "unit", at: noon, commit: "26459b8d", tests: 2, took: time.Minute, goes: "go1.26.0", kernel: "6.1"}
	mine, older, changed := of, of, of
	mine.lane = "mine" // of a System with its own module
	older.at, changed.at, changed.commit = noon.Add(-time.Hour), noon.Add(time.Hour), "26459b8d+"
	if err := addLines(kept(passesFile), []string{of.String(), mine.String(), older.String(), changed.String()}); err != nil {
		t.Fatal(err)
	}
	if err := s.keep(t.Context(), noon.Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var out strings.Builder
		if err := showPasses(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "unit") || !strings.Contains(out.String(), "2026-11-26 12:00") || !strings.Contains(out.String(), "never") {
			t.Errorf("it prints\n%s\nwant the pass of the lane unit, and that others never passed", out.String())
		}
	}
	lines, err := readLines(passesFile)
	if diff := cmp.Diff([]string{mine.String(), of.String()}, lines); err != nil || diff != "" {
		t.Errorf("passes (-want +got), %v\n%s", err, diff)
	}
	lines, err = readLines(attemptsFile)
	if err != nil || len(lines) != 1 || !strings.HasSuffix(lines[0], "\tp TestB") {
		t.Errorf("second attempts %q, %v; want one, of p TestB", lines, err)
	}
}

// A lane that never passed must have its turn: one that waited for the others never ran.
func TestTheOldestPassComesFirst(t *testing.T) {
	order := byAge(map[string]lastPass{"unit": {at: noon}, "kernel": {at: noon.Add(-time.Hour)}})
	never, kernel, unit := slices.Index(order, "libvirt"), slices.Index(order, "kernel"), slices.Index(order, "unit")
	if never > kernel || kernel > unit || len(order) != len(lanes) {
		t.Errorf("order %v; want lanes without a pass, then kernel, then unit", order)
	}
}

// Each lane is in make test, or it is a further lane and says what it takes. All are in make
// test-all.
func TestEveryLaneHasATurn(t *testing.T) {
	text, err := os.ReadFile("../make/test.mk")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(text), "\nFURTHER ?= ")
	list, _, _ = strings.Cut(list, "\n")
	further := strings.Fields(list)
	if !found || len(further) == 0 {
		t.Fatal("hack/make/test.mk has no list FURTHER")
	}
	stages := func(target string) []string {
		_, rule, found := strings.Cut(string(text), "\n"+target+":")
		_, command, _ := strings.Cut(rule, " -strict ")
		command, _, _ = strings.Cut(command, "\n")
		if !found || command == "" {
			t.Errorf("hack/make/test.mk has no strict target %s", target)
		}
		return strings.FieldsFunc(command, func(r rune) bool { return r == ' ' || r == ',' })
	}
	test, all := stages("test"), stages("test-all")
	if diff := cmp.Diff(append(slices.Clone(test), "$(FURTHER)"), all); diff != "" {
		t.Errorf("make test-all is not make test and the further lanes (-want +got):\n%s", diff)
	}
	for _, l := range lanes {
		if l.dir != "" && !slices.Contains(further, l.name) {
			continue // one of $(module_lanes)
		}
		if slices.Contains(further, l.name) == slices.Contains(test, l.name) {
			t.Errorf("lane %s must be either in make test (%q) or in FURTHER (%q)", l.name, test, further)
		}
		if slices.Contains(further, l.name) && l.takes == 0 {
			t.Errorf("lane %s does not say what it takes, so that .ci/run may begin it too late", l.name)
		}
	}
	for _, name := range further {
		if _, err := laneNamed(name); err != nil {
			t.Errorf("FURTHER: %v", err)
		}
	}
}
