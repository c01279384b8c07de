package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Every test of whole trials belongs to exactly one lane, and every line of the tables
// names an existing test.
func TestTablesNameEveryTest(t *testing.T) {
	r, err := readRules("..")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]int{}
	for lane, tests := range r.required {
		if _, err := laneNamed(lane); err != nil {
			t.Errorf("lanes.txt: %v", err)
		}
		for _, l := range tests {
			listed[l]++
			if pkg, name, _ := strings.Cut(l, " "); !slices.Contains(testsOf(t, pkg), name) {
				t.Errorf("lanes.txt names %s, which does not exist", l)
			}
		}
	}
	for _, pkg := range []string{"operator/test/e2e", "operator/test/install", "operator/test/local"} {
		for _, name := range testsOf(t, pkg) {
			if n := listed[pkg+" "+name]; n != 1 {
				t.Errorf("lanes.txt names %s %s %d times, want once", pkg, name, n)
			}
		}
	}
	for _, s := range r.skips {
		pkg, name, _ := strings.Cut(s[0], " ")
		name, _, _ = strings.Cut(name, "/")
		if strings.ContainsAny(pkg+name, `*?[\`) || !slices.Contains(testsOf(t, pkg), name) {
			t.Errorf("skips.txt: %q names no test; only subtests may be patterns", s[0])
		}
	}
}

func testsOf(t *testing.T, pkg string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", pkg, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no tests: %v", pkg, err)
	}
	var names []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(text, []byte("//go:build campaign")) {
			continue // no lane: make campaign takes hours
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`).FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}

const events = `
{"Action":"run","Package":"assay.dev/assay/p","Test":"TestA"}
{"Action":"run","Package":"assay.dev/assay/p","Test":"TestA/x"}
{"Action":"pass","Package":"assay.dev/assay/p","Test":"TestA/x"}
{"Action":"pass","Package":"assay.dev/assay/p","Test":"TestA"}
{"Action":"run","Package":"assay.dev/assay/p","Test":"TestFlaky"}
{"Action":"fail","Package":"assay.dev/assay/p","Test":"TestFlaky"}
{"Action":"run","Package":"assay.dev/assay/p","Test":"TestSkipped"}
{"Action":"output","Package":"assay.dev/assay/p","Test":"TestSkipped","Output":"    a_test.go:1: needs netem\n"}
{"Action":"skip","Package":"assay.dev/assay/p","Test":"TestSkipped"}
{"Action":"fail","Package":"assay.dev/assay/p"}
{"Action":"run","Package":"assay.dev/assay/p","Test":"TestFlaky"}
{"Action":"pass","Package":"assay.dev/assay/p","Test":"TestFlaky"}
`

func TestSum(t *testing.T) {
	tests := map[string]struct {
		events  string
		rules   rules
		lenient bool
		want    string
	}{
		"flaky and skipped": {events: events, lenient: true,
			want: "passed at the second attempt: p TestFlaky\nskipped p TestSkipped: needs netem\n3 passed, 0 failed, 1 skipped\n"},
		"a skip that is not allowed": {events: events,
			want: "passed at the second attempt: p TestFlaky\nFAIL api: hack/test/skips.txt does not allow to skip p TestSkipped: needs netem\n" +
				"skipped p TestSkipped: needs netem\n3 passed, 1 failed, 1 skipped\n"},
		"a skip that is allowed": {events: events, rules: rules{skips: [][2]string{{"p TestSkipped", "netem"}}},
			want: "passed at the second attempt: p TestFlaky\nskipped p TestSkipped: needs netem\n3 passed, 0 failed, 1 skipped\n"},
		"a skip of a test that the lane vm runs": {events: events, rules: rules{virtual: []string{"p TestSkipped"}},
			want: "passed at the second attempt: p TestFlaky\nskipped 1 tests that the lane vm runs in a kernel of its own: make test-vm\n3 passed, 0 failed, 1 skipped\n"},
		"a required test that may be skipped": {events: events, rules: rules{required: map[string][]string{"api": {"p TestSkipped"}}, skips: [][2]string{{"p TestSkipped", "netem"}}},
			want: "passed at the second attempt: p TestFlaky\nskipped p TestSkipped: needs netem\n3 passed, 0 failed, 1 skipped\n"},
		"a required test that only the lane vm may run": {events: events, rules: rules{required: map[string][]string{"api": {"p TestSkipped"}}, virtual: []string{"p TestSkipped"}},
			want: "passed at the second attempt: p TestFlaky\nFAIL api: p TestSkipped must pass, and did not run or was skipped (hack/test/lanes.txt)\n" +
				"skipped 1 tests that the lane vm runs in a kernel of its own: make test-vm\n3 passed, 1 failed, 1 skipped\n"},
		"a required test that did not run": {events: strings.ReplaceAll(events, "TestSkipped", "TestB"),
			rules: rules{required: map[string][]string{"api": {"p TestGone"}}, skips: [][2]string{{"p TestB", ""}}},
			want: "passed at the second attempt: p TestFlaky\nFAIL api: p TestGone must pass, and did not run or was skipped (hack/test/lanes.txt)\n" +
				"skipped p TestB: needs netem\n3 passed, 1 failed, 1 skipped\n"},
		"a test that never ended": {events: `{"Action":"run","Package":"assay.dev/assay/p","Test":"TestA"}`, lenient: true,
			want: "FAIL api: p TestA\n0 passed, 1 failed, 0 skipped\n"},
		"a test that fails": {lenient: true, want: "FAIL api: p TestA: want 1, got 2\n0 passed, 1 failed, 0 skipped\n", events: `
{"Action":"run","Package":"assay.dev/assay/p","Test":"TestA"}
{"Action":"output","Package":"assay.dev/assay/p","Test":"TestA","Output":"    a_test.go:9: want 1, got 2\n"}
{"Action":"output","Package":"assay.dev/assay/p","Test":"TestA","Output":"--- FAIL: TestA (0.01s)\n"}
{"Action":"fail","Package":"assay.dev/assay/p","Test":"TestA"}
`},
		"a package that does not build": {events: `{"Action":"fail","Package":"assay.dev/assay/p"}`, lenient: true,
			want: "FAIL api: p\n0 passed, 1 failed, 0 skipped\n"},
		"nothing": {want: "FAIL api: no test passed\n0 passed, 1 failed, 0 skipped\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "events")
			if err := os.WriteFile(file, []byte(tc.events), 0o644); err != nil {
				t.Fatal(err)
			}
			s := &sum{}
			l := lane{name: "api"}
			s.lane(l.name, "").add(l, nil, file)
			if !tc.lenient {
				s.judge(tc.rules)
			}
			var out strings.Builder
			s.print(&out)
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A test that one lane skips and another passes has passed.
func TestSkipThatPassesElsewhere(t *testing.T) {
	s := &sum{}
	for lane1, end := range map[string]string{"kernel": "skip", "vm": "pass"} {
		file := filepath.Join(t.TempDir(), "events")
		other := `{"Action":"run","Package":"p","Test":"TestB"}` + "\n" + `{"Action":"pass","Package":"p","Test":"TestB"}` + "\n"
		text := other + `{"Action":"run","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"` + end + `","Package":"p","Test":"TestA"}`
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		s.lane(lane1, "").add(lane{name: lane1}, nil, file)
	}
	s.judge(rules{})
	var out strings.Builder
	s.print(&out)
	if want := "2 passed, 0 failed, 0 skipped\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestRecordsAreOfTheInputs(t *testing.T) {
	t.Setenv("ASSAY_CACHE", t.TempDir())
	t.Chdir("../..")
	l := lanes[slices.IndexFunc(lanes, func(l lane) bool { return l.name == "images" })]
	to, err := passOf(t.Context(), l, []string{"./..."})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := to.at(time.Now()); ok {
		t.Error("recorded before it passed")
	}
	if err := to.record(recorded{Ended: map[string]string{"p TestOne": "pass"}}); err != nil {
		t.Fatal(err)
	}
	at, ok := to.at(time.Now())
	if !ok {
		t.Error("not recorded")
	}
	if _, ok := to.at(at.Add(passesLast + 1)); ok {
		t.Error("a record of more than a week ago counts")
	}
	l.inputs = append(l.inputs, "README.md")
	if other, err := passOf(t.Context(), l, nil); err != nil || other == to {
		t.Errorf("another input, the same record %v (%v)", other, err)
	}
}

// A recorded lane is counted with the tests of its record, and its skips have their reasons.
func TestARecordedLaneIsCounted(t *testing.T) {
	to := pass(filepath.Join(t.TempDir(), "passed", "one"))
	rules := rules{required: map[string][]string{"kernel": {"p TestOne"}}, skips: [][2]string{{"p TestTwo", "no kernel"}}}
	before := &sum{}
	if before.reuse("kernel", to, time.Now()) {
		t.Fatal("reused without a record")
	}
	ls := before.lane("kernel", to)
	ls.ended = map[string]string{"p TestOne": "pass", "p TestTwo": "skip"}
	ls.output = map[string][]string{"p TestOne": {"    one_test.go:1: fine\n"}, "p TestTwo": {"    two_test.go:3: no kernel\n"}}
	before.record()

	after := &sum{}
	if !after.reuse("kernel", to, time.Now()) {
		t.Fatal("not reused")
	}
	after.judge(rules)
	var out strings.Builder
	if after.print(&out); !strings.Contains(out.String(), "; counted, not repeated\n") ||
		!strings.HasPrefix(out.String(), "skipped p TestTwo: no kernel\n") || !strings.HasSuffix(out.String(), "\n1 passed, 0 failed, 1 skipped\n") {
		t.Errorf("got %q", out.String())
	}
	if after.lanes[0].to != "" {
		t.Error("the lane would be recorded again, with the time of now")
	}
	if (&sum{}).reuse("kernel", to, time.Now().Add(passesLast+time.Minute)) {
		t.Error("a record of more than a week ago is reused")
	}
	for name, text := range map[string]string{"of the version before": "passed\n", "without tests": "{}", "damaged": `{"Ended": {"p`} {
		if err := os.WriteFile(string(to), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if (&sum{}).reuse("kernel", to, time.Now()) {
			t.Errorf("a record is reused that is %s", name)
		}
	}
}

// The packages that take longest begin first, and exist.
func TestTheLongestPackagesBeginFirst(t *testing.T) {
	for _, l := range lanes {
		for _, dir := range l.first {
			if tests, err := filepath.Glob(filepath.Join("..", "..", dir, "*_test.go")); len(tests) == 0 || err != nil {
				t.Errorf("lane %s: %s has no tests: %v", l.name, dir, err)
			}
		}
	}
	l := lane{first: []string{"c", "b"}}
	pkgs := []string{module + "a", module + "b", module + "c", module + "d"}
	l.sort(pkgs)
	if diff := cmp.Diff([]string{module + "c", module + "b", module + "a", module + "d"}, pkgs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A System with its own module has a lane of the same name without a line here. A System with
// special needs keeps the lane that states them.
func TestSystemsHaveLanes(t *testing.T) {
	before := slices.Clone(lanes)
	t.Cleanup(func() { lanes = before })
	root := t.TempDir()
	for _, name := range []string{"cassandra", "any-name"} {
		dir := filepath.Join(root, "systems", name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	addSystems(root)
	if l, err := laneNamed("any-name"); err != nil || l.dir != "systems/any-name" || len(lanes) != len(before)+1 {
		t.Errorf("the lane any-name is %+v, %v; there are %d lanes, want one more than %d", l, err, len(lanes), len(before))
	}
}

// Two runs of a lane in one tree would read each other's events as their own. Other lanes may run.
func TestOneRunOfALane(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(".work/test", 0o755); err != nil {
		t.Fatal(err)
	}
	unit, api := lane{name: "unit"}, lane{name: "api"}
	release, err := hold(unit)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hold(unit); err == nil || !strings.Contains(err.Error(), "lane unit runs in this tree already") {
		t.Errorf("a second run of the lane: %v", err)
	}
	beside, err := hold(api)
	if err != nil {
		t.Fatalf("another lane: %v", err)
	}
	beside()
	release()
	if release, err = hold(unit); err != nil {
		t.Fatalf("the lane again: %v", err)
	}
	release()
}

// A plus joins lanes that run in turn, beside the others of the stage.
func TestLanesInTurnBesideOthers(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{".work/test", "hack/test"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("hack/test/prepare.sh", []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	before := lanes
	t.Cleanup(func() { lanes = before })
	lanes = nil
	for name, script := range map[string]string{
		"beside": "touch beside; until [ -e second ]; do sleep 0.01; done", // does not end before the chain has
		"first":  "until [ -e beside ]; do sleep 0.01; done; sleep 0.2; [ ! -e began ] && touch first",
		"second": "touch began; [ -e first ] && touch second",
	} {
		lanes = append(lanes, lane{name: name, bound: time.Minute, plain: []string{"sh", "-c", script}})
	}
	r := &runner{sum: &sum{}}
	if err := r.stage(t.Context(), "beside,first+second"); err != nil {
		t.Fatal(err)
	}
	for _, l := range r.sum.lanes {
		for test, end := range l.ended {
			if end != "pass" {
				t.Errorf("lane %s, %s: %s", l.name, test, end)
			}
		}
		if len(l.ended) != 1 {
			t.Errorf("lane %s has %d results, want one", l.name, len(l.ended))
		}
	}
	if len(r.sum.lanes) != 3 {
		t.Errorf("%d lanes ran, want 3", len(r.sum.lanes))
	}
}

// A script that hangs ends at its bound, with its children.
func TestGroupEndsAtItsBound(t *testing.T) {
	began := time.Now()
	var out strings.Builder
	_, err := group(t.Context(), 300*time.Millisecond, false, &out, `echo "$0 $1"; sleep 60 & wait`, "a", "b")
	if err == nil || err.Error() != "did not end within 300ms" || out.String() != "a b\n" {
		t.Errorf("error %v, output %q", err, out.String())
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it ended after %v", took)
	}
	if _, err := group(t.Context(), time.Minute, false, &out, "exit 3"); err == nil || err.Error() != "exit status 3" {
		t.Errorf("error %v, want that of the script", err)
	}
}

// Lanes that compute leave the processors to the trials of lanes beside them. This test may itself
// run in such a lane.
func TestAGroupThatYieldsHasTheLowestPriority(t *testing.T) {
	own, err := exec.Command("nice").Output()
	if err != nil {
		t.Fatal(err)
	}
	for yields, want := range map[bool]string{false: string(own), true: fmt.Sprintln(lowest)} {
		var out strings.Builder
		script := fmt.Sprintf(`for i in {1..50}; do [[ $(nice) != %d ]] || break; sleep 0.02; done; nice`, lowest)
		if _, err := group(t.Context(), time.Minute, yields, &out, script); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("yields %v: the priority is %q, want %q", yields, out.String(), want)
		}
	}
}
