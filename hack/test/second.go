package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// most is how many tests of a group may have a second attempt, besides those that failed while others had mostStolen. More that fail together are no accident.
const most = 3

// retry runs tests that failed once more, by run. They share the machine with its other tenants, which may hold it back for seconds, and with what the tests before them
// left to be cleared away; what fails for that must not hide among what fails for a reason, nor stop everything else from being used. So nothing of it is hidden: the
// first failure is shown in full, and the end of the run names each test that needed two attempts, with what was taken from the machine meanwhile. What is wrong with
// the product fails twice. Tests that had failed already before what is to be repeated, elsewhere, stay failed.
func (t *tally) retry(pkgs []string, before map[string][]string, run func(pkg string, tests []string)) {
	failed := t.failures()
	n := 0
	for pkg, tests := range failed {
		if slices.Equal(tests, before[pkg]) && len(tests) > 0 {
			delete(failed, pkg)
			continue
		}
		if len(tests) == 0 || !slices.Contains(pkgs, pkg) || slices.ContainsFunc(tests, func(test string) bool { return slices.Contains(before[pkg], test) }) {
			return // what failed is no test, or not one of these
		}
		for _, test := range tests {
			if s := t.stolen[short(pkg)+" "+test]; len(s) == 0 || s[0] <= mostStolen { // else it is the accident itself
				n++
			}
		}
	}
	if len(failed) == 0 || n > most {
		return
	}
	if why := t.bound.lacks(t.need(failed)); why != nil {
		t.noSecond = true
		fmt.Fprintf(t.w, "== %s, no second attempt at what failed: %s\n", t.group, why)
		return
	}
	t.second()
	for _, pkg := range pkgs {
		if tests := failed[pkg]; len(tests) > 0 {
			run(pkg, tests)
		}
	}
}

// need is roughly what a second attempt at tests may take: half as long again as the first, and what it takes to begin.
func (t *tally) need(failed map[string][]string) time.Duration {
	need := least
	for pkg, tests := range failed {
		for _, test := range tests {
			took := t.took[short(pkg)+" "+test]
			if parts := t.failedParts(pkg, test); len(parts) > 0 {
				took = setUp
				for _, part := range parts {
					took += t.took[short(pkg)+" "+test+"/"+part]
				}
			}
			need += (took * 3 / 2).Round(time.Second)
		}
	}
	return need
}

// setUp is what a test takes at most before the first of the parts that run by themselves.
const setUp = 3 * time.Minute

// failedParts are the parts of a test that failed, if each of them runs by itself and nothing else of the test failed.
func (t *tally) failedParts(pkg, test string) []string {
	name := short(pkg) + " " + test
	if !slices.Contains(t.apart, test) || t.ended[name] == "fail" {
		return nil
	}
	var parts []string
	for below, how := range t.ended {
		part, _, _ := strings.Cut(strings.TrimPrefix(below, name+"/"), "/")
		if strings.HasPrefix(below, name+"/") && how == "fail" && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	slices.Sort(parts)
	return parts
}

// selections are flags that run what failed of these tests: those without parts of their own together, each of the others by itself.
func (t *tally) selections(pkg string, tests []string) []string {
	var others, flags []string
	for _, test := range tests {
		if parts := t.failedParts(pkg, test); len(parts) > 0 {
			flags = append(flags, only([]string{test})+"/^("+strings.Join(parts, "|")+")$")
		} else {
			others = append(others, test)
		}
	}
	if len(others) > 0 {
		flags = append([]string{only(others)}, flags...)
	}
	return flags
}

// only is the flag that runs these tests and no others.
func only(tests []string) string { return "-run=^(" + strings.Join(tests, "|") + ")$" }

// finished is what the process of a package's tests prints when all of them have ended and some have failed. One that was killed, or ended by a panic, does not, and then
// nobody knows which tests it has not run.
var finished = regexp.MustCompile(`(?m)^FAIL$`)

// failures are the tests that failed in this group, without subtests, by package. A failure that is not a test's is there as a package without tests.
func (t *tally) failures() map[string][]string {
	failed := map[string][]string{}
	for _, pkg := range t.broken {
		failed[pkg] = nil
	}
	for name, how := range t.ended {
		pkg, test, _ := strings.Cut(name, " ")
		test, _, _ = strings.Cut(test, "/")
		if pkg = module + pkg; how == "fail" && !slices.Contains(failed[pkg], test) && !slices.Contains(t.broken, pkg) {
			failed[pkg] = append(failed[pkg], test)
		}
	}
	for _, tests := range failed {
		slices.Sort(tests)
	}
	return failed
}

// second says that from now on tests that failed are run again. Each counts as it ends then.
func (t *tally) second() {
	t.repeated, t.retried = true, true
	fmt.Fprintf(t.w, "== %s, a second attempt at what failed\n", t.group)
}

// recovered is told of a test that failed at first, and then passed.
func (t *tally) recovered(name string) {
	t.failed--
	t.twice = append(t.twice, fmt.Sprintf("%s: passed at the second attempt; during the first, others were given %s of the machine's processors", name, t.stolen[name][0]))
}

// mostStolen is the share of the processors with which others leave so little to tests that wait, or are judged by instants, that their failures prove nothing.
const mostStolen share = 0.25

// waits is what a test takes that waits for others or looks at instants. A quicker one that fails twice fails for a reason; how much others had in so short a time is not known well, either.
const waits = 20 * time.Second

// undecided skips tests that failed twice, if others had more than mostStolen in both attempts. It is the platform's own rule: what was measured where the environment was not
// what it has to be is not held against anybody, and is not hidden either. What they printed was shown, and the end of the run names them. So it is with one that failed once, if there is
// no time for a second attempt.
func (t *tally) undecided() {
	names := map[string]string{}
	for name, how := range t.ended {
		if how != "fail" {
			continue
		}
		switch s := t.stolen[t.waiting(name)]; {
		case t.retried && len(s) == 2 && min(s[0], s[1]) > mostStolen:
			names[name] = fmt.Sprintf("undecided: failed in both attempts, see above, while others were given %s and %s of the machine's processors", s[0], s[1])
		case t.noSecond && len(s) == 1 && s[0] > mostStolen:
			names[name] = fmt.Sprintf("undecided: failed, see above, while others were given %s of the machine's processors, and there is no time for a second attempt", s[0])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		t.ended[name] = "skip"
		t.failed--
		t.skip(name, names[name])
	}
}

// waiting is the innermost of a test that failed and those around it that took so long as to wait for something; none, if not even the whole test did. Parts of a test may take no time,
// for what they look at was measured before them.
func (t *tally) waiting(name string) string {
	for name != "" && t.took[name] < waits {
		i := strings.LastIndexByte(name, '/')
		if i < strings.IndexByte(name, ' ') { // packages have slashes, too
			return ""
		}
		name = name[:i]
	}
	return name
}

// cpuTimes are what /proc/stat says of all processors together since the machine began, in ticks.
type cpuTimes struct{ all, steal int64 }

func readCPUTimes() (c cpuTimes) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return c
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	for i, f := range strings.Fields(string(line)) {
		// cpu user nice system idle iowait irq softirq steal; guests are in user.
		v, err := strconv.ParseInt(f, 10, 64)
		if err != nil || i > 8 {
			continue
		}
		c.all += v
		if i == 8 {
			c.steal = v
		}
	}
	return c
}

// share of the machine's processors; negative if it is not known.
type share float64

func (s share) String() string {
	if s < 0 {
		return "an unknown share"
	}
	return strconv.FormatFloat(100*float64(s), 'f', 1, 64) + "%"
}

// since is the share of the time since then that the hypervisor gave to others.
func (c cpuTimes) since(then cpuTimes) share {
	if c.all <= then.all {
		return -1
	}
	return share(c.steal-then.steal) / share(c.all-then.all)
}
