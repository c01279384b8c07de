package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// pure are the packages that decide. They have no goroutines, files or servers of their own, so
// their own tests can notice every defect in them.
var pure = []string{
	"operator/internal/text/...", "operator/internal/model/...", "operator/internal/results/...",
	"operator/internal/experiment/...", "operator/internal/engine/...",
	"operator/internal/analysis/claims", "operator/internal/analysis/fidelity", "operator/internal/analysis/judge",
	"operator/internal/analysis/reported", "operator/internal/analysis/validity",
}

// change is one small defect at a drawn place.
type change struct {
	file     string // below the repository
	line     int
	from, to int    // bytes of the file
	new      string // replaces these bytes
	old      string
}

func (c change) pkg() string { return "./" + filepath.ToSlash(filepath.Dir(c.file)) }

func (c change) String() string {
	if c.new == "" {
		return fmt.Sprintf("%s:%d without %s", c.file, c.line, firstLine(c.old))
	}
	return fmt.Sprintf("%s:%d %s for %s", c.file, c.line, c.new, c.old)
}

func firstLine(s string) string {
	if line, _, more := strings.Cut(s, "\n"); more {
		return line + " ..."
	}
	return s
}

// swaps are the replacements of an operator. The kinds are those of mutation testing's literature:
// relational, arithmetic, logical and assignment operators (Offutt et al., "An experimental
// determination of sufficient mutant operators", TOSEM 1996).
var swaps = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR}, token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.MUL},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.INC: {token.DEC}, token.DEC: {token.INC}, token.ADD_ASSIGN: {token.SUB_ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN},
}

// changesOf are all possible changes of a file.
func changesOf(root, file string) ([]change, error) {
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, text, 0)
	if err != nil {
		return nil, err
	}
	var found []change
	add := func(from, to token.Pos, instead string) {
		a, b := set.Position(from), set.Position(to)
		found = append(found, change{file: file, line: a.Line, from: a.Offset, to: b.Offset, new: instead, old: string(text[a.Offset:b.Offset])})
	}
	swap := func(at token.Pos, op token.Token) {
		for _, other := range swaps[op] {
			add(at, at+token.Pos(len(op.String())), other.String())
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok != token.CONST && n.Tok != token.IMPORT // the value of a constant is chosen, so no test can derive it
		case *ast.BinaryExpr:
			swap(n.OpPos, n.Op)
		case *ast.IncDecStmt:
			swap(n.TokPos, n.Tok)
		case *ast.AssignStmt:
			swap(n.TokPos, n.Tok)
			if n.Tok != token.DEFINE {
				add(n.Pos(), n.End(), "")
			}
		case *ast.ExprStmt:
			add(n.Pos(), n.End(), "")
		case *ast.UnaryExpr:
			if n.Op == token.NOT || n.Op == token.SUB {
				add(n.OpPos, n.OpPos+1, " ")
			}
		case *ast.Ident:
			if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
				add(n.Pos(), n.End(), other)
			}
		case *ast.BasicLit:
			if v, err := strconv.Atoi(n.Value); n.Kind == token.INT && err == nil {
				add(n.Pos(), n.End(), strconv.Itoa(v+1))
			}
		}
		return true
	})
	return found, nil
}

// allChanges are the changes of all pure packages, in the order of their places.
func allChanges(ctx context.Context, root string, patterns []string) ([]change, error) {
	args := append([]string{"list", "-f", `{{$d := .Dir}}{{if or .TestGoFiles .XTestGoFiles}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}`}, patterns...)
	for i, p := range args[3:] {
		args[3+i] = "./" + p
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	var all []change
	for path := range strings.FieldsSeq(string(out)) {
		file, err := filepath.Rel(root, path)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(filepath.Base(file), "zz_") || strings.HasSuffix(file, ".pb.go") {
			continue // generated
		}
		of, err := changesOf(root, file)
		if err != nil {
			return nil, err
		}
		all = append(all, of...)
	}
	return all, nil
}

// outcome is the outcome of the tests of a changed package.
type outcome int

const (
	killed outcome = iota
	survived
	noProgram // it does not compile: another change is drawn
)

// inDrawnOrder are all changes in the order in which the seed draws them.
func inDrawnOrder(ctx context.Context, root string, seed uint64, patterns []string) ([]change, error) {
	all, err := allChanges(ctx, root, patterns)
	if err != nil {
		return nil, err
	}
	draw := rand.New(rand.NewPCG(seed, 0))
	draw.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all, nil
}

// listDrawn prints the first n changes that a seed draws, by package, and tries none. Some of them
// may not compile: a run takes others in their place.
func listDrawn(ctx context.Context, w io.Writer, n int, seed uint64, patterns []string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	all, err := inDrawnOrder(ctx, root, seed, patterns)
	if err != nil {
		return err
	}
	of := map[string][]change{}
	for _, c := range all[:min(n, len(all))] {
		of[c.pkg()] = append(of[c.pkg()], c)
	}
	for _, p := range slices.Sorted(maps.Keys(of)) {
		fmt.Fprintf(w, "%d in %s\n", len(of[p]), p)
		for _, c := range of[p] {
			fmt.Fprintf(w, "  %s\n", c)
		}
	}
	return nil
}

// random draws changes by the seed, one after the other, until n of them compiled. It prints those
// that the tests of their own package do not notice. It fails if more than a tenth survive. If a
// run was stopped, the next one continues after the changes in its record.
func random(ctx context.Context, w io.Writer, n, workers int, seed uint64, patterns []string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	all, err := inDrawnOrder(ctx, root, seed, patterns)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d of %d places, drawn with seed %d\n", n, len(all), seed)
	folder, err := scratch(root, "random")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	past, err := openRecord(ctx, root, all, seed, patterns)
	if err != nil {
		return err
	}
	defer past.file.Close()
	d := &drawn{all: all, want: n, record: past}
	if k := len(past.known); k > 0 {
		fmt.Fprintf(w, "%d of them are in %s already\n", k, past.file.Name())
	}
	var running sync.WaitGroup
	for i := range workers {
		running.Go(func() {
			for c, ok := d.take(ctx); ok; c, ok = d.take(ctx) {
				if was, ok := past.known[c.key()]; ok {
					d.ended(w, c, was, nil)
					continue
				}
				began := time.Now()
				o, by, err := c.try(ctx, root, filepath.Join(folder, strconv.Itoa(i)), d.testsOf(c.pkg()))
				if ctx.Err() == nil {
					d.ended(w, c, result{Change: c.key(), Outcome: o, By: by, Seconds: time.Since(began).Seconds()}, err)
				}
			}
		})
	}
	running.Wait()
	if err := cmp.Or(d.err, ctx.Err()); err != nil {
		return err
	}
	tried := d.counts[killed] + d.counts[survived]
	d.table(w)
	fmt.Fprintf(w, "%d of %d killed by the tests of their own package; %d more did not compile\n", d.counts[killed], tried, d.counts[noProgram])
	if 10*d.counts[survived] > tried {
		return fmt.Errorf("%d of %d survived, more than one in ten", d.counts[survived], tried)
	}
	return nil
}

// drawn are changes in the order of their draw, and the results of the tried ones.
type drawn struct {
	all  []change
	want int // how many changes that compile

	mutex       sync.Mutex
	next, tried int
	counts      [3]int
	packages    map[string]*[3]int
	tests       map[string]*own
	record      *record
	err         error // ends the run
}

// take is the next change to try, if there is one.
func (d *drawn) take(ctx context.Context) (change, bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.err != nil || ctx.Err() != nil || d.tried >= d.want || d.next >= len(d.all) {
		return change{}, false
	}
	d.next, d.tried = d.next+1, d.tried+1
	return d.all[d.next-1], true
}

// testsOf are the tests of a package, the same for each of its changes.
func (d *drawn) testsOf(pkg string) *own {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.tests == nil {
		d.tests = map[string]*own{}
	}
	if d.tests[pkg] == nil {
		d.tests[pkg] = &own{}
	}
	return d.tests[pkg]
}

// ended adds, prints and records the outcome of a change.
func (d *drawn) ended(w io.Writer, c change, r result, err error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if err == nil {
		err = d.record.keep(r)
	}
	if d.err = cmp.Or(d.err, err); err != nil {
		return
	}
	if d.packages == nil {
		d.packages = map[string]*[3]int{}
	}
	if d.packages[c.pkg()] == nil {
		d.packages[c.pkg()] = &[3]int{}
	}
	d.counts[r.Outcome]++
	d.packages[c.pkg()][r.Outcome]++
	switch r.Outcome {
	case noProgram:
		d.tried--
	case survived:
		fmt.Fprintf(w, "survived  %4.0f s  %s\n", r.Seconds, c)
	case killed:
		fmt.Fprintf(w, "killed    %4.0f s  %s: %s\n", r.Seconds, c, r.By)
	}
}

// table prints how many changes each package's tests noticed.
func (d *drawn) table(w io.Writer) {
	fmt.Fprintf(w, "%-48s %7s %8s %5s\n", "package", "killed", "survived", "rate")
	for _, p := range slices.Sorted(maps.Keys(d.packages)) {
		n := d.packages[p]
		if tried := n[killed] + n[survived]; tried > 0 {
			fmt.Fprintf(w, "%-48s %7d %8d %4d%%\n", p, n[killed], n[survived], 100*n[killed]/tried)
		}
	}
}

// own says how to run the tests of a package. Tests that took long without a change come last,
// since most changes fail a quick test.
type own struct {
	once sync.Once
	slow string // matches the names of the slow tests; empty: there are none
	took time.Duration
	err  error
}

// slack is how much time the tests of a changed package get, in addition to several times their
// time without a change.
const slack = 2 * time.Minute

// quick is how long a test may take to come first.
const quick = time.Second

// passed matches a passed test in the output of the package's test program.
var passed = regexp.MustCompile(`(?m)^--- PASS: (\S+) \(([0-9.]+)s\)$`)

// measure runs the tests once without a change. They must pass, or they would seem to notice every
// change.
func (o *own) measure(ctx context.Context, root, pkg, program string) error {
	o.once.Do(func() {
		if out, err := build(ctx, root, pkg, program); err != nil {
			o.err = fmt.Errorf("build the tests of %s: %w: %s", pkg, err, out)
			return
		}
		began := time.Now()
		out, err := runTests(ctx, root, pkg, program, "-test.v", "-test.timeout=0")
		o.took = time.Since(began)
		if err != nil {
			o.err = fmt.Errorf("the tests of %s fail without any change: %s", pkg, noticedBy(out))
			return
		}
		var names []string
		for _, m := range passed.FindAllSubmatch(out, -1) {
			if took, err := strconv.ParseFloat(string(m[2]), 64); err == nil && took > quick.Seconds() {
				names = append(names, string(m[1]))
			}
		}
		if len(names) > 0 {
			o.slow = "^(" + strings.Join(names, "|") + ")$"
		}
	})
	return o.err
}

// build makes the program of a package's tests. It leaves out the table of symbols, which saves
// time.
func build(ctx context.Context, root, pkg, program string, more ...string) ([]byte, error) {
	return command(ctx, root, "go", slices.Concat([]string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", program}, more, []string{pkg})...)
}

// runTests runs the program of a package's tests in the folder that go test would use.
func runTests(ctx context.Context, root, pkg, program string, args ...string) ([]byte, error) {
	return command(ctx, filepath.Join(root, pkg), program, append([]string{"-test.paniconexit0", "-test.failfast"}, args...)...)
}

// command runs a program in a folder. When the context ends, it ends the program and its children.
func command(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	return cmd.CombinedOutput()
}

// try runs the package's own tests with an overlay of the changed file. The tree does not change.
func (c change) try(ctx context.Context, root, scratch string, tests *own) (o outcome, by string, err error) {
	text, err := os.ReadFile(filepath.Join(root, c.file))
	if err != nil {
		return 0, "", err
	}
	changed := slices.Concat(text[:c.from], []byte(c.new), text[c.to:])
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, c.file): scratch + ".go.txt"}})
	if err != nil {
		return 0, "", err
	}
	if err := cmp.Or(os.WriteFile(scratch+".go.txt", changed, 0o644), os.WriteFile(scratch+".json", overlay, 0o644)); err != nil {
		return 0, "", err
	}
	program := scratch + ".test"
	if err := tests.measure(ctx, root, c.pkg(), program); err != nil {
		return 0, "", err
	}
	if _, err := build(ctx, root, c.pkg(), program, "-overlay="+scratch+".json"); err != nil {
		return noProgram, "", ctx.Err()
	}
	runs := [][]string{nil}
	if tests.slow != "" {
		runs = [][]string{{"-test.skip=" + tests.slow}, {"-test.run=" + tests.slow}}
	}
	for _, args := range runs { // a change may have a loop that does not end
		limit := fmt.Sprintf("-test.timeout=%v", slack+5*tests.took)
		if out, noticed := runTests(ctx, root, c.pkg(), program, append(args, limit)...); noticed != nil {
			return killed, noticedBy(out), nil //nolint:nilerr // a test that fails is the answer
		}
	}
	return survived, "", nil
}

// noticedBy is the first test that failed, or another reason for the end of the tests.
func noticedBy(out []byte) string {
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
	return cmp.Or(first, "go test fails")
}
