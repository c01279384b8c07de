// Command mutants shows that the tests notice defects in Assay. It breaks a copy of the tree in one
// place at a time, and runs the tests that must then fail.
//
//	go run ./hack/mutants [-list] [NAME...]      (all mutants)
//	go run ./hack/mutants -random=300 [-seed=1] [-list | -workers=2] [PACKAGE...]
//
// The copy is a clone of HEAD in the run's own folder below .work/mutants, so that several runs of
// one tree do not affect each other. A mutant is caught if a test fails. A mutant that does not
// compile proves nothing and is an error. If a mutant was not caught, the folder stays, with the
// output of each mutant's tests. Mutants of the lane kind replace Assay on the cluster; `make
// deploy` restores it.
//
// With -random it draws small changes (an operator, a constant of a formula, a statement) in the
// packages that decide. The tests of a package are built once, with all of its changes behind
// switches. Each change is then turned on, and the tests that reach it run. Tests that take more
// than three seconds of a processor do not run. The tree itself does not change.
//
// Exit status: 0 if the tests caught every mutant. With -random, nine of ten are enough.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// mutant is one deliberate defect.
type mutant struct {
	name     string
	doc      string // the defect
	file     string
	old, new string // old occurs once in file
	lane     string // of hack/test, whose prepare.sh provides the test's programs
	pkg, run string // the tests that must notice
}

// bound kills the tests of one mutant. Tests that wait for a broken operator have shorter
// deadlines.
const bound = 15 * time.Minute

func main() {
	list := flag.Bool("list", false, "print the mutants, or with -random the drawn changes by package, and run nothing")
	n := flag.Int("random", 0, "draw this many small changes in the packages that decide")
	seed := flag.Uint64("seed", 1, "of -random: the same seed draws the same changes")
	workers := flag.Int("workers", 2, "of -random: changes that are tried at the same time")
	flag.Parse()
	if *list && *n == 0 {
		for _, m := range mutants {
			fmt.Printf("%-24s %-10s %s: %s\n", m.name, m.lane, m.file, m.doc)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	patterns := flag.Args()
	if len(patterns) == 0 {
		patterns = pure
	}
	err := error(nil)
	switch {
	case *n > 0 && *list:
		err = listDrawn(ctx, os.Stdout, *n, *seed, patterns)
	case *n > 0:
		err = random(ctx, os.Stdout, *n, *workers, *seed, patterns)
	default:
		err = run(ctx, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string) (err error) {
	for _, n := range names {
		if !slices.ContainsFunc(mutants, func(m mutant) bool { return m.name == n }) {
			return fmt.Errorf("there is no mutant %q; -list names them", n)
		}
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	folder, err := scratch(root, "named")
	if err != nil {
		return err
	}
	tree := filepath.Join(folder, "tree")
	defer func() {
		if err == nil {
			err = os.RemoveAll(folder)
		} else {
			_ = os.RemoveAll(tree)
		}
	}()
	if out, err := exec.CommandContext(ctx, "git", "clone", "--quiet", "--shared", root, tree).CombinedOutput(); err != nil {
		return fmt.Errorf("clone the tree: %w: %s", err, out)
	}
	caught, tried := 0, 0
	fmt.Printf("%-24s %-10s %-8s %5s  %s\n", "mutant", "lane", "result", "s", "noticed by")
	for _, m := range mutants {
		if len(names) > 0 && !slices.Contains(names, m.name) {
			continue
		}
		tried++
		began := time.Now()
		by, err := m.try(ctx, tree)
		result := "caught"
		switch {
		case err != nil:
			result, by = "ERROR", err.Error()
		case by == "":
			result, by = "SURVIVED", "nobody: "+m.doc
		default:
			caught++
		}
		fmt.Printf("%-24s %-10s %-8s %5.0f  %s\n", m.name, m.lane, result, time.Since(began).Seconds(), by)
	}
	fmt.Printf("%d of %d mutants caught\n", caught, tried)
	if caught < tried {
		return fmt.Errorf("the tests did not notice %d of %d mutants; logs: %s", tried-caught, tried, folder)
	}
	return ctx.Err()
}

// scratch is a new folder for one run below root. Every run has its own.
func scratch(root, kind string) (string, error) {
	parent := filepath.Join(root, ".work", "mutants")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, kind+"-")
}

// try breaks the tree, runs the tests and restores the tree. It returns the test that failed.
func (m mutant) try(ctx context.Context, tree string) (failed string, err error) {
	if err := m.apply(tree); err != nil {
		return "", err
	}
	defer func() {
		if out, e := exec.Command("git", "-C", tree, "checkout", "--quiet", "--", m.file).CombinedOutput(); e != nil && err == nil {
			err = fmt.Errorf("mend the tree: %w: %s", e, out)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	test := `exec go test -count=1 -failfast -timeout=14m -run "$1" "$2"`
	if m.lane == "vm" {
		test = `exec hack/vm/test.sh -run "$1" "$2"`
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", `env=$(hack/test/prepare.sh "$0") && eval "$env" && `+test, m.lane, "^"+m.run+"$", "./"+m.pkg)
	cmd.Dir = tree
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	out, runErr := cmd.CombinedOutput()
	if err := os.WriteFile(filepath.Join(filepath.Dir(tree), m.name+".log"), out, 0o644); err != nil {
		return "", err
	}
	for line := range bytes.Lines(out) {
		if name, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("--- FAIL: ")); ok {
			return string(name), nil
		}
	}
	if runErr != nil {
		return "", fmt.Errorf("no test failed, but the run did (%w): it proves nothing", runErr)
	}
	if bytes.Contains(out, []byte("no tests to run")) {
		return "", fmt.Errorf("%s matches no test of %s", m.run, m.pkg)
	}
	return "", nil
}

// apply breaks the tree.
func (m mutant) apply(tree string) error {
	file := filepath.Join(tree, m.file)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		return fmt.Errorf("%s holds %q %d times, want once", m.file, m.old, n)
	}
	return os.WriteFile(file, []byte(strings.Replace(string(text), m.old, m.new, 1)), 0o644)
}
