// Command test runs the tests of the repository in lanes and sums them up.
//
//	test [-strict [-reuse]] [-flags='-run=TestX'] STAGE...
//	test -further [-within=40m] [-turn=N] LANE...
//	test -passes
//
// A lane is a set of tests with the same needs; lanes.go lists them. A stage is one lane, or
// several that run at the same time, with commas between them. A plus is between lanes that run in
// turn: of the stage a,b+c,d the lane c begins when b has ended, beside a and d. Stages run one
// after another.
//
// The script prepare.sh provides a lane's programs. Then gotestsum runs the tests and repeats
// failed ones once, if they are at most three. The end of the output names tests that passed only
// in the repetition.
//
// With -strict a run proves something or fails:
//   - Every test that lanes.txt names for a lane of the run has passed, unless skips.txt allows its
//     skip.
//   - skips.txt allows every skipped test, another lane of the run passed it, or the lane vm runs it
//     (hack/vm/tests.txt).
//   - Every lane has passed at least one test, and at least 98% as many tests as in its last pass
//     (passes.txt).
//   - A test that passed only at its second attempt has fewer than three lines in
//     second-attempts.txt.
//
// A strict lane that passes is recorded in ASSAY_CACHE, with its tests, under the hash of its
// inputs. Two flags use records that are younger than a week:
//   - With -reuse a recorded lane does not run, and the sum counts the tests of its record. The end
//     of the output lists such lanes.
//   - With -further a recorded lane does not run either, and the sum does not count its tests. It
//     also does not run if it may take longer than the rest of -within. The end of the output lists
//     these lanes. Lanes without any pass come first, and then the lane whose last pass is the
//     oldest. With -turn=N only a part of the lanes has its turn, which takes half an hour or one
//     lane. Turns repeat, so that consecutive numbers run all lanes.
//
// With -passes it prints when each lane passed last. It renews passes.txt and second-attempts.txt
// with the records of strict runs on this machine.
//
// The last line counts tests and subtests:
//
//	N passed, N failed, N skipped
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// noTurn means all lanes.
	noTurn = -1
	// turnTakes is how long the lanes of a turn take together, at most.
	turnTakes = 32 * time.Minute
)

func main() {
	r := &runner{began: time.Now(), sum: &sum{}}
	flag.BoolVar(&r.strict, "strict", false, "fail on skips that are not allowed and on required tests that did not pass")
	flag.BoolVar(&r.reuse, "reuse", false, "with -strict: repeat no lane that has passed here within a week with the same inputs, and count its tests")
	flag.BoolVar(&r.further, "further", false, "only lanes without a recorded pass; implies -strict")
	flag.DurationVar(&r.within, "within", 0, "with -further: begin no lane that may end later; 0 is no limit")
	flag.IntVar(&r.turn, "turn", noTurn, "with -further: run only the lanes whose turn this number is, modulo the number of turns")
	passes := flag.Bool("passes", false, "print when each lane passed last, and renew the files that say so")
	flags := flag.String("flags", "", "further flags of go test, separated by spaces")
	flag.Parse()
	r.flags = strings.Fields(*flags)
	r.strict = r.strict || r.further
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second signal ends this program at once
	failed, err := false, error(nil)
	switch {
	case *passes:
		err = showPasses(ctx, os.Stdout)
	case r.turn != noTurn && (r.turn < 0 || !r.further):
		err = fmt.Errorf("-turn is %d: it must be 0 or more, and goes with -further", r.turn)
	default:
		failed, err = r.run(ctx, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "test:", err)
	}
	if failed || err != nil {
		os.Exit(1)
	}
}

// runner is one run. Its flags are those of the program.
type runner struct {
	strict, reuse, further bool
	within                 time.Duration
	turn                   int
	flags                  []string
	root                   string
	rules                  rules
	packages               map[string][]string // by lane
	passes                 map[string]lastPass // by lane
	second                 []string            // lines of attemptsFile
	began                  time.Time
	sum                    *sum
}

func (r *runner) run(ctx context.Context, stages []string) (failed bool, err error) {
	r.root, err = os.Getwd()
	if err := errors.Join(err, os.MkdirAll(".work/test", 0o755)); err != nil {
		return false, err
	}
	addSystems(r.root)
	if r.rules, err = readRules("hack"); err != nil {
		return false, err
	}
	if r.packages, err = packages(ctx, r.rules); err != nil {
		return false, err
	}
	if r.passes, err = readPasses(passesFile); err != nil {
		return false, err
	}
	if r.second, err = readLines(attemptsFile); err != nil {
		return false, err
	}
	if r.further && r.turn != noTurn {
		all, err := turns(stages, turnTakes)
		if err != nil {
			return false, err
		}
		turn := r.turn % len(all)
		fmt.Printf("== turn %d of %d: %s\n", turn+1, len(all), strings.Join(all[turn], " "))
		stages = all[turn]
	}
	if r.further {
		order := byAge(r.passes)
		slices.SortStableFunc(stages, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	}
	for _, stage := range stages {
		if err := r.stage(ctx, stage); err != nil {
			return false, err
		}
	}
	if r.strict {
		r.sum.judge(r.rules)
	}
	if r.strict && len(r.flags) == 0 {
		r.sum.compare(r.passes, r.second)
		if err := r.sum.keep(ctx, time.Now()); err != nil {
			fmt.Fprintln(os.Stderr, "test: what passed is not kept:", err)
		}
	}
	r.sum.record()
	return r.sum.print(os.Stdout) > 0, ctx.Err()
}

// stage runs lanes. A comma is between lanes that run at the same time, a plus between lanes that
// run in turn.
func (r *runner) stage(ctx context.Context, names string) (err error) {
	var running sync.WaitGroup
	for chain := range strings.SplitSeq(names, ",") {
		var inTurn []func()
		for name := range strings.SplitSeq(chain, "+") {
			run, wrong := r.ready(ctx, name)
			err = errors.Join(err, wrong)
			if run != nil {
				inTurn = append(inTurn, run)
			}
		}
		running.Go(func() {
			for _, run := range inTurn {
				run()
			}
		})
	}
	running.Wait()
	return err
}

// ready returns what runs a lane. It is nil for a lane that does not run.
func (r *runner) ready(ctx context.Context, name string) (run func(), err error) {
	l, err := laneNamed(name)
	if err != nil {
		return nil, err
	}
	to, why, err := r.due(ctx, l)
	if err != nil {
		return nil, err
	}
	if why != "" {
		r.sum.notRun = append(r.sum.notRun, l.name+": "+why)
		return nil, nil
	}
	if r.reuse && r.sum.reuse(l.name, to, time.Now()) {
		return nil, nil
	}
	release, err := hold(l)
	if err != nil {
		return nil, err
	}
	ls := r.sum.lane(l.name, to)
	return func() {
		defer release()
		began := time.Now()
		ls.add(l, r.lane(ctx, l), results(l))
		ls.took = time.Since(began)
	}, nil
}

// due says why a lane does not run. If it runs, due returns where to record its pass, if that is
// wanted.
func (r *runner) due(ctx context.Context, l lane) (to pass, why string, err error) {
	if !r.strict || len(r.flags) > 0 {
		return "", "", nil
	}
	if to, err = passOf(ctx, l, r.packages[l.name]); err != nil || !r.further {
		return to, "", err
	}
	if at, ok := to.at(time.Now()); ok {
		return "", "passed with the same inputs on " + at.Format("2006-01-02 15:04") + ", not repeated", nil
	}
	if left := r.within - time.Since(r.began); r.within > 0 && left < l.takes {
		return "", fmt.Sprintf("NOT RUN: it may take %v, and %v are left", l.takes, left.Round(time.Second)), nil
	}
	return to, "", nil
}

// hold keeps other runs in this tree from the lane until release: two would write one file of
// events, and each would count tests of the other.
func hold(l lane) (release func(), err error) {
	f, err := os.OpenFile(results(l)+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lane %s: %w", l.name, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lane %s runs in this tree already (%s: %w); wait until it ends, or use another clone", l.name, f.Name(), err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// results is the file that holds the events of a lane.
func results(l lane) string { return ".work/test/" + l.name + ".json" }

// preparing bounds the preparation of a lane: that of other lanes, and its own tools, images and
// cluster, on a machine that has none of them.
const preparing = 90 * time.Minute

// lane prepares one lane and runs its tests. The lane's bound starts with the tests.
func (r *runner) lane(ctx context.Context, l lane) error {
	_ = os.Remove(results(l)) // of an earlier run
	var env strings.Builder
	began := time.Now()
	cpu, err := group(ctx, preparing, false, &env, `hack/test/prepare.sh "$0" 2> >(`+naming+` >&2)`, l.name)
	prepared, word := time.Since(began), "ok"
	if err == nil {
		const tests = `set -o pipefail; { eval "$1" && "${@:2}"; } 2>&1 | ` + naming
		var used time.Duration
		used, err = group(ctx, l.bound, l.yields, os.Stdout, tests, slices.Concat([]string{l.name, env.String()}, l.command(r.root, r.packages[l.name], r.rules, r.flags))...)
		cpu += used
	}
	if err != nil {
		word = fmt.Sprintf("FAILED (%v)", err)
	}
	fmt.Printf("== %s: %s, %.0f s, prepared after %.0f s, %.0f processor-seconds\n", l.name, word, time.Since(began).Seconds(), prepared.Seconds(), cpu.Seconds())
	return err
}

// naming puts the lane's name before each line, since lanes run at the same time.
const naming = `sed -u "s/^/$(printf '%-10s' "$0") | /"`

// lowest is the lowest priority.
const lowest = 19

// group runs a script as one process group, and ends the group at its bound. So no process that
// hangs outlives it. A group that yields has the lowest priority, also against other sessions. It
// returns the processor time.
func group(ctx context.Context, bound time.Duration, yields bool, out io.Writer, script string, args ...string) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("did not end within %v", bound))
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", append([]string{"-c", script}, args...)...)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	if yields { // without these, it only takes processors from the lanes beside it
		_ = syscall.Setpriority(syscall.PRIO_PGRP, cmd.Process.Pid, lowest)
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", cmd.Process.Pid), []byte(strconv.Itoa(lowest)), 0)
	}
	err := cmd.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), err
}
