package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// outcome is the outcome of the tests of a changed package.
type outcome int

const (
	killed outcome = iota
	survived
)

// draw chooses n changes that compile by the seed, and says how many others it met. A change is
// drawn by the text of its line, so that changes elsewhere in the tree do not draw others.
func (c *code) draw(n int, seed uint64) (drawn []change, others int) {
	all := c.changes()
	alike, order := map[string]int{}, map[string][]byte{}
	for _, one := range all {
		text := fmt.Sprintf("%d\x00%s\x00%s\x00%s", seed, one.file, one.place, one.new)
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", text, alike[text]))
		alike[text]++
		order[one.key()] = sum[:]
	}
	slices.SortFunc(all, func(a, b change) int { return bytes.Compare(order[a.key()], order[b.key()]) })
	for _, one := range all {
		if len(drawn) == n {
			break
		}
		if c.possible(one) {
			drawn = append(drawn, one)
		} else {
			others++
		}
	}
	return drawn, others
}

// byPackage are the packages of changes, those with the most changes first.
func byPackage(drawn []change) (of map[string][]change, names []string) {
	of = map[string][]change{}
	for _, one := range drawn {
		of[one.pkg()] = append(of[one.pkg()], one)
	}
	return of, slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(of[b]), len(of[a])), strings.Compare(a, b))
	})
}

// listDrawn prints the changes that a seed draws, by package, and tries none.
func listDrawn(ctx context.Context, w io.Writer, n int, seed uint64, patterns []string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	c, err := load(ctx, root, patterns)
	if err != nil {
		return err
	}
	drawn, _ := c.draw(n, seed)
	of, names := byPackage(drawn)
	for _, p := range names {
		fmt.Fprintf(w, "%d in %s\n", len(of[p]), p)
		for _, one := range of[p] {
			fmt.Fprintf(w, "  %s\n", one)
		}
	}
	return nil
}

// random draws n changes that compile. It prints those that the tests of their own package do not
// notice. It fails if more than a tenth survive. If a run was stopped, the next one continues after
// the changes in its record.
func random(ctx context.Context, w io.Writer, n, workers int, seed uint64, patterns []string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	c, err := load(ctx, root, patterns)
	if err != nil {
		return err
	}
	drawn, others := c.draw(n, seed)
	fmt.Fprintf(w, "%d of %d places, drawn with seed %d; %d more do not compile\n", len(drawn), len(c.changes()), seed, others)
	folder, err := scratch(root, "random")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	past, err := openRecord(ctx, root, drawn, seed, patterns)
	if err != nil {
		return err
	}
	defer past.file.Close()
	if k := len(past.known); k > 0 {
		fmt.Fprintf(w, "%d of them are in %s already\n", k, past.file.Name())
	}

	r := &results{w: w, record: past, packages: map[string]*[2]int{}}
	trials, err := r.trials(c, root, folder, drawn)
	if err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var running sync.WaitGroup
	next := make(chan *trial, len(trials))
	for _, t := range trials {
		next <- t
	}
	close(next)
	for range workers {
		running.Go(func() {
			for t := range next {
				if err := t.run(ctx, r.add); err != nil {
					fail(err)
				}
			}
		})
	}
	running.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.table()
	fmt.Fprintf(w, "%d of %d killed by the tests of their own package\n", r.counts[killed], len(drawn))
	if 10*r.counts[survived] > len(drawn) {
		return fmt.Errorf("%d of %d survived, more than one in ten", r.counts[survived], len(drawn))
	}
	return nil
}

// results are the outcomes so far.
type results struct {
	mutex    sync.Mutex
	w        io.Writer
	record   *record
	counts   [2]int
	packages map[string]*[2]int
}

// trials are what is left to do after the results that the record has, by package.
func (r *results) trials(c *code, root, folder string, drawn []change) (left []*trial, err error) {
	of, names := byPackage(drawn)
	for _, p := range names {
		t := &trial{root: root, pkg: p, folder: filepath.Join(folder, strconv.Itoa(len(left)))}
		for _, one := range of[p] {
			if was, ok := r.record.known[one.key()]; !ok {
				t.changes = append(t.changes, one)
			} else if err := r.add(one, was); err != nil {
				return nil, err
			}
		}
		if len(t.changes) == 0 {
			continue
		}
		if t.texts, t.alone, err = c.together(t.changes); err != nil {
			return nil, err
		}
		left = append(left, t)
	}
	return left, nil
}

// add counts, prints and records the outcome of a change.
func (r *results) add(c change, one result) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err := r.record.keep(one); err != nil {
		return err
	}
	if r.packages[c.pkg()] == nil {
		r.packages[c.pkg()] = &[2]int{}
	}
	r.counts[one.Outcome]++
	r.packages[c.pkg()][one.Outcome]++
	if one.Outcome == survived {
		fmt.Fprintf(r.w, "survived  %4.0f s  %s\n", one.Seconds, c)
	} else {
		fmt.Fprintf(r.w, "killed    %4.0f s  %s: %s\n", one.Seconds, c, one.By)
	}
	return nil
}

// table prints how many changes each package's tests noticed.
func (r *results) table() {
	fmt.Fprintf(r.w, "%-48s %7s %8s %5s\n", "package", "killed", "survived", "rate")
	for _, p := range slices.Sorted(maps.Keys(r.packages)) {
		n := r.packages[p]
		fmt.Fprintf(r.w, "%-48s %7d %8d %4d%%\n", p, n[killed], n[survived], 100*n[killed]/(n[killed]+n[survived]))
	}
}

// trial runs the tests of one package with each of its changes.
type trial struct {
	root, pkg, folder string
	changes           []change
	texts             map[string][]byte // of all changes but those that are alone
	alone             []change

	tests []test
}

// test is one test of a package, as it ran without a change.
type test struct {
	name    string
	cpu     time.Duration // of a processor
	reaches map[int]bool  // the ids of switches
}

// moreCPU is added to five times the processor time that tests take without a change: a changed
// package may compute without end. Twenty times as much time may pass, since tests may also wait
// without end.
const moreCPU = 10 * time.Second

// memory bounds the address space of a changed package's tests, in KiB.
const memory = 6 << 20

// quick is how much of a processor a test may take to come first.
const quick = 300 * time.Millisecond

// run builds the tests with all changes behind switches, and runs them with one after the other. It
// tells the end of each.
func (t *trial) run(ctx context.Context, add func(change, result) error) error {
	if err := os.MkdirAll(t.folder, 0o755); err != nil {
		return err
	}
	program, err := t.build(ctx, "all", t.texts)
	if err != nil {
		return err
	}
	if t.tests, err = t.measure(ctx, program); err != nil {
		return err
	}
	for _, one := range t.changes {
		began, program, alone := time.Now(), program, slices.Contains(t.alone, one)
		if alone {
			text, err := os.ReadFile(filepath.Join(t.root, one.file))
			if err != nil {
				return err
			}
			if program, err = t.build(ctx, "one", map[string][]byte{one.file: one.plain(text)}); err != nil {
				return err
			}
		}
		o, by := t.try(ctx, program, one, alone)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := add(one, result{Change: one.key(), Outcome: o, By: by, Seconds: time.Since(began).Seconds()}); err != nil {
			return err
		}
	}
	return os.RemoveAll(t.folder)
}

// build makes the program of the package's tests with other texts of some files. The tree does not
// change. The program has no table of symbols, which saves time.
func (t *trial) build(ctx context.Context, name string, texts map[string][]byte) (program string, err error) {
	replace := map[string]string{}
	for file, text := range texts {
		copied := filepath.Join(t.folder, fmt.Sprintf("%s-%d.txt", name, len(replace)))
		if err := os.WriteFile(copied, text, 0o644); err != nil {
			return "", err
		}
		if file == libraryFile {
			file = filepath.Join(t.pkg, file)
		}
		replace[filepath.Join(t.root, file)] = copied
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(t.folder, name+".json")
	if err := os.WriteFile(file, overlay, 0o644); err != nil {
		return "", err
	}
	program = filepath.Join(t.folder, name+".test")
	if out, err := command(ctx, t.root, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", program, "-overlay="+file, t.pkg).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the tests of %s: %w: %s", t.pkg, err, out)
	}
	return program, nil
}

// longest is how much of a processor a test may take. Simulations that take more do not run: what
// only they would notice survives.
const longest = 3 * time.Second

// measure runs each test by itself with every change off. Quick tests come first in its answer. All
// must pass, or they would seem to notice every change.
func (t *trial) measure(ctx context.Context, program string) ([]test, error) {
	list := t.program(ctx, program, time.Hour, "-test.list=^(Test|Fuzz|Example)")
	names, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", t.pkg, err)
	}
	var all []test
	for name := range strings.FieldsSeq(string(names)) {
		file := filepath.Join(t.folder, name+".reached")
		cmd := t.program(ctx, program, longest, "-test.timeout=0", "-test.run="+only(name))
		cmd.Env = append(os.Environ(), reachedIn+"="+file)
		out, err := cmd.CombinedOutput()
		if ended(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the tests of %s fail without any change: %s", t.pkg, noticedBy(out, err))
		}
		one := test{name: name, cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), reaches: map[int]bool{}}
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for line := range strings.FieldsSeq(string(text)) {
			id, err := strconv.Atoi(line)
			if err != nil {
				return nil, err
			}
			one.reaches[id] = true
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b test) int { return cmp.Compare(a.cpu, b.cpu) })
	return all, nil
}

// only matches the names of tests.
func only(names ...string) string { return "^(" + strings.Join(names, "|") + ")$" }

// try runs the tests that reach a change, with it: first the quick ones, since most changes fail a
// quick test.
func (t *trial) try(ctx context.Context, program string, one change, alone bool) (o outcome, by string) {
	for _, slow := range []bool{false, true} {
		var names []string
		cpu := moreCPU
		for _, test := range t.tests {
			if test.cpu > quick == slow && (alone || test.reaches[one.number()]) {
				names = append(names, test.name)
				cpu += 5 * test.cpu
			}
		}
		if len(names) == 0 {
			continue
		}
		cmd := t.program(ctx, program, cpu, "-test.failfast", fmt.Sprintf("-test.timeout=%v", 20*cpu), "-test.run="+only(names...))
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", switchOf, one.number()))
		if out, err := cmd.CombinedOutput(); err != nil {
			return killed, noticedBy(out, err)
		}
	}
	return survived, ""
}

// program runs the program of the package's tests in the folder that go test would use.
func (t *trial) program(ctx context.Context, program string, cpu time.Duration, args ...string) *exec.Cmd {
	limits := fmt.Sprintf(`ulimit -t %d; ulimit -v %d; exec "$0" -test.paniconexit0 "$@"`, int(cpu.Seconds()), memory)
	return command(ctx, filepath.Join(t.root, t.pkg), "sh", append([]string{"-c", limits, program}, args...)...)
}

// command prepares a program in a folder. The end of the context kills it and its children.
func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// noticedBy is the first test that failed, or another reason for the end of the tests.
func noticedBy(out []byte, err error) string {
	first := ""
	for line := range bytes.Lines(out) {
		text := strings.TrimSpace(string(line))
		if name, ok := strings.CutPrefix(text, "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " ")
			return name
		}
		if first == "" && (strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ")) {
			first = text
		}
	}
	if ended(err) {
		return cmp.Or(first, "the bound of processor time")
	}
	return cmp.Or(first, err.Error())
}

// ended says whether the kernel ended a program, as it does at the bound of processor time.
func ended(err error) bool {
	end := &exec.ExitError{}
	return errors.As(err, &end) && end.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}
