package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// options are the flags, see main.go.
type options struct {
	kernel   string
	json     bool
	run      string
	packages []string
}

// listFile has the tests. Its path is relative to the root of the repository, where this program
// runs.
const listFile = "hack/vm/tests.txt"

// mostAgain is how many failed tests may run once more.
const mostAgain = 3

// test runs the tests and returns the exit status. If few listed tests failed, they run once more,
// in another boot. On a busy host qemu may end a timer of the machine some milliseconds late, see
// main.go.
func (o options) test(ctx context.Context) (status int, err error) {
	if o.kernel == "" || o.run != "" && len(o.packages) == 0 {
		return 0, errors.New("usage: vm -kernel DIRECTORY [-json] [-timeout DURATION] [PACKAGE]... | -run REGEXP PACKAGE")
	}
	list, err := o.list()
	if err != nil {
		return 0, err
	}
	if len(list) == 0 {
		return 0, fmt.Errorf("%s has no test of %v", listFile, o.packages)
	}
	failed, status, err := o.once(ctx, list)
	if n := count(failed); err == nil && o.run == "" && n > 0 && n <= mostAgain {
		fmt.Fprintf(os.Stderr, "vm: %d tests run once more\n", n)
		_, status, err = o.once(ctx, failed)
	}
	return status, err
}

// once boots and runs the tests. It returns the tests that failed.
func (o options) once(ctx context.Context, list []tests) (failed []tests, status int, err error) {
	scratch, err := os.MkdirTemp("", "assay-vm-")
	if err != nil {
		return nil, 0, err
	}
	defer os.RemoveAll(scratch)
	programs, err := o.build(ctx, list, scratch)
	if err != nil {
		return nil, 0, err
	}
	initramfs := scratch + "/initramfs"
	if err := writeInitramfs(initramfs, o.kernel+"/modules", programs); err != nil {
		return nil, 0, fmt.Errorf("write the initramfs: %w", err)
	}
	outputs := make([]strings.Builder, len(list))
	began := time.Now()
	fmt.Fprintf(os.Stderr, "vm: booting, with %d calls of test binaries\n", len(programs))
	statuses, err := boot(ctx, o.kernel+"/vmlinuz", initramfs, scratch+"/console", func(program int, line string) {
		outputs[program].WriteString(line)
		if !o.json {
			fmt.Print(strings.TrimPrefix(line, "\x16"))
		}
	})
	fmt.Fprintf(os.Stderr, "vm: the machine ran for %v\n", time.Since(began).Round(time.Second))
	for i, t := range list {
		if o.json {
			err = errors.Join(err, printJSON(ctx, t.pkg, outputs[i].String()))
		}
		if i < len(statuses) && !o.passed(t, outputs[i].String(), statuses[i]) {
			status = 1
			failed = append(failed, t.failed(outputs[i].String())...)
		}
	}
	return failed, status, err
}

// list returns the tests to run.
func (o options) list() ([]tests, error) {
	if o.run != "" {
		var list []tests
		for _, pkg := range o.packages {
			if strings.HasSuffix(pkg, "...") {
				return nil, fmt.Errorf("-run wants single packages, not %s", pkg)
			}
			list = append(list, tests{pkg: strings.TrimPrefix(pkg, "./")})
		}
		return list, nil
	}
	f, err := os.Open(listFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := readList(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", listFile, err)
	}
	return only(list, o.packages), nil
}

// build makes the test binaries, and a program for each entry of the list. The machine has no C
// library: see the flags of test.sh.
func (o options) build(ctx context.Context, list []tests, dir string) ([]program, error) {
	args := []string{"test", "-c", "-ldflags=-s -w", "-o", dir + "/"}
	for _, t := range list {
		args = append(args, "./"+t.pkg)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("build the tests: %w", err)
	}
	var programs []program
	for _, t := range list {
		run := o.run
		if run == "" {
			run = t.run()
		}
		programs = append(programs, program{
			Name: filepath.Base(t.pkg), Arguments: []string{"-test.v=test2json", "-test.timeout=20m", "-test.run=" + run}, Environment: []string{"ASSAY_VM=1"},
			file: filepath.Join(dir, t.binary()), source: t.pkg,
		})
	}
	return programs, nil
}

// passed reports whether an entry of the list has passed. If not, it prints the reason.
func (o options) passed(t tests, output string, status int) bool {
	var wrong []string
	switch {
	case o.run == "":
		wrong = t.wrong(output)
	case !ran(output):
		wrong = []string{fmt.Sprintf("%s has no test that %s matches", t.pkg, o.run)}
	}
	if status != 0 && len(wrong) == 0 {
		wrong = []string{fmt.Sprintf("%s: the tests ended with status %d", t.pkg, status)}
	}
	for _, w := range wrong {
		fmt.Fprintln(os.Stderr, "vm:", w)
	}
	return len(wrong) == 0
}

// printJSON converts the output of a test binary with go tool test2json.
func printJSON(ctx context.Context, pkg, output string) error {
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json", "-p", module+pkg)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(output), os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("test2json: %w", err)
	}
	return nil
}
