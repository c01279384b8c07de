package main

import (
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// feed returns the last lines that a tally prints about events: skips and sum,
// and how many FAIL lines came before them.
func feed(group, events string) (lines []string, fails int) {
	var out strings.Builder
	t := newTally(&out)
	t.begin(group)
	read(strings.NewReader(events), t.take)
	t.end()
	fails = strings.Count("\n"+out.String(), "\nFAIL ")
	out.Reset()
	t.close()
	return strings.Split(strings.TrimSpace(out.String()), "\n"), fails
}

func TestTally(t *testing.T) {
	for name, tc := range map[string]struct {
		events string
		want   []string
		fails  int
	}{
		"a test with subtests is not counted": {`
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA/x"}
{"Action":"pass","Package":"p","Test":"TestA/y"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestAB"}
{"Action":"pass","Package":"p"}`, []string{"3 passed, 0 failed, 0 skipped"}, 0},
		"a failing subtest counts once": {`
{"Action":"output","Package":"p","Test":"TestA/x","Output":"    a_test.go:1: wrong\n"}
{"Action":"fail","Package":"p","Test":"TestA/x"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}`, []string{"0 passed, 1 failed, 0 skipped"}, 1},
		"a test that fails beside its subtests counts": {`
{"Action":"pass","Package":"p","Test":"TestA/x"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}`, []string{"1 passed, 1 failed, 0 skipped"}, 1},
		"skips show their reason": {`
{"Action":"output","Package":"assay.dev/assay/p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"assay.dev/assay/p","Test":"TestA","Output":"    a_test.go:12: no such kernel\n"}
{"Action":"output","Package":"assay.dev/assay/p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"assay.dev/assay/p","Test":"TestA"}
{"Action":"pass","Package":"assay.dev/assay/p","Test":"TestB"}
{"Action":"pass","Package":"assay.dev/assay/p"}`, []string{"skipped p TestA: no such kernel", "1 passed, 0 failed, 1 skipped"}, 0},
		"a package that does not build fails": {`
{"ImportPath":"p [p.test]","Action":"build-output","Output":"p/a.go:1: undefined: x\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`, []string{"0 passed, 1 failed, 0 skipped"}, 1},
		"a process that ends early fails": {`
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"panic: x\n"}
{"Action":"fail","Package":"p"}`, []string{"1 passed, 1 failed, 0 skipped"}, 1},
		"no test at all fails": {`
{"Action":"skip","Package":"p"}`, []string{"0 passed, 1 failed, 0 skipped"}, 1},
		"only skipped tests fail the group": {`
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}`, []string{"skipped p TestA: no reason given", "0 passed, 1 failed, 1 skipped"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, fails := feed("unit", tc.events)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if fails != tc.fails {
				t.Errorf("%d FAIL lines, want %d", fails, tc.fails)
			}
		})
	}
}

func TestATestThatRunsInTwoPlacesCountsOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		here, there string
		want        string
	}{
		"passes in both":    {"pass", "pass", "1 passed, 0 failed, 0 skipped"},
		"skipped here":      {"skip", "pass", "1 passed, 0 failed, 0 skipped"},
		"skipped there":     {"pass", "skip", "1 passed, 0 failed, 0 skipped"},
		"skipped in both":   {"skip", "skip", "0 passed, 0 failed, 1 skipped"},
		"fails there":       {"pass", "fail", "0 passed, 1 failed, 0 skipped"},
		"fails here":        {"fail", "pass", "0 passed, 1 failed, 0 skipped"},
		"skipped and fails": {"skip", "fail", "0 passed, 1 failed, 0 skipped"},
		"fails in both":     {"fail", "fail", "0 passed, 1 failed, 0 skipped"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			sum := newTally(&out)
			sum.begin("netem")
			sum.add(event{Action: tc.here, Package: "p", Test: "TestA"})
			sum.again()
			sum.add(event{Action: tc.there, Package: "p", Test: "TestA"})
			sum.close()
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if got := lines[len(lines)-1]; got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestASecondAttempt(t *testing.T) {
	const (
		over     = `{"Action":"output","Package":"assay.dev/assay/p","Output":"FAIL\n"}` + "\n" + `{"Action":"fail","Package":"assay.dev/assay/p"}` + "\n"
		over2    = `{"Action":"pass","Package":"assay.dev/assay/p"}` + "\n"
		failsA   = `{"Action":"fail","Package":"assay.dev/assay/p","Test":"TestA"}` + "\n"
		passesA  = `{"Action":"pass","Package":"assay.dev/assay/p","Test":"TestA"}` + "\n"
		failsAX  = `{"Action":"fail","Package":"assay.dev/assay/p","Test":"TestA/x"}` + "\n"
		passesAX = `{"Action":"pass","Package":"assay.dev/assay/p","Test":"TestA/x"}` + "\n"
		passesAY = `{"Action":"pass","Package":"assay.dev/assay/p","Test":"TestA/y"}` + "\n"
		failsAY  = `{"Action":"fail","Package":"assay.dev/assay/p","Test":"TestA/y"}` + "\n"
		passesB  = `{"Action":"pass","Package":"assay.dev/assay/p","Test":"TestB"}` + "\n"
	)
	p := module + "p"
	for name, tc := range map[string]struct {
		first, second string
		failures      map[string][]string // after the first
		want          string
		twice         int
	}{
		"passes":                         {failsA + passesB + over, passesA + over2, map[string][]string{p: {"TestA"}}, "2 passed, 0 failed, 0 skipped", 1},
		"fails again":                    {failsA + passesB + over, failsA + over, map[string][]string{p: {"TestA"}}, "1 passed, 1 failed, 0 skipped", 0},
		"dies":                           {failsA + passesB + over, over, map[string][]string{p: {"TestA"}}, "1 passed, 2 failed, 0 skipped", 0},
		"a subtest passes":               {failsAX + failsA + over, passesAX + passesA + over2, map[string][]string{p: {"TestA"}}, "1 passed, 0 failed, 0 skipped", 1},
		"beside its subtests":            {passesAX + failsA + over, passesAX + passesA + over2, map[string][]string{p: {"TestA"}}, "1 passed, 0 failed, 0 skipped", 1},
		"subtests that were not reached": {failsAX + failsA + over, passesAX + passesAY + passesA + over2, map[string][]string{p: {"TestA"}}, "2 passed, 0 failed, 0 skipped", 1},
		"another subtest fails":          {failsAX + passesAY + failsA + over, passesAX + failsAY + failsA + over, map[string][]string{p: {"TestA"}}, "1 passed, 1 failed, 0 skipped", 1},
		"not of one that ends before all its tests": {failsA + `{"Action":"fail","Package":"assay.dev/assay/p"}`, "", map[string][]string{p: nil}, "0 passed, 1 failed, 0 skipped", 0},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			sum := newTally(&out)
			sum.begin("e2e")
			read(strings.NewReader(tc.first), sum.take)
			if diff := cmp.Diff(tc.failures, sum.failures()); diff != "" {
				t.Errorf("what is to be run again (-want +got):\n%s", diff)
			}
			sum.second()
			read(strings.NewReader(tc.second), sum.take)
			sum.close()
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if got := lines[len(lines)-1]; got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			if got := strings.Count(out.String(), "passed at the second attempt"); got != tc.twice {
				t.Errorf("%d tests are named for their second attempt, want %d:\n%s", got, tc.twice, out.String())
			}
		})
	}
}

// What failed twice decides nothing if others had most of the machine both times, and only then.
func TestUndecided(t *testing.T) {
	const pkg = module + "p"
	for name, tc := range map[string]struct {
		stolen  []int64 // of each attempt, in percent
		passes  bool    // the second one
		quick   bool
		part    bool // is what fails
		own     bool // the part takes long enough by itself, and loses nothing
		hurried bool // no time for a second attempt
		want    string
	}{
		"both":                            {stolen: []int64{30, 40}, want: "0 passed, 0 failed, 1 skipped"},
		"the first":                       {stolen: []int64{30, 10}, want: "0 passed, 1 failed, 0 skipped"},
		"the second":                      {stolen: []int64{10, 30}, want: "0 passed, 1 failed, 0 skipped"},
		"in no time":                      {stolen: []int64{30, 40}, quick: true, want: "0 passed, 1 failed, 0 skipped"},
		"a part in no time":               {stolen: []int64{30, 40}, part: true, want: "0 passed, 0 failed, 1 skipped"},
		"no time for a second":            {stolen: []int64{30}, hurried: true, want: "0 passed, 0 failed, 1 skipped"},
		"no time for a second, and quiet": {stolen: []int64{20}, hurried: true, want: "0 passed, 1 failed, 0 skipped"},
		"a part in its own time":          {stolen: []int64{30, 40}, part: true, own: true, want: "0 passed, 1 failed, 0 skipped"},
		"one attempt":                     {stolen: []int64{90}, want: "0 passed, 1 failed, 0 skipped"},
		"the second passes":               {stolen: []int64{30, 40}, passes: true, want: "1 passed, 0 failed, 0 skipped"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			sum := newTally(&out)
			sum.begin("e2e")
			for i, stolen := range tc.stolen {
				action := "fail"
				if i == 1 {
					sum.second()
					if tc.passes {
						action = "pass"
					}
				}
				began := time.Now()
				ended := began.Add(waits)
				if tc.quick {
					ended = began.Add(waits / 2)
				}
				sum.add(event{Action: "run", Package: pkg, Test: "TestA", at: began, machine: cpuTimes{all: 1000, steal: 100}})
				end := event{Action: action, Package: pkg, Test: "TestA", at: ended, machine: cpuTimes{all: 1100, steal: 100 + stolen}}
				if tc.part {
					part := end
					part.Test = "TestA/x"
					begun := event{Action: "run", Package: pkg, Test: part.Test, at: ended, machine: end.machine}
					if tc.own {
						begun.at, begun.machine = began, cpuTimes{all: 1000, steal: 100 + stolen}
					}
					sum.add(begun)
					sum.add(part)
				}
				sum.add(end)
			}
			sum.noSecond = tc.hurried
			sum.undecided()
			sum.close()
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if got := lines[len(lines)-1]; got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			named := regexp.MustCompile("skipped p TestA(/x)?: undecided: failed(, see above, while others were given 30.0% of| in both attempts, see above, while others were given 30.0% and 40.0% of) the machine's processors").MatchString(out.String())
			if want := sum.skipped == 1; named != want {
				t.Errorf("named as undecided: %v, want %v:\n%s", named, want, out.String())
			}
		})
	}
}

// Of a test whose parts run by themselves those are run again that failed, unless it failed beside them.
func TestSelections(t *testing.T) {
	const pkg = module + "p"
	for name, tc := range map[string]struct {
		failed []string
		want   []string
		need   time.Duration
	}{
		"a test":           {[]string{"TestA"}, []string{"-run=^(TestA)$"}, least + 150*time.Second},
		"parts":            {[]string{"TestB/y/1", "TestB/y", "TestB/x", "TestB"}, []string{"-run=^(TestB)$/^(x|y)$"}, least + 3*setUp/2 + 300*time.Second},
		"beside its parts": {[]string{"TestB"}, []string{"-run=^(TestB)$"}, least + 150*time.Second},
		"both":             {[]string{"TestA", "TestB/x", "TestB"}, []string{"-run=^(TestA)$", "-run=^(TestB)$/^(x)$"}, least + 3*setUp/2 + 300*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			sum := newTally(io.Discard)
			sum.begin("install")
			sum.apart = []string{"TestB"}
			for _, test := range tc.failed {
				began := time.Now()
				sum.add(event{Action: "run", Package: pkg, Test: test, at: began})
				sum.add(event{Action: "fail", Package: pkg, Test: test, at: began.Add(100 * time.Second)})
			}
			failed := sum.failures()
			if diff := cmp.Diff(tc.want, sum.selections(pkg, failed[pkg])); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if need := sum.need(failed); need != tc.need {
				t.Errorf("needs %s, want %s", need, tc.need)
			}
		})
	}
}

// What fails in the virtual machine has a second attempt there; what had failed here before has none, and stays failed.
func TestASecondAttemptInAnotherPlace(t *testing.T) {
	p := module + "p"
	for name, tc := range map[string]struct {
		here  string
		rerun []string
		want  string
	}{
		"passed here":      {"pass", []string{"TestA"}, "1 passed, 0 failed, 0 skipped"},
		"was skipped here": {"skip", []string{"TestA"}, "1 passed, 0 failed, 0 skipped"},
		"failed here":      {"fail", nil, "0 passed, 1 failed, 0 skipped"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			sum := newTally(&out)
			sum.begin("netem")
			sum.add(event{Action: tc.here, Package: p, Test: "TestA"})
			before := sum.failures()
			sum.again()
			sum.add(event{Action: "fail", Package: p, Test: "TestA"})
			var rerun []string
			sum.retry([]string{p}, before, func(_ string, tests []string) {
				rerun = tests
				sum.add(event{Action: "pass", Package: p, Test: "TestA"})
			})
			sum.close()
			if diff := cmp.Diff(tc.rerun, rerun); diff != "" {
				t.Errorf("run again (-want +got):\n%s", diff)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if got := lines[len(lines)-1]; got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestRunsInVM(t *testing.T) {
	g := group{vm: module + "netem", vmTests: []selection{{module + "agent", "^TestA$/^(EDT|Netem)$"}, {module + "agent", "^TestB$"}}}
	for name, tc := range map[string]struct {
		pkg  string
		want [][]string
	}{
		"a package below": {module + "netem/edt", [][]string{{"-json", module + "netem/edt", "-v", "-run=^(TestA)$"}}},
		"a selection":     {module + "agent", [][]string{{"-json", module + "agent", "-v", "-run=^TestA$/^(EDT|Netem)$"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, g.runsInVM(tc.pkg, []string{"TestA"}, []string{"-json"}, []string{"-v"})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestATestThatIsSkippedHereAndHasSubtestsThere(t *testing.T) {
	var out strings.Builder
	sum := newTally(&out)
	sum.begin("netem")
	sum.add(event{Action: "skip", Package: "p", Test: "TestA"})
	sum.again()
	for _, test := range []string{"TestA/x", "TestA/y", "TestA"} {
		sum.add(event{Action: "pass", Package: "p", Test: test})
	}
	if sum.passed != 2 || sum.skipped != 0 || len(sum.skips) != 0 {
		t.Errorf("%d passed, %d skipped (%v), want 2 and 0", sum.passed, sum.skipped, sum.skips)
	}
}

func TestGroupOf(t *testing.T) {
	for name, tc := range map[string]struct {
		pkg     string
		imports []string
		want    string
	}{
		"plain":           {module + "operator/internal/plan", []string{"testing"}, "unit"},
		"kernel":          {module + "operator/internal/netem", []string{"testing"}, "netem"},
		"agent":           {module + "operator/internal/agent", []string{"testing"}, "netem"},
		"API server":      {module + "operator/internal/controller/trial", []string{"sigs.k8s.io/controller-runtime/pkg/envtest"}, "integration"},
		"by testenv":      {module + "operator/api/v1alpha1", []string{module + "operator/internal/testenv"}, "integration"},
		"etcd":            {module + "systems/etcd/cmd/etcd-driver", []string{module + "systems/etcd/internal/testetcd"}, "integration"},
		"S3":              {module + "operator/internal/store", []string{module + "operator/internal/tests3"}, "integration"},
		"cluster":         {module + "operator/test/e2e", []string{"testing"}, "e2e"},
		"chart":           {module + "charts/assay", []string{"testing"}, "chart"},
		"agent's program": {module + "operator/cmd/agent", nil, "unit"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := groupOf(tc.pkg, tc.imports); got != tc.want {
				t.Errorf("groupOf = %s, want %s", got, tc.want)
			}
		})
	}
}
