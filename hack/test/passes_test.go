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

// Each lane is in make test, in make test-long, or it is a further lane and says what it takes. All
// are in make test-all, and .ci/run calls all three.
func TestEveryLaneHasATurn(t *testing.T) {
	text := read(t, "../make/test.mk")
	quick, long, further := makeList(t, "quick", ":="), makeList(t, "long", ":="), makeList(t, "FURTHER", "?=")
	ci := read(t, "../../.ci/run")
	for target, want := range map[string]string{"test": "-strict $(quick)", "test-long": "-strict $(long)", "test-further": "$(FURTHER)", "test-all": "-strict $(quick) $(long) $(FURTHER)"} {
		_, rule, _ := strings.Cut(text, "\n"+target+":")
		_, command, _ := strings.Cut(rule, "\n")
		command, _, _ = strings.Cut(command, "\n")
		if !strings.HasSuffix(command, want) {
			t.Errorf("make %s runs %q; want it to end in %q", target, command, want)
		}
		if target != "test-all" && !strings.Contains(ci, "tests "+target+" ") {
			t.Errorf(".ci/run does not run make %s", target)
		}
	}
	all := slices.Concat(quick, long, further)
	for _, name := range all {
		if _, err := laneNamed(name); err != nil && name != "$(module_lanes)" {
			t.Error(err)
		}
	}
	for _, l := range lanes {
		if l.dir != "" && !slices.Contains(further, l.name) {
			continue // one of $(module_lanes)
		}
		if n := len(slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name != l.name })); n != 1 {
			t.Errorf("lane %s is %d times in make test (%q), make test-long (%q) and FURTHER (%q); want once", l.name, n, quick, long, further)
		}
		if slices.Contains(further, l.name) && l.takes == 0 {
			t.Errorf("lane %s does not say what it takes, so that .ci/run may begin it too late", l.name)
		}
	}
}

// Consecutive turns have each lane once, and a turn is as long as allowed or has one lane only.
func TestTurnsHaveEveryLane(t *testing.T) {
	names := makeList(t, "FURTHER", "?=")
	all, err := turns(names, turnTakes)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) > 10 {
		t.Errorf("%d turns, so that a lane does not run in ten submissions", len(all))
	}
	for _, turn := range all {
		took := time.Duration(0)
		for _, name := range turn {
			l, err := laneNamed(name)
			if err != nil {
				t.Fatal(err)
			}
			took += l.takes
		}
		if took > turnTakes && len(turn) > 1 {
			t.Errorf("turn %v takes %v", turn, took)
		}
	}
	had := slices.Concat(all...)
	slices.Sort(had)
	slices.Sort(names)
	if !slices.Equal(had, names) {
		t.Errorf("turns have %v, want each of %v once", had, names)
	}
	if _, err := turns([]string{"nosuch"}, turnTakes); err == nil {
		t.Error("a lane that is not there is in a turn")
	}
}

// makeList is a list of lanes in hack/make/test.mk.
func makeList(t *testing.T, name, assigned string) []string {
	t.Helper()
	_, rest, found := strings.Cut(read(t, "../make/test.mk"), "\n"+name+" "+assigned+" ")
	line, _, _ := strings.Cut(rest, "\n")
	if !found || line == "" {
		t.Fatalf("hack/make/test.mk has no list %s", name)
	}
	return strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" ,+", r) })
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
