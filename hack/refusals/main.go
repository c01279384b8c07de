// Command refusals names the rejections of the webhooks that no written case reaches. A rejection
// is a place that makes an error of a field in the packages that admission runs. The cases are
// those of operator/internal/testkit/refusals, which tests give to plan and to a real API server.
// It runs them with coverage. It fails if a place is not reached and not in unreached.txt, or if a
// place there is reached.
//
//	go run ./hack/refusals
package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	module    = "assay.dev/assay/"
	unreached = "hack/refusals/unreached.txt"
)

// packages that admission runs: they check the content of a System and an Experiment.
var packages = []string{"experiment/plan", "experiment/fault", "experiment/chaosmesh", "model/network", "analysis/claims", "manager/admit"}

// makers are functions that make errors of fields.
var makers = []string{"Invalid", "Required", "Forbidden", "NotFound", "Duplicate", "NotSupported", "TooMany", "TooLong"}

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	blocks, err := coverage()
	if err != nil {
		return err
	}
	allowed, err := readUnreached()
	if err != nil {
		return err
	}
	sites, reached := 0, 0
	var wrong []string
	for _, name := range packages {
		files, err := filepath.Glob("operator/internal/" + name + "/*.go")
		if err != nil {
			return err
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			all, err := sitesOf(file)
			if err != nil {
				return err
			}
			for _, s := range all {
				sites++
				isReached, isAllowed := blocks.reached(file, s.at), slices.Contains(allowed, s.key)
				if isReached {
					reached++
				}
				switch {
				case !isReached && !isAllowed:
					wrong = append(wrong, fmt.Sprintf("%s:%d: no case reaches it: add one to operator/internal/testkit/refusals, or its line to %s:\n%s", file, s.at.Line, unreached, s.key))
				case isReached && isAllowed:
					wrong = append(wrong, fmt.Sprintf("%s:%d: a case reaches it: remove its line from %s:\n%s", file, s.at.Line, unreached, s.key))
				}
			}
		}
	}
	fmt.Printf("%d of %d refusals are reached by a written case; %s names %d others\n", reached, sites, unreached, len(allowed))
	if len(wrong) > 0 {
		return fmt.Errorf("%s", strings.Join(wrong, "\n"))
	}
	return nil
}

// site is a place that makes an error of a field.
type site struct {
	at  token.Position
	key string
}

// sitesOf a file. The name of a site has its file, its function, its text, and its number among
// sites with the same text. So lines may move.
func sitesOf(file string) (sites []site, err error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, nil, 0)
	if err != nil {
		return nil, err
	}
	times := map[string]int{}
	for _, d := range parsed.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is || !makes(call) {
				return true
			}
			key := strings.TrimPrefix(file, "operator/internal/") + " " + f.Name.Name + ": " + textOf(call)
			if times[key]++; times[key] > 1 {
				key += fmt.Sprintf(" (%d)", times[key])
			}
			sites = append(sites, site{files.Position(call.Pos()), key})
			return true
		})
	}
	return sites, nil
}

func makes(call *ast.CallExpr) bool {
	fun := call.Fun
	if generic, is := fun.(*ast.IndexExpr); is {
		fun = generic.X
	}
	selector, is := fun.(*ast.SelectorExpr)
	if !is || !slices.Contains(makers, selector.Sel.Name) {
		return false
	}
	of, is := selector.X.(*ast.Ident)
	return is && of.Name == "field"
}

// textOf a call: its longest text, cut to 60 bytes.
func textOf(call *ast.CallExpr) (longest string) {
	ast.Inspect(call, func(n ast.Node) bool {
		if l, is := n.(*ast.BasicLit); is && l.Kind == token.STRING {
			if text, err := strconv.Unquote(l.Value); err == nil && len(text) > len(longest) {
				longest = text
			}
		}
		return true
	})
	return longest[:min(len(longest), 60)]
}

// block of statements that were run or not.
type block struct {
	fromLine, fromColumn, toLine, toColumn int
	run                                    bool
}

type coverageByFile map[string][]block

func (c coverageByFile) reached(file string, at token.Position) bool {
	for _, b := range c[file] {
		after := at.Line > b.fromLine || at.Line == b.fromLine && at.Column >= b.fromColumn
		before := at.Line < b.toLine || at.Line == b.toLine && at.Column <= b.toColumn
		if after && before && b.run {
			return true
		}
	}
	return false
}

var profileLine = regexp.MustCompile(`^` + module + `(\S+):(\d+)\.(\d+),(\d+)\.(\d+) \d+ (\d+)$`)

// coverage runs the written cases.
func coverage() (coverageByFile, error) {
	profile, err := os.CreateTemp("", "refusals")
	if err != nil {
		return nil, err
	}
	defer os.Remove(profile.Name())
	defer profile.Close()
	covered := make([]string, len(packages))
	for i, name := range packages {
		covered[i] = module + "operator/internal/" + name
	}
	test := exec.Command("go", "test", "./operator/internal/manager/admit", "-count=1", "-run=^TestEveryWrittenCaseIsRefused$",
		"-coverpkg="+strings.Join(covered, ","), "-coverprofile="+profile.Name())
	if out, err := test.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("run the written cases: %w\n%s", err, out)
	}
	blocks := coverageByFile{}
	lines := bufio.NewScanner(profile)
	for lines.Scan() {
		m := profileLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		var n [5]int
		for i := range n {
			if n[i], err = strconv.Atoi(m[2+i]); err != nil {
				return nil, err
			}
		}
		blocks[m[1]] = append(blocks[m[1]], block{n[0], n[1], n[2], n[3], n[4] > 0})
	}
	return blocks, lines.Err()
}

// readUnreached returns the lines of unreached.txt without comments. Each says why no case reaches
// the place.
func readUnreached() (keys []string, err error) {
	text, err := os.ReadFile(unreached)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimRight(line, "\n"); strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			key, why, said := strings.Cut(line, " # ")
			if !said || strings.TrimSpace(why) == "" {
				return nil, fmt.Errorf("%s: %q: say why no case reaches it, after \" # \"", unreached, line)
			}
			keys = append(keys, key)
		}
	}
	return keys, nil
}
