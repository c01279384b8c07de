package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stage is where jobs run that are played: each says that its package's one test passed, or fails with the first of as many failures as are left of it.
type stage struct {
	mu       sync.Mutex
	course   []string                 // what began and ended
	failures map[string]int           // by what a job is of
	waits    map[string]chan struct{} // what a job waits for before it ends
	begins   map[string]chan struct{} // closed as a job begins
}

// of is what a job is of: the last package that it names, and whether that is tested in a virtual machine.
func of(j job) string {
	var pkg string
	for _, arg := range j.command {
		if strings.HasPrefix(arg, module) {
			pkg = short(arg)
		}
	}
	if j.command[0] == "hack/vm/test.sh" {
		pkg += " in VM"
	}
	if slices.ContainsFunc(j.command, func(arg string) bool { return strings.HasPrefix(arg, "-run=") }) {
		pkg += " again"
	}
	return pkg
}

func (s *stage) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.course = append(s.course, what)
}

func (s *stage) run(ctx context.Context, j job, say func(item)) end {
	what := of(j)
	s.note(what + " begins")
	if c := s.begins[what]; c != nil {
		close(c)
	}
	if c := s.waits[what]; c != nil {
		select {
		case <-c:
		case <-ctx.Done():
			say(item{end: &end{err: ctx.Err()}})
			return end{err: ctx.Err()}
		case <-time.After(time.Minute):
			s.note(what + " has waited in vain")
		}
	}
	pkg, _, _ := strings.Cut(what, " ")
	action := "pass"
	s.mu.Lock()
	if s.failures[what] > 0 {
		s.failures[what]--
		action = "fail"
	}
	s.mu.Unlock()
	now := time.Now()
	for _, e := range []event{
		{Action: "run", Package: module + pkg, Test: "TestA", at: now.Add(-time.Minute), machine: cpuTimes{all: 1000, steal: 100}},
		{Action: action, Package: module + pkg, Test: "TestA", at: now, machine: cpuTimes{all: 2000, steal: 350}},
		{Action: "output", Package: module + pkg, Output: strings.ToUpper(action) + "\n"},
		{Action: action, Package: module + pkg},
	} {
		say(item{event: e})
	}
	say(item{line: what + " is compiled\n", complaint: true})
	s.note(what + " ends")
	say(item{end: &end{}})
	return end{}
}

// after makes a job end only when another one has begun.
func (s *stage) after(job, other string) {
	s.begins[other] = make(chan struct{})
	s.waits[job] = s.begins[other]
}

// play runs groups on a stage, and returns what is shown of it, with all durations as N.
func play(t *testing.T, s *stage, b bound, names ...string) string {
	t.Helper()
	prepare := func(what string) func(context.Context) ([]string, error) {
		return func(context.Context) ([]string, error) {
			s.note(what + " is prepared")
			return nil, nil
		}
	}
	all := []group{
		{name: "infra", timeout: time.Hour, prepare: prepare("infra")},
		{name: "integration", timeout: time.Hour, prepare: prepare("integration")},
		{name: "netem", timeout: time.Hour, vm: module + "netem", beside: "integration", vmBeside: "infra", vmPrepare: prepare("the virtual machine")},
		{name: "e2e", timeout: time.Hour},
	}
	var out strings.Builder
	session := newSession(&out)
	session.t.complaints, session.bound, session.run, session.byGroup = &out, b, s.run, map[string][]string{}
	for _, name := range names {
		session.groups = append(session.groups, all[slices.IndexFunc(all, func(g group) bool { return g.name == name })])
		session.byGroup[name] = []string{module + name}
	}
	session.all(t.Context())
	text := regexp.MustCompile(`\d+(\.\d)? s\b`).ReplaceAllString(out.String(), "N s")
	return regexp.MustCompile(` in \d+s`).ReplaceAllString(text, " in N")
}

func newStage() *stage {
	return &stage{failures: map[string]int{}, waits: map[string]chan struct{}{}, begins: map[string]chan struct{}{}}
}

// What runs beside another group is shown in its own turn, in full, and what failed of it has its second attempt then, alone.
func TestWhatRunsBesideAnotherGroup(t *testing.T) {
	s := newStage()
	s.failures["netem"], s.failures["netem in VM"] = 1, 1
	s.after("infra", "netem in VM")
	s.after("netem in VM", "integration") // still runs then
	s.after("integration", "netem")
	shown := play(t, s, bound{}, "infra", "integration", "netem", "e2e")
	want := `== infra
== netem in a virtual machine runs beside infra, and is shown in its turn
  pass   N s  infra: 1 passed, 0 failed, 0 skipped
infra is compiled
== infra: N s
== integration
== netem runs beside integration, and is shown in its turn
  pass   N s  integration: 1 passed, 0 failed, 0 skipped
integration is compiled
== integration: N s
== netem
FAIL netem TestA
  fail   N s  netem: 0 passed, 1 failed, 0 skipped
netem is compiled
== netem, a second attempt at what failed
  pass   N s  netem: 1 passed, 0 failed, 0 skipped
netem again is compiled
== netem, in a virtual machine
FAIL netem TestA
  fail   N s  netem: 0 passed, 1 failed, 0 skipped
netem in VM is compiled
== netem, a second attempt at what failed
  pass   N s  netem: 1 passed, 0 failed, 0 skipped
netem in VM again is compiled
== netem: N s in its turn, N s beside integration, N s in a virtual machine beside infra
== e2e
  pass   N s  e2e: 1 passed, 0 failed, 0 skipped
e2e is compiled
== e2e: N s
netem TestA: passed at the second attempt; during the first, others were given 25.0% of the machine's processors
netem TestA: passed at the second attempt; during the first, others were given 25.0% of the machine's processors
4 passed, 0 failed, 0 skipped
`
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	wantCourse := []string{
		"infra is prepared", "the virtual machine is prepared", "infra begins", "netem in VM begins", "infra ends",
		"integration is prepared", "integration begins", "netem in VM ends", "netem begins", "integration ends", "netem ends",
		"netem again begins", "netem again ends", "netem in VM again begins", "netem in VM again ends", "e2e begins", "e2e ends",
	}
	// Which of two that run beside each other begins or ends first is open.
	for _, course := range [][]string{wantCourse, s.course} {
		slices.Sort(course[2:5])
		if i := slices.Index(course, "integration ends"); i > 0 && course[i-1] == "netem ends" {
			course[i-1], course[i] = course[i], course[i-1]
		}
	}
	if diff := cmp.Diff(wantCourse, s.course); diff != "" {
		t.Errorf("course (-want +got):\n%s", diff)
	}
}

// A group runs by itself when the one is not asked for that it may run beside.
func TestWhatRunsByItself(t *testing.T) {
	here, there := []string{"netem begins", "netem ends"}, []string{"netem in VM begins", "netem in VM ends"}
	for name, tc := range map[string]struct {
		groups []string
		want   []string
	}{
		"alone":              {[]string{"netem"}, slices.Concat(here, there)},
		"in another order":   {[]string{"netem", "infra"}, slices.Concat(here, there, []string{"infra is prepared", "infra begins", "infra ends"})},
		"nothing beside e2e": {[]string{"e2e", "netem"}, slices.Concat([]string{"e2e begins", "e2e ends"}, here, there)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage()
			shown := play(t, s, bound{}, tc.groups...)
			if diff := cmp.Diff(tc.want, s.course); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if strings.Contains(shown, "beside") {
				t.Errorf("shown:\n%s", shown)
			}
		})
	}
}

// Only what runs in the virtual machine runs beside infra then, and ends before the rest of its group begins.
func TestOneOfTwoPartsRunsBesideAnotherGroup(t *testing.T) {
	s := newStage()
	s.after("infra", "netem in VM")
	s.waits["netem in VM"] = make(chan struct{})
	time.AfterFunc(100*time.Millisecond, func() { close(s.waits["netem in VM"]) })
	shown := play(t, s, bound{}, "infra", "netem")
	if at := slices.Index(s.course, "netem begins"); at < slices.Index(s.course, "netem in VM ends") {
		t.Errorf("the course was %q", s.course)
	}
	if want := "\n== netem: N s in its turn, N s in a virtual machine beside infra\n"; !strings.Contains(shown, want) {
		t.Errorf("shown without %q:\n%s", want, shown)
	}
}

func TestWhatCannotBePreparedToRunBesideAnotherGroup(t *testing.T) {
	var out strings.Builder
	s := newSession(&out)
	s.t.complaints = &out
	if s.canRunBeside(t.Context(), "netem", "infra", func(context.Context) ([]string, error) { return nil, errors.New("no network") }) {
		t.Error("it runs")
	}
	if want := "netem does not run beside infra: no network\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// A signal ends all that runs, and the sum is there.
func TestASignal(t *testing.T) {
	s := newStage()
	s.after("infra", "nothing")
	s.waits["netem in VM"] = make(chan struct{})
	var out strings.Builder
	session := newSession(&out)
	session.t.complaints, session.run = &out, s.run
	session.groups = []group{{name: "infra", timeout: time.Hour}, {name: "netem", timeout: time.Hour, vm: module + "netem", vmBeside: "infra"}}
	session.byGroup = map[string][]string{"infra": {module + "infra"}, "netem": {module + "netem"}}
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, stop)
	session.all(ctx)
	for _, p := range session.parts {
		select {
		case <-p.stopped:
		default:
			t.Errorf("%s still runs", p.what)
		}
	}
	if !strings.Contains(out.String(), "FAIL infra\n    stopped by a signal\n") || !strings.HasSuffix(out.String(), " skipped\n") {
		t.Errorf("shown:\n%s", out.String())
	}
}

func TestWhatDoesNotFit(t *testing.T) {
	in := func(d time.Duration) bound { return bound{time.Now().Add(d)} }
	for name, tc := range map[string]struct {
		bound bound
		fails []string
		want  string
	}{
		"all of it": {in(30 * time.Second), nil, `== infra
== infra: N s
== integration
== integration: N s
== netem
== netem: N s
FAIL everything
    ran no test
skipped infra: no time left: not begun, all tests end in N (-within)
skipped integration: no time left: not begun, all tests end in N (-within)
skipped netem: no time left: not begun, all tests end in N (-within)
0 passed, 1 failed, 3 skipped
`},
		"a second attempt": {in(2 * time.Minute), []string{"infra"}, `== infra
== netem in a virtual machine runs beside infra, and is shown in its turn
FAIL infra TestA
  fail   N s  infra: 0 passed, 1 failed, 0 skipped
infra is compiled
== infra, no second attempt at what failed: no time left: needs up to 2m30s, and all tests end in N (-within)
== infra: N s
`},
		"nothing": {in(time.Hour), []string{"infra"}, `== infra
== netem in a virtual machine runs beside infra, and is shown in its turn
FAIL infra TestA
  fail   N s  infra: 0 passed, 1 failed, 0 skipped
infra is compiled
== infra, a second attempt at what failed
`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage()
			for _, f := range tc.fails {
				s.failures[f] = 1
			}
			shown := strings.ReplaceAll(play(t, s, tc.bound, "infra", "integration", "netem"), " in 2m0s", " in N")
			if !strings.HasPrefix(shown, tc.want) {
				t.Errorf("(-want +got):\n%s", cmp.Diff(tc.want, shown[:min(len(tc.want), len(shown))]))
			}
		})
	}
}

// A group whose tests found themselves that there is no time for them is not one that ran no test.
func TestNoTimeIsNoFailure(t *testing.T) {
	const events = `
{"Action":"output","Package":"assay.dev/assay/p","Test":"TestA","Output":"    a_test.go:12: no time left: needs up to 5m0s, and all tests end in 3m12s (-within)\n"}
{"Action":"skip","Package":"assay.dev/assay/p","Test":"TestA"}
{"Action":"pass","Package":"assay.dev/assay/p"}`
	want := []string{"skipped p TestA: no time left: needs up to 5m0s, and all tests end in 3m12s (-within)", "0 passed, 0 failed, 1 skipped"}
	got, fails := feed("e2e", events)
	if diff := cmp.Diff(want, got); diff != "" || fails > 0 {
		t.Errorf("%d failures (-want +got):\n%s", fails, diff)
	}
}

func TestPreparing(t *testing.T) {
	hangs := func(ctx context.Context) ([]string, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for name, tc := range map[string]struct {
		left    time.Duration
		prepare func(context.Context) ([]string, error)
		timeout time.Duration // of the group
		want    error
	}{
		"nothing":     {left: time.Hour},
		"in time":     {left: time.Hour, prepare: func(context.Context) ([]string, error) { return nil, nil }},
		"not in time": {left: time.Second, prepare: hangs, timeout: time.Hour, want: noTime("what it needs was not prepared after 1s, when all tests were to end (-within)")},
		"it hangs":    {left: time.Second, prepare: hangs, timeout: time.Second / 2, want: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := bound{time.Now().Add(tc.left)}.preparing(t.Context(), group{prepare: tc.prepare, timeout: tc.timeout})
			if !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
		})
	}
}

func TestBound(t *testing.T) {
	in := func(d time.Duration) bound { return bound{time.Now().Add(d)} }
	for name, tc := range map[string]struct {
		bound       bound
		wantTimeout time.Duration // of a package that has twenty minutes
		wantLate    string
		wantEnd     time.Duration // of a group that has twice as much
	}{
		"none":          {bound{}, 20 * time.Minute, "", 40 * time.Minute},
		"far away":      {in(time.Hour), 20 * time.Minute, "", 40 * time.Minute},
		"within a half": {in(30 * time.Minute), 20 * time.Minute, "", 37 * time.Minute},
		"near":          {in(10 * time.Minute), 16 * time.Minute, "", 17 * time.Minute},
		"very near":     {in(42 * time.Second), 6*time.Minute + 42*time.Second, "no time left: not begun, all tests end in 42s (-within)", 7*time.Minute + 42*time.Second},
		"over":          {in(-42 * time.Second), 6 * time.Minute, "no time left: not begun, all tests were to end 42s ago (-within)", 7*time.Minute - 42*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.bound.timeout(20 * time.Minute); got != tc.wantTimeout {
				t.Errorf("timeout %s, want %s", got, tc.wantTimeout)
			}
			late := ""
			if err := tc.bound.late(); err != nil {
				late = err.Error()
			}
			if late != tc.wantLate {
				t.Errorf("%q, want %q", late, tc.wantLate)
			}
			ctx, cancel := tc.bound.context(t.Context(), 40*time.Minute)
			defer cancel()
			ends, _ := ctx.Deadline()
			if got := time.Until(ends).Round(time.Second); got != tc.wantEnd {
				t.Errorf("ends in %s, want %s", got, tc.wantEnd)
			}
		})
	}
}

// Without a bound, the one of a caller further up stays.
func TestWithin(t *testing.T) {
	t.Setenv(untilVariable, "")
	for _, d := range []time.Duration{0, time.Hour} {
		b, err := within(d)
		if err != nil || b.until.IsZero() != (d == 0) {
			t.Errorf("within %s: %v, %v", d, b, err)
		}
	}
	if _, err := within(-time.Second); err == nil {
		t.Error("a negative time is taken")
	}
	if got := fmt.Sprint(bound{}.left() > 1000*time.Hour); got != "true" {
		t.Error("no bound is one")
	}
}
