package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

const (
	// passesFile has a line for each lane with its last pass. `make test-passes` renews it with the
	// records in this machine's ASSAY_CACHE.
	passesFile = "hack/test/passes.txt"
	// attemptsFile has a line for each run in which a test passed only at the second attempt.
	attemptsFile = "hack/test/second-attempts.txt"
	// fewer is which share of a lane's tests may be missing, compared with its last pass.
	fewer = 0.02
	// attempts is from how many entries on a test is a defect to fix.
	attempts = 3
)

// lastPass is one pass of a lane: the tested commit and the size of the run.
type lastPass struct {
	lane   string
	at     time.Time
	commit string // of the tested tree, with a "+" if it had changes
	tests  int    // tests and subtests that passed
	took   time.Duration
	goes   string // version of Go
	kernel string
}

const stamp = "2006-01-02T15:04Z"

func (p lastPass) String() string {
	return strings.Join([]string{p.lane, p.at.UTC().Format(stamp), p.commit, strconv.Itoa(p.tests), p.took.Round(time.Second).String(), p.goes, p.kernel}, "\t")
}

func parsePass(line string) (lastPass, error) {
	f := strings.Split(line, "\t")
	if len(f) != 7 {
		return lastPass{}, fmt.Errorf("%q has %d fields, want 7: lane, time, commit, tests, duration, Go, kernel", line, len(f))
	}
	p := lastPass{lane: f[0], commit: f[2], goes: f[5], kernel: f[6]}
	var errs [3]error
	p.at, errs[0] = time.Parse(stamp, f[1])
	p.tests, errs[1] = strconv.Atoi(f[3])
	p.took, errs[2] = time.ParseDuration(f[4])
	return p, errors.Join(errs[:]...)
}

// readLines returns the lines of a file without comments; a missing file has none.
func readLines(file string) (lines []string, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines, err
}

// readPasses returns the last pass of each lane on a tree without changes.
func readPasses(file string) (map[string]lastPass, error) {
	lines, err := readLines(file)
	found := map[string]lastPass{}
	for _, line := range lines {
		p, wrong := parsePass(line)
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", file, wrong))
		} else if !strings.HasSuffix(p.commit, "+") && p.at.After(found[p.lane].at) {
			found[p.lane] = p
		}
	}
	return found, err
}

// passed are the lane's tests and subtests that passed.
func (ls *laneSum) passed() (n int) {
	for _, end := range ls.ended {
		if end == "pass" {
			n++
		}
	}
	return n
}

// missing reports that a lane has lost more tests than it may.
func (ls *laneSum) missing(last lastPass) {
	if n := len(ls.ended); float64(n) < (1-fewer)*float64(last.tests) {
		ls.wrong = append(ls.wrong, fmt.Sprintf("it has %d tests, and had %d when it passed at %s: more than %.0f%% are gone. If that is meant, write the number into %s",
			n, last.tests, last.commit, fewer*100, passesFile))
	}
}

// repeated reports tests that needed a second attempt too often before.
func (ls *laneSum) repeated(earlier []string) {
	for _, name := range slices.Sorted(maps.Keys(ls.flaky)) {
		if n := len(entriesOf(name, earlier)); ls.flaky[name] && ls.ended[name] == "pass" && n >= attempts {
			ls.wrong = append(ls.wrong, fmt.Sprintf("%s passed at the second attempt, and %s has it %d times: mend the test, or what it tests, and delete its lines", name, attemptsFile, n))
		}
	}
}

// compare reports differences from earlier runs that a strict run does not accept.
func (s *sum) compare(passes map[string]lastPass, second []string) {
	for _, ls := range s.lanes {
		ls.missing(passes[ls.name])
		ls.repeated(second)
	}
}

// entriesOf are the lines of second attempts about a test.
func entriesOf(name string, lines []string) (of []string) {
	for _, line := range lines {
		if _, test, _ := strings.Cut(line, "\t"); test == name {
			of = append(of, line)
		}
	}
	return of
}

// keep records the passes and the second attempts, for `make test-passes`.
func (s *sum) keep(ctx context.Context, now time.Time) error {
	var passes, second []string
	of := treeAndMachine(ctx)
	for _, ls := range s.lanes {
		if ls.to != "" && ls.failed() == 0 {
			p := of
			p.lane, p.at, p.tests, p.took = ls.name, now, ls.passed(), ls.took
			passes = append(passes, p.String())
		}
		for _, name := range slices.Sorted(maps.Keys(ls.flaky)) {
			if ls.flaky[name] && ls.ended[name] == "pass" {
				second = append(second, now.UTC().Format(stamp)+" "+of.commit+"\t"+name)
			}
		}
	}
	return errors.Join(addLines(kept(passesFile), passes), addLines(kept(attemptsFile), second))
}

// treeAndMachine describes the tested tree, and the machine.
func treeAndMachine(ctx context.Context) lastPass {
	field := func(program string, args ...string) string {
		out, err := output(ctx, program, args...)
		if err != nil {
			return "unknown"
		}
		return strings.TrimSpace(out)
	}
	commit := field("git", "rev-parse", "--short=12", "HEAD")
	// Without a lock: one would change the folder .git, and go test would not take what it kept of
	// tests that read the repository's root.
	if field("git", "--no-optional-locks", "status", "--porcelain", "--untracked-files=no") != "" {
		commit += "+"
	}
	return lastPass{commit: commit, goes: runtime.Version(), kernel: field("uname", "-r")}
}

// kept is the file in which this machine keeps records until they are in a file of the tree.
func kept(file string) string {
	base, _ := os.UserCacheDir()
	return filepath.Join(cmp.Or(os.Getenv("ASSAY_CACHE"), base+"/assay"), "tests", filepath.Base(file))
}

func addLines(file string, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	return errors.Join(err, f.Close())
}

// showPasses renews the two files of the tree with the records of this machine, and prints when
// each lane passed last.
func showPasses(ctx context.Context, w io.Writer) error {
	addSystems(".")
	known, err := readPasses(passesFile)
	here, wrong := readPasses(kept(passesFile))
	second, wrong2 := readLines(attemptsFile)
	more, wrong3 := readLines(kept(attemptsFile))
	if err := errors.Join(err, wrong, wrong2, wrong3); err != nil {
		return err
	}
	for name, p := range here {
		if p.at.After(known[name].at) {
			known[name] = p
		}
	}
	for _, line := range more {
		if !slices.Contains(second, line) {
			second = append(second, line)
		}
	}
	var lines []string
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "lane\tlast pass\tcommits ago\ttests\ttook\tGo\tkernel")
	for _, l := range byAge(known) {
		p, ok := known[l]
		if !ok {
			fmt.Fprintf(table, "%s\tnever\n", l)
			continue
		}
		lines = append(lines, p.String())
		ago, err := output(ctx, "git", "rev-list", "--count", p.commit+"..HEAD")
		if err != nil {
			ago = "unknown"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%v\t%s\t%s\n", l, p.at.Format("2006-01-02 15:04"), strings.TrimSpace(ago), p.tests, p.took, p.goes, p.kernel)
	}
	slices.Sort(lines)
	const passesHead = "# The last pass of each lane on a tree without changes; `make test-passes` renews it.\n" +
		"# lane, time (UTC), commit, tests and subtests, duration, Go, kernel\n"
	const attemptsHead = "# Tests that passed only when they were repeated: time and commit, test. Three lines of a test make\n" +
		"# it a defect: the next time fails the run. `make test-passes` adds what happened on this machine.\n"
	return errors.Join(table.Flush(),
		os.WriteFile(passesFile, []byte(passesHead+strings.Join(append(lines, ""), "\n")), 0o644),
		os.WriteFile(attemptsFile, []byte(attemptsHead+strings.Join(append(second, ""), "\n")), 0o644))
}

// turns divides lanes into turns. The lanes of a turn take atMost together, or less. A lane that
// takes longer has a turn of its own. Each lane is in exactly one turn, so that one turn after the
// other runs them all.
func turns(names []string, atMost time.Duration) (all [][]string, err error) {
	var rest []time.Duration
	for _, name := range names {
		l, err := laneNamed(name)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(rest, func(left time.Duration) bool { return left >= l.takes })
		if i < 0 {
			all, rest, i = append(all, nil), append(rest, atMost), len(all)
		}
		all[i], rest[i] = append(all[i], name), rest[i]-l.takes
	}
	return all, nil
}

// byAge are the names of all lanes. Lanes without a pass come first, and then the lane with the
// oldest pass: otherwise a new lane would wait until all others have had a turn.
func byAge(passes map[string]lastPass) (names []string) {
	for _, l := range lanes {
		names = append(names, l.name)
	}
	slices.SortStableFunc(names, func(a, b string) int { return passes[a].at.Compare(passes[b].at) })
	return names
}
