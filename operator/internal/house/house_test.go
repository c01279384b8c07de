// Package house holds the sizes and walls of the house that no linter holds: how large a package or
// a type may be, and who may ask of which kind a fault is. It has tests only.
package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.." // the folder operator

// mostLines of a package, its tests left out. A conductor that grows beyond this has taken over a
// part that others play.
var mostLines = map[string]int{"internal/controller/trial": 2500}

// mostMethods of a type; those of some types are bounded by what they had when this was written.
const mostMethods = 60

var methodsOf = map[string]int{"internal/agent.Agent": 138}

// kinds of faults are fields of an Experiment's faults. Only these packages may ask which is set.
var (
	kinds  = map[string]bool{"NodeKill": true, "Pause": true, "Partition": true, "Degrade": true, "ChaosMesh": true, "ClientBehavior": true}
	asking = map[string]bool{"internal/fault": true, "internal/chaosmesh": true, "internal/testkit/builders": true, "api/v1alpha1": true}
)

// source is one file of a package.
type source struct {
	folder, path string
	file         *ast.File
	lines        int
}

// sources are all files under the folder operator but tests.
func sources(t *testing.T) (*token.FileSet, []source) {
	t.Helper()
	set := token.NewFileSet()
	var all []source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		all = append(all, source{filepath.ToSlash(folder), path, file, set.File(file.FileStart).LineCount()})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 300 {
		t.Fatalf("only %d files are found", len(all))
	}
	return set, all
}

func TestPackagesAreNoLargerThanTheyMayBe(t *testing.T) {
	_, all := sources(t)
	lines := map[string]int{}
	for _, s := range all {
		lines[s.folder] += s.lines
	}
	for folder, most := range mostLines {
		if n := lines[folder]; n == 0 || n > most {
			t.Errorf("%s has %d lines without its tests; want 1 to %d: move a part of it into a package of its own", folder, n, most)
		}
	}
}

func TestNoTypeHasTooManyMethods(t *testing.T) {
	_, all := sources(t)
	methods := map[string]int{}
	for _, s := range all {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[s.folder+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
	}
	for name, n := range methods {
		most := mostMethods
		if bound, ok := methodsOf[name]; ok {
			most = bound
		}
		if n > most {
			t.Errorf("%s has %d methods; at most %d: give a part of them a type of their own", name, n, most)
		}
	}
	for name := range methodsOf {
		if methods[name] <= mostMethods {
			t.Errorf("%s has %d methods and needs no bound of its own any more", name, methods[name])
		}
	}
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// Which kind a fault is was asked in 41 files of 8 packages, so that a new kind meant to find them
// all.
func TestOnlyOnePackageAsksWhichKindAFaultIs(t *testing.T) {
	set, all := sources(t)
	asked := 0
	for _, s := range all {
		if !importsAPI(s.file) && s.folder != "api/v1alpha1" {
			continue // it knows no Fault
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok || !kinds[selector.Sel.Name] || ofNoFault(selector.X) {
				return true
			}
			asked++
			if !asking[s.folder] {
				t.Errorf("%s: asks for the field %s of a fault; ask package fault what it must know", set.Position(selector.Pos()), selector.Sel.Name)
			}
			return true
		})
	}
	if asked < 20 {
		t.Errorf("only %d places ask which kind a fault is: the test does not see them", asked)
	}
}

// ofNoFault: what stands before the name is the package of actions, or the checks that a plan is
// given.
func ofNoFault(x ast.Expr) bool {
	name, ok := x.(*ast.Ident)
	return ok && (name.Name == "timeline" || name.Name == "checks" || name.Name == "launcher")
}

func importsAPI(f *ast.File) bool {
	for _, i := range f.Imports {
		if i.Path.Value == `"assay.dev/assay/operator/api/v1alpha1"` {
			return true
		}
	}
	return false
}
