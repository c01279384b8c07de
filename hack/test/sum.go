package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// rules are what a strict run demands.
type rules struct {
	required map[string][]test // by lane: tests that must pass
	skips    []skipRule
}

type test struct{ pkg, name string } // pkg without the module

// skipRule allows a test to be skipped on a machine that lacks something.
type skipRule struct{ test, reason string }

func readRules(dir string) (rules, error) {
	r := rules{required: map[string][]test{}}
	err := readTable(filepath.Join(dir, "lanes.txt"), 3, func(f []string) {
		r.required[f[0]] = append(r.required[f[0]], test{f[1], f[2]})
	})
	if err != nil {
		return r, err
	}
	err = readTable(filepath.Join(dir, "skips.txt"), 3, func(f []string) {
		r.skips = append(r.skips, skipRule{f[0] + " " + f[1], f[2]})
	})
	return r, err
}

// readTable reads lines of n fields, of which the last may hold spaces. # begins a comment.
func readTable(file string, n int, row func([]string)) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		fields := regexp.MustCompile(`\s+`).Split(line, n)
		if len(fields) != n {
			return fmt.Errorf("%s:%d: %d fields, want %d: %s", file, number, len(fields), n, line)
		}
		row(fields)
	}
	return nil
}

// names are the tests that a lane runs.
func (r rules) names(lane string) []string {
	var names []string
	for _, t := range r.required[lane] {
		names = append(names, t.name)
	}
	return names
}

// packages are those of the tests that a lane runs.
func (r rules) packages(lane string) []string {
	var pkgs []string
	for _, t := range r.required[lane] {
		pkgs = append(pkgs, module+t.pkg)
	}
	slices.Sort(pkgs)
	return slices.Compact(pkgs)
}

func (r rules) allows(name, reason string) bool {
	return slices.ContainsFunc(r.skips, func(s skipRule) bool {
		ok, err := path.Match(s.test, name)
		return err == nil && ok && strings.Contains(reason, s.reason)
	})
}

// sum is what came of the tests of a run.
type sum struct {
	lanes  []*laneSum
	notRun []string
}

// laneSum is that of one lane. Names are "package Test/Subtest", or "package" for what failed outside of tests.
type laneSum struct {
	lane    lane
	ended   map[string]string // name -> pass, fail or skip
	output  map[string][]string
	flaky   map[string]bool // failed first
	problem []string        // of a strict run, and of the lane as a whole
}

func newSum() *sum { return &sum{} }

// event is one line of go test's JSON, see go doc test2json.
type event struct{ Action, Package, Test, Output string }

// add reads the events of a lane.
func (s *sum) add(l lane, end laneEnd, file string) {
	ls := &laneSum{lane: l, ended: map[string]string{}, output: map[string][]string{}, flaky: map[string]bool{}}
	s.lanes = append(s.lanes, ls)
	if l.plain != nil {
		ls.ended[l.name] = "pass"
		if end.err != nil {
			ls.ended[l.name] = "fail"
		}
		return
	}
	f, err := os.Open(file)
	if err == nil {
		defer f.Close()
		err = ls.read(f)
	}
	if err != nil {
		ls.problem = append(ls.problem, "no results: "+err.Error())
	}
	if end.err != nil && !slices.Contains(slices.Collect(maps.Values(ls.ended)), "fail") {
		ls.problem = append(ls.problem, end.err.Error())
	}
}

func (ls *laneSum) read(r io.Reader) error {
	failedPackages := map[string]bool{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // of a compiler, which gotestsum has shown
		}
		pkg := strings.TrimPrefix(e.Package, module)
		name := pkg + " " + e.Test
		switch {
		case e.Test == "" && e.Action == "fail":
			failedPackages[pkg] = true
		case e.Test == "":
		case e.Action == "output":
			ls.output[name] = append(ls.output[name], e.Output)
		case e.Action == "run":
			if ls.ended[name] == "fail" {
				ls.flaky[name] = true
			}
			ls.ended[name] = "fail" // until it ends
			delete(ls.output, name)
		case e.Action == "pass" || e.Action == "fail" || e.Action == "skip":
			ls.ended[name] = e.Action
		}
	}
	for pkg := range failedPackages {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(ls.ended)), func(n string) bool {
			return strings.HasPrefix(n, pkg+" ") && (ls.ended[n] == "fail" || ls.flaky[n])
		}) {
			ls.ended[pkg] = "fail" // it does not build, or ended outside of a test
		}
	}
	return lines.Err()
}

// leaves are the tests without subtests, and those that failed beside their subtests.
func (ls *laneSum) leaves() []string {
	parents, childFailed := map[string]bool{}, map[string]bool{}
	for name, end := range ls.ended {
		for i := strings.LastIndexByte(name, '/'); i > strings.IndexByte(name, ' ') && strings.Contains(name, " "); i = strings.LastIndexByte(name[:i], '/') {
			parents[name[:i]] = true
			childFailed[name[:i]] = childFailed[name[:i]] || end == "fail"
		}
	}
	var leaves []string
	for _, name := range slices.Sorted(maps.Keys(ls.ended)) {
		if !parents[name] || ls.ended[name] == "fail" && !childFailed[name] {
			leaves = append(leaves, name)
		}
	}
	return leaves
}

func (ls *laneSum) count(end string) int {
	n := 0
	for _, name := range ls.leaves() {
		if ls.ended[name] == end {
			n++
		}
	}
	return n
}

// judge finds what a strict run does not accept.
func (s *sum) judge(r rules) {
	passed := map[string]bool{}
	for _, ls := range s.lanes {
		for name, end := range ls.ended {
			passed[name] = passed[name] || end == "pass"
		}
	}
	for _, ls := range s.lanes {
		if ls.count("pass") == 0 {
			ls.problem = append(ls.problem, "no test passed")
		}
		for _, t := range r.required[ls.lane.name] {
			if name := t.pkg + " " + t.name; ls.ended[name] != "pass" && ls.ended[name] != "fail" {
				ls.problem = append(ls.problem, fmt.Sprintf("%s must pass, and did not: %q (hack/test/lanes.txt)", name, ls.ended[name]))
			}
		}
		for _, name := range ls.leaves() {
			if ls.ended[name] == "skip" && !passed[name] && !r.allows(name, ls.reason(name)) {
				ls.problem = append(ls.problem, fmt.Sprintf("hack/test/skips.txt does not allow %s to be skipped: %s", name, ls.reason(name)))
			}
		}
	}
}

var location = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

// reason is what a skipped test logged last.
func (ls *laneSum) reason(name string) string {
	reason := "no reason given"
	for _, line := range ls.output[name] {
		if location.MatchString(line) {
			reason = strings.TrimSpace(location.ReplaceAllString(line, ""))
		}
	}
	return reason
}

func (ls *laneSum) failed() int { return ls.count("fail") + len(ls.problem) }

func (s *sum) failed() int {
	n := 0
	for _, ls := range s.lanes {
		n += ls.failed()
	}
	return n
}

func (s *sum) passedLane(name string) bool {
	return slices.ContainsFunc(s.lanes, func(ls *laneSum) bool { return ls.lane.name == name && ls.failed() == 0 })
}

// print lists what is not a plain pass, and ends with the sum. A test that one lane skipped and another passed has passed.
func (s *sum) print(w io.Writer) {
	passed, skipped := map[string]bool{}, map[string]string{}
	for _, ls := range s.lanes {
		for _, name := range ls.leaves() {
			key := ls.lane.dir + name
			switch ls.ended[name] {
			case "pass":
				if ls.lane.name == "race" || ls.lane.name == "browser" {
					key += " " + ls.lane.name // the same test in another way
				}
				passed[key] = true
			case "skip":
				skipped[key] = ls.reason(name)
			case "fail":
				fmt.Fprintf(w, "FAIL %s: %s\n", ls.lane.name, name)
			}
			if ls.flaky[name] && ls.ended[name] == "pass" {
				fmt.Fprintf(w, "passed at the second attempt: %s\n", name)
			}
		}
		for _, p := range ls.problem {
			fmt.Fprintf(w, "FAIL %s: %s\n", ls.lane.name, p)
		}
	}
	maps.DeleteFunc(skipped, func(name, _ string) bool { return passed[name] })
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		fmt.Fprintf(w, "skipped %s: %s\n", name, skipped[name])
	}
	for _, n := range s.notRun {
		fmt.Fprintln(w, "lane", n)
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", len(passed), s.failed(), len(skipped))
}
