package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// rules are the demands on a strict run.
type rules struct {
	required map[string][]string // by lane: tests that must pass
	skips    [][2]string         // pattern of a test, part of the reason
	virtual  []string            // tests that the lane vm must pass, whatever this machine's kernel can run
}

// readRules reads the tables of hack, which is dir.
func readRules(dir string) (rules, error) {
	r := rules{required: map[string][]string{}}
	virtual, err := readLines(dir + "/vm/tests.txt")
	r.virtual = virtual
	return r, errors.Join(err,
		readTable(dir+"/test/lanes.txt", func(f [3]string) { r.required[f[0]] = append(r.required[f[0]], f[1]+" "+f[2]) }),
		readTable(dir+"/test/skips.txt", func(f [3]string) { r.skips = append(r.skips, [2]string{f[0] + " " + f[1], f[2]}) }))
}

// readTable reads lines of three fields. The last field may hold spaces. # begins a comment.
func readTable(file string, add func(f [3]string)) error {
	data, err := os.ReadFile(file)
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		if f := strings.Fields(line); len(f) > 2 {
			add([3]string{f[0], f[1], strings.Join(f[2:], " ")})
		} else if len(f) > 0 {
			err = errors.Join(err, fmt.Errorf("%s: %q has no three fields", file, line))
		}
	}
	return err
}

// tests are the packages and names of the tests that a lane runs.
func (r rules) tests(lane string) (pkgs, names []string) {
	for _, t := range r.required[lane] {
		pkg, name, _ := strings.Cut(t, " ")
		pkgs, names = append(pkgs, module+pkg), append(names, name)
	}
	slices.Sort(pkgs)
	return slices.Compact(pkgs), names
}

// allow reports whether skips.txt has the test with this reason.
func (r rules) allow(name, reason string) bool {
	return slices.ContainsFunc(r.skips, func(s [2]string) bool {
		ok, err := path.Match(s[0], name)
		return err == nil && ok && strings.Contains(reason, s[1])
	})
}

// sum has the outcomes of the tests in a run.
type sum struct {
	lanes   []*laneSum
	notRun  []string
	virtual []string // skipped tests that the lane vm runs
}

// laneSum has the outcomes of one lane. Names are "package Test/Subtest", or "package" for failures
// outside of tests.
type laneSum struct {
	name   string
	to     pass              // where to record a pass; empty: nowhere
	ended  map[string]string // name -> pass, fail or skip
	output map[string][]string
	flaky  map[string]bool // tests that failed first
	wrong  []string        // errors of the lane as a whole, and in a strict run
	took   time.Duration
}

// event is one line of go test's JSON, see go doc test2json.
type event struct{ Action, Package, Test, Output string }

// lane adds a lane to the sum.
func (s *sum) lane(name string, to pass) *laneSum {
	ls := &laneSum{name: name, to: to, ended: map[string]string{}, output: map[string][]string{}, flaky: map[string]bool{}}
	s.lanes = append(s.lanes, ls)
	return ls
}

// reuse adds a lane with the tests of its record. It reports false if there is no such record.
func (s *sum) reuse(name string, from pass, now time.Time) bool {
	r, at := from.read(now)
	if len(r.Ended) == 0 {
		return false
	}
	ls := s.lane(name, "")
	ls.ended, ls.output = r.Ended, r.Output
	s.notRun = append(s.notRun, fmt.Sprintf("%s: passed with the same inputs on %s; counted, not repeated", name, at.Format("2006-01-02 15:04")))
	return true
}

// recorded is what reuse needs of the lane.
func (ls *laneSum) recorded() recorded {
	r := recorded{Ended: ls.ended, Output: map[string][]string{}}
	for name, end := range ls.ended {
		if end == "skip" {
			r.Output[name] = ls.output[name]
		}
	}
	return r
}

// add reads the events of the lane. end is the lane's error.
func (ls *laneSum) add(l lane, end error, file string) {
	if l.plain != nil {
		if ls.ended[l.name] = "pass"; end != nil {
			ls.ended[l.name] = "fail"
		}
		return
	}
	f, err := os.Open(file)
	if err == nil {
		defer f.Close()
		err = ls.read(f)
	}
	switch {
	case err != nil:
		ls.wrong = append(ls.wrong, "no results: "+err.Error())
	case end != nil && !ls.has("fail"):
		ls.wrong = append(ls.wrong, end.Error())
	}
}

func (ls *laneSum) has(end string) bool {
	return slices.Contains(slices.Collect(maps.Values(ls.ended)), end)
}

func (ls *laneSum) read(r io.Reader) error {
	explained, failed := map[string]bool{}, map[string]bool{} // packages
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // from a compiler, which gotestsum has shown
		}
		pkg := strings.TrimPrefix(e.Package, module)
		name := pkg + " " + e.Test
		switch {
		case e.Test == "":
			failed[pkg] = failed[pkg] || e.Action == "fail"
		case e.Action == "output":
			ls.output[name] = append(ls.output[name], e.Output)
		case e.Action == "run":
			ls.flaky[name] = ls.ended[name] == "fail"
			ls.ended[name], ls.output[name] = "fail", nil // failed, unless an end follows
		case e.Action == "pass" || e.Action == "fail" || e.Action == "skip":
			ls.ended[name] = e.Action
			explained[pkg] = explained[pkg] || e.Action == "fail"
		}
	}
	for pkg := range failed {
		if failed[pkg] && !explained[pkg] {
			ls.ended[pkg] = "fail" // it does not build, or ended outside of a test
		}
	}
	return lines.Err()
}

// passed are the tests that some lane passed.
func (s *sum) passed() map[string]bool {
	passed := map[string]bool{}
	for _, ls := range s.lanes {
		for name, end := range ls.ended {
			if end == "pass" {
				passed[name] = true
			}
		}
	}
	return passed
}

// judge finds the errors of a strict run.
func (s *sum) judge(r rules) {
	passed := s.passed()
	for _, ls := range s.lanes {
		if !ls.has("pass") {
			ls.wrong = append(ls.wrong, "no test passed")
		}
		for _, name := range r.required[ls.name] {
			if end := ls.ended[name]; end != "pass" && end != "fail" && (end != "skip" || !r.allow(name, ls.reason(name))) {
				ls.wrong = append(ls.wrong, fmt.Sprintf("%s must pass, and did not run or was skipped (hack/test/lanes.txt)", name))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(ls.ended)) {
			if ls.ended[name] != "skip" || passed[name] {
				continue
			}
			if slices.Contains(r.virtual, name) {
				s.virtual = append(s.virtual, name)
			} else if !r.allow(name, ls.reason(name)) {
				ls.wrong = append(ls.wrong, fmt.Sprintf("hack/test/skips.txt does not allow to skip %s%s", name, ls.reason(name)))
			}
		}
	}
}

var location = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

// reason is the last log of a test: why it skipped itself or failed.
func (ls *laneSum) reason(name string) string {
	for _, line := range slices.Backward(ls.output[name]) {
		if location.MatchString(line) {
			return ": " + strings.TrimSpace(location.ReplaceAllString(line, ""))
		}
	}
	return ""
}

func (ls *laneSum) failed() int {
	n := len(ls.wrong)
	for _, end := range ls.ended {
		if end == "fail" {
			n++
		}
	}
	return n
}

// record keeps the passes of lanes for later runs.
func (s *sum) record() {
	for _, ls := range s.lanes {
		if ls.to != "" && ls.failed() == 0 {
			if err := ls.to.record(ls.recorded()); err != nil {
				fmt.Fprintln(os.Stderr, "test: the pass of", ls.name, "is not recorded:", err)
			}
		}
	}
}

// print lists all outcomes but plain passes, ends with the sum, and returns how many tests failed.
// A test that one lane skipped and another passed has passed.
func (s *sum) print(w io.Writer) (failed int) {
	passed, skipped := s.passed(), map[string]string{}
	for _, ls := range s.lanes {
		failed += ls.failed()
		for _, name := range slices.Sorted(maps.Keys(ls.ended)) {
			switch end := ls.ended[name]; {
			case end == "pass" && ls.flaky[name]:
				fmt.Fprintf(w, "passed at the second attempt: %s\n", name)
			case end == "skip" && !passed[name]:
				skipped[name] = ls.reason(name)
			case end == "fail": // of a run elsewhere, perhaps only its last lines are kept
				fmt.Fprintf(w, "FAIL %s: %s%s\n", ls.name, name, ls.reason(name))
			}
		}
		for _, p := range ls.wrong {
			fmt.Fprintf(w, "FAIL %s: %s\n", ls.name, p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		if !slices.Contains(s.virtual, name) {
			fmt.Fprintf(w, "skipped %s%s\n", name, skipped[name])
		}
	}
	if n := len(s.virtual); n > 0 {
		fmt.Fprintf(w, "skipped %d tests that the lane vm runs in a kernel of its own: make test-vm\n", n)
	}
	for _, n := range s.notRun {
		fmt.Fprintln(w, "lane", n)
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", len(passed), failed, len(skipped))
	return failed
}
