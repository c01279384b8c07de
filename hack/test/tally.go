package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// slow tests are shown as they end, so that long groups show progress.
const slow = 5 * time.Second

// event is one line of `go test -json`, see `go doc test2json`.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build-output: the package, perhaps with " [test variant]"
	Test        string
	Elapsed     float64 // seconds
	Output      string
	FailedBuild string // of a failed package: the ImportPath whose build-output explains it

	at      time.Time // it came, which may be long before it is counted
	machine cpuTimes  // by then, of what begins a test and of what fails
}

// tally counts tests and prints what a reader wants to know about them.
type tally struct {
	w                       io.Writer
	complaints              io.Writer // of processes
	passed, failed, skipped int
	told                    int // failures that were printed: one test may fail more than once
	skips                   []skip
	ended                   map[string]string        // how tests ended, by name, in this group
	repeated                bool                     // see again
	retried                 bool                     // see second
	noSecond                bool                     // what failed in this group has no second attempt, for want of time
	twice                   []string                 // tests that passed at the second attempt
	broken                  []string                 // packages of this group in which not every test has ended
	begun                   map[string]event         // by which tests began, by name
	stolen                  map[string][]share       // the shares of the machine that others had in each attempt at a test that failed, by name
	took                    map[string]time.Duration // what tests took that failed, by name
	bound                   bound                    // of second attempts
	apart                   []string                 // see group

	group    string
	started  time.Time
	asides   []string                    // what of the group did not run in its turn, and how long that took
	hurried  bool                        // something of this group was skipped for want of time
	ran      int                         // passed + failed before this group
	packages map[string]*packageProgress // those that have not ended
	builds   map[string]*strings.Builder // what the compiler printed, by ImportPath
}

// skip is a test that was not run, and why.
type skip struct{ what, reason string }

type packageProgress struct {
	passed, failed, skipped int
	output                  map[string]*strings.Builder // by test; "" is outside of any test
	parent, childFailed     map[string]bool
}

func newTally(w io.Writer) *tally {
	return &tally{w: w, complaints: os.Stderr, begun: map[string]event{}, stolen: map[string][]share{}, took: map[string]time.Duration{}, packages: map[string]*packageProgress{}, builds: map[string]*strings.Builder{}}
}

func (t *tally) begin(group string) {
	t.group, t.started, t.ran = group, time.Now(), t.passed+t.failed
	t.ended, t.repeated, t.retried, t.broken, t.asides, t.hurried, t.noSecond = map[string]string{}, false, false, nil, nil, false, false
	fmt.Fprintf(t.w, "== %s\n", group)
}

// again says that from now on the group's tests are run a second time, elsewhere.
// Each counts once: it has failed if it did in one of the places, passed if it did
// in one and did not fail.
func (t *tally) again() {
	t.repeated, t.retried = true, false
	fmt.Fprintf(t.w, "== %s, in a virtual machine\n", t.group)
}

// aside is told of a part that ran beside another group, if it did, and of where that was.
func (t *tally) aside(p *part, where string) {
	if p.beside != "" {
		t.asides = append(t.asides, fmt.Sprintf(", %.0f s%s beside %s", p.took.Seconds(), where, p.beside))
	}
}

// end fails a group that proved nothing: it would look like a success. One that had no time has said so.
func (t *tally) end() {
	if t.passed+t.failed == t.ran && !t.hurried {
		t.fail(t.group, "ran no test\n")
	}
	turn := ""
	if len(t.asides) > 0 {
		turn = " in its turn" + strings.Join(t.asides, "")
	}
	fmt.Fprintf(t.w, "== %s: %.0f s%s\n", t.group, time.Since(t.started).Seconds(), turn)
}

func (t *tally) close() {
	for _, s := range t.twice {
		fmt.Fprintln(t.w, s)
	}
	for _, s := range t.skips {
		fmt.Fprintf(t.w, "skipped %s: %s\n", s.what, s.reason)
	}
	fmt.Fprintf(t.w, "%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
}

func (t *tally) fail(what, output string) {
	t.failed++
	t.told++
	fmt.Fprintf(t.w, "FAIL %s\n%s", what, indent(output))
}

func (t *tally) skip(what, reason string) {
	t.skipped++
	t.hurried = t.hurried || strings.HasPrefix(reason, noTimeLeft)
	t.skips = append(t.skips, skip{what, reason})
}

// late skips all of these if there was no time for them; another error is returned.
func (t *tally) late(what []string, err error) error {
	var reason noTime
	if !errors.As(err, &reason) {
		return err
	}
	for _, w := range what {
		t.skip(w, reason.Error())
	}
	return nil
}

// unskip takes back a skipped test that was run elsewhere.
func (t *tally) unskip(name string) {
	t.skipped--
	t.skips = slices.DeleteFunc(t.skips, func(s skip) bool { return s.what == name })
	delete(t.ended, name)
}

// take counts an event, or shows what is none: nothing may get lost.
func (t *tally) take(i item) {
	switch {
	case i.complaint:
		fmt.Fprint(t.complaints, i.line)
	case i.line != "":
		fmt.Fprint(t.w, i.line)
	default:
		t.add(i.event)
	}
}

func (t *tally) add(e event) {
	switch e.Action {
	case "build-output":
		write(t.builds, e.ImportPath, e.Output)
		return
	case "build-fail":
		return // the package's own failure names it
	}
	p := t.packages[e.Package]
	if p == nil {
		p = &packageProgress{output: map[string]*strings.Builder{}, parent: map[string]bool{}, childFailed: map[string]bool{}}
		t.packages[e.Package] = p
	}
	switch {
	case e.Action == "output":
		write(p.output, e.Test, e.Output)
	case e.Action == "run":
		t.begun[short(e.Package)+" "+e.Test] = e
	case e.Action != "pass" && e.Action != "fail" && e.Action != "skip": // pause, cont, start
	case e.Test == "":
		t.endPackage(p, e)
		delete(t.packages, e.Package)
	default:
		t.endTest(p, e)
	}
}

// endTest counts a test that has no subtests, or that failed by itself beside
// subtests that did not. Subtests end before their parent.
func (t *tally) endTest(p *packageProgress, e event) {
	if i := strings.LastIndexByte(e.Test, '/'); i >= 0 {
		p.parent[e.Test[:i]] = true
		if e.Action == "fail" {
			p.childFailed[e.Test[:i]] = true
		}
	}
	name := short(e.Package) + " " + e.Test
	output := text(p.output[e.Test])
	delete(p.output, e.Test)
	if begun := t.begun[name]; e.Action == "fail" {
		t.took[name] = e.at.Sub(begun.at)
		t.stolen[name] = append(t.stolen[name], e.machine.since(begun.machine))
	}
	if e.Elapsed >= slow.Seconds() {
		fmt.Fprintf(t.w, "  %-4s %5.0f s  %s\n", e.Action, e.Elapsed, name)
	}
	if p.parent[e.Test] && (e.Action != "fail" || p.childFailed[e.Test]) {
		if t.repeated && e.Action == "pass" && t.ended[name] == "skip" {
			t.unskip(name) // it was skipped before its subtests, which count here
		}
		if t.retried && e.Action == "pass" && t.ended[name] == "fail" {
			delete(t.ended, name)
			t.recovered(name) // it failed beside its subtests
		}
		return
	}
	switch e.Action {
	case "pass":
		p.passed++
	case "skip":
		p.skipped++
	case "fail":
		p.failed++
	}
	t.count(name, e.Action, output)
}

// count adds a test to the sum, in place of what it added in another place before.
func (t *tally) count(name, action, output string) {
	before := t.ended[name]
	if t.retried && before == "fail" && action == "pass" {
		t.ended[name], t.passed = action, t.passed+1
		t.recovered(name)
		return
	}
	if t.repeated && (before == action || before == "fail" || before == "pass" && action == "skip") {
		if action == "fail" {
			t.told++
			fmt.Fprintf(t.w, "FAIL %s, again\n%s", name, indent(output))
		}
		return
	}
	if t.repeated {
		switch before {
		case "pass":
			t.passed--
		case "skip":
			t.unskip(name)
		}
	}
	t.ended[name] = action
	switch action {
	case "pass":
		t.passed++
	case "skip":
		t.skip(name, skipReason(output))
	case "fail":
		t.fail(name, output)
	}
}

func (t *tally) endPackage(p *packageProgress, e event) {
	if e.Action == "fail" && !finished.MatchString(text(p.output[""])) {
		t.broken = append(t.broken, e.Package)
	}
	if e.Action == "fail" && p.failed == 0 {
		output := text(t.builds[e.FailedBuild])
		for _, o := range p.output { // of tests that never ended, and outside of them
			output += o.String()
		}
		p.failed++
		t.fail(short(e.Package), output)
	}
	if p.passed+p.failed+p.skipped > 0 {
		fmt.Fprintf(t.w, "  %-4s %5.1f s  %s: %d passed, %d failed, %d skipped\n",
			e.Action, e.Elapsed, short(e.Package), p.passed, p.failed, p.skipped)
	}
}

var (
	frame    = regexp.MustCompile(`^\s*(=== |--- )`)
	location = regexp.MustCompile(`^\s*\S+\.go:\d+: `)
)

// skipReason is what the test logged last, which is why it was skipped, without the frame that go test puts around it.
func skipReason(output string) string {
	var reason []string
	for line := range strings.Lines(output) {
		if line = strings.TrimRight(line, "\n"); !frame.MatchString(line) {
			if location.MatchString(line) {
				reason = nil
			}
			reason = append(reason, strings.TrimSpace(location.ReplaceAllString(line, "")))
		}
	}
	if len(reason) == 0 {
		return "no reason given"
	}
	return strings.Join(reason, " ")
}

func write(m map[string]*strings.Builder, key, s string) {
	if m[key] == nil {
		m[key] = &strings.Builder{}
	}
	m[key].WriteString(s)
}

func text(b *strings.Builder) string {
	if b == nil {
		return ""
	}
	return b.String()
}

func short(pkg string) string { return strings.TrimPrefix(pkg, module) }

func shorts(pkgs []string) []string {
	var names []string
	for _, p := range pkgs {
		names = append(names, short(p))
	}
	return names
}

func indent(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString("    " + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String()
}
