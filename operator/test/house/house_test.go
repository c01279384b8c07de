// Package house holds rules of structure that no linter checks. They limit the imports between
// rooms and of parents, the methods of a type, and the uses between files of a package. They list
// the packages that may ask for the kind of a fault. It has tests only.
package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.." // the folder operator

// mostMethods of a type. A type with more methods is really several types in one struct, and no
// declaration shows which of its parts use which.
const mostMethods = 30

// Only these packages may ask for the kind of a fault, that is, which of its fields is set.
var asking = map[string]bool{"internal/experiment/fault": true, "internal/experiment/chaosmesh": true, "internal/testkit/builders": true, "api/v1alpha1": true}

// source is one file of a package.
type source struct {
	folder, path string
	file         *ast.File
}

// sources are all files under the folder operator, except for tests.
func sources(t *testing.T) (*token.FileSet, []source) {
	t.Helper()
	set := token.NewFileSet()
	var all []source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(d.Name(), "zz_generated") {
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
		all = append(all, source{filepath.ToSlash(folder), path, file})
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

// rooms are the folders of operator/internal. The first imports no other room, and the last may
// import all.
var rooms = []string{"text", "model", "results", "node", "experiment", "store", "analysis", "engine", "manager", "local", "cli", "testkit"}

// If a room imports a room above it, both become one room: neither can be read, tested or replaced
// alone.
func TestRoomsImportDownwards(t *testing.T) {
	const internal = "assay.dev/assay/operator/internal/"
	_, all := sources(t)
	imports := 0
	for _, s := range all {
		folder, ok := strings.CutPrefix(s.folder, "internal/")
		if !ok {
			continue
		}
		room, _, _ := strings.Cut(folder, "/")
		level := slices.Index(rooms, room)
		if level < 0 {
			t.Errorf("%s: %s is no room: put the package into one of %s, or say here what it knows", s.path, room, strings.Join(rooms, ", "))
		}
		for _, i := range s.file.Imports {
			path, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), internal)
			if !ok {
				continue
			}
			imports++
			if other, _, _ := strings.Cut(path, "/"); slices.Index(rooms, other) > level {
				t.Errorf("%s: %s imports %s, which knows more: hand in what it needs, or move it", s.path, room, path)
			}
		}
	}
	if imports < 500 {
		t.Errorf("only %d imports are found: the test does not see them", imports)
	}
}

// contracts are parents that hold what their children agree on: the types of results, the interface
// of a shaper or a store. Their children implement or extend it.
var contracts = []string{"internal/results", "internal/node/netem", "internal/store", "internal/cli/ui"}

// A package that imports its parent is a part of it, cut out to make the parent smaller: a reader
// of either needs both. The mend is a package below the two, which has their common types.
func TestNoPackageImportsItsParent(t *testing.T) {
	const operator = "assay.dev/assay/operator/"
	_, all := sources(t)
	used := map[string]bool{}
	for _, s := range all {
		parent := path.Dir(s.folder)
		for _, i := range s.file.Imports {
			if imported := strings.Trim(i.Path.Value, `"`); imported != operator+parent {
				continue
			}
			if used[parent] = true; !slices.Contains(contracts, parent) {
				t.Errorf("%s imports its parent %s: put their common types into a package below them", s.path, parent)
			}
		}
	}
	for _, c := range contracts {
		if !used[c] {
			t.Errorf("no child imports %s: it need not be listed here", c)
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
	if len(methods) < 300 {
		t.Errorf("only %d types with methods are found: the test does not see them", len(methods))
	}
	for name, n := range methods {
		if n > mostMethods {
			t.Errorf("%s has %d methods; at most %d: give a part of them a type of their own", name, n, mostMethods)
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

// 41 files of 8 packages asked for the kind of a fault, so an author of a new kind had to find all
// of them.
func TestOnlyOnePackageAsksWhichKindAFaultIs(t *testing.T) {
	set, all := sources(t)
	kinds := kindsOfFaults(all)
	if len(kinds) < 6 {
		t.Fatalf("only %v are found as kinds of faults", kinds)
	}
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

// kindsOfFaults are the fields of the API's Fault that point to a struct, without the fields that
// any kind may have.
func kindsOfFaults(all []source) map[string]bool {
	kinds := map[string]bool{}
	for _, s := range all {
		if s.folder != "api/v1alpha1" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != "Fault" {
				return true
			}
			for _, f := range spec.Type.(*ast.StructType).Fields.List {
				pointer, ok := f.Type.(*ast.StarExpr)
				if !ok {
					continue
				}
				if to, ok := pointer.X.(*ast.Ident); ok && to.Name != "Duration" && to.Name != "FaultMark" && to.Name != "Repeat" {
					kinds[f.Names[0].Name] = true
				}
			}
			return false
		})
	}
	return kinds
}

// ofNoFault: the name before the field is the package of actions, or the checks of a plan.
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
