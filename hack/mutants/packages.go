package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// pure are the packages that decide. They have no goroutines, files or servers of their own, so
// their own tests can notice every defect in them.
var pure = []string{
	"operator/internal/text/...", "operator/internal/model/...", "operator/internal/results/...",
	"operator/internal/experiment/...", "operator/internal/engine/...",
	"operator/internal/analysis/claims", "operator/internal/analysis/fidelity", "operator/internal/analysis/judge",
	"operator/internal/analysis/reported", "operator/internal/analysis/validity",
}

// source is a package's text.
type source struct {
	path, name string
	files      []string // below the repository
	texts      map[string][]byte
	trees      map[string]*ast.File
	info       *types.Info // of the package as it is
}

// code is the text of all packages whose changes are drawn, and the types of what they import.
type code struct {
	set      *token.FileSet
	packages map[string]*source // by the name that change.pkg has
	imports  types.Importer
}

// load reads the packages that have tests.
func load(ctx context.Context, root string, patterns []string) (*code, error) {
	args := []string{"list", "-deps", "-export", "-json=ImportPath,Name,Dir,Export,GoFiles,TestGoFiles,XTestGoFiles,DepOnly,Standard"}
	args = append(args, "cmp", "fmt", "os", "strconv", "sync/atomic") // which the library imports
	for _, p := range patterns {
		args = append(args, "./"+p)
	}
	cmd := command(ctx, root, "go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	c := &code{set: token.NewFileSet(), packages: map[string]*source{}}
	exports := map[string]string{}
	for list := json.NewDecoder(bytes.NewReader(out)); list.More(); {
		var p struct {
			ImportPath, Name, Dir, Export      string
			GoFiles, TestGoFiles, XTestGoFiles []string
			DepOnly, Standard                  bool
		}
		if err := list.Decode(&p); err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if p.DepOnly || p.Standard || len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		below, err := filepath.Rel(root, p.Dir)
		if err != nil {
			return nil, err
		}
		s := &source{path: p.ImportPath, name: p.Name, texts: map[string][]byte{}, trees: map[string]*ast.File{}}
		for _, f := range p.GoFiles {
			file := filepath.Join(below, f)
			if s.texts[file], err = os.ReadFile(filepath.Join(root, file)); err != nil {
				return nil, err
			}
			if s.trees[file], err = parser.ParseFile(c.set, file, s.texts[file], parser.SkipObjectResolution); err != nil {
				return nil, err
			}
			s.files = append(s.files, file)
		}
		c.packages["./"+filepath.ToSlash(below)] = s
	}
	c.imports = importer.ForCompiler(c.set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return c, nil
}

// changes are all possible ones, in the order of their places.
func (c *code) changes() []change {
	var all []change
	for _, s := range c.packages {
		for _, file := range s.files {
			if strings.HasPrefix(filepath.Base(file), "zz_") || strings.HasSuffix(file, ".pb.go") {
				continue // generated
			}
			all = append(all, changesOf(c.set, file, s.texts[file], s.trees[file])...)
		}
	}
	slices.SortStableFunc(all, func(a, b change) int { return strings.Compare(a.file, b.file) })
	return all
}

// compiles says whether a package is correct with other texts of some files.
func (c *code) compiles(s *source, changed map[string][]byte, info *types.Info) bool {
	var trees []*ast.File
	for _, file := range s.files {
		tree := s.trees[file]
		if text, ok := changed[file]; ok {
			var err error
			if tree, err = parser.ParseFile(c.set, file, text, parser.SkipObjectResolution); err != nil {
				return false
			}
		}
		trees = append(trees, tree)
	}
	if text, ok := changed[libraryFile]; ok {
		tree, err := parser.ParseFile(c.set, libraryFile, text, parser.SkipObjectResolution)
		if err != nil {
			return false
		}
		trees = append(trees, tree)
	}
	_, err := (&types.Config{Importer: c.imports}).Check(s.path, c.set, trees, info)
	return err == nil
}

// possible says whether the package compiles with the change.
func (c *code) possible(one change) bool {
	s := c.packages[one.pkg()]
	return c.compiles(s, map[string][]byte{one.file: one.plain(s.texts[one.file])}, nil)
}

// together puts changes of one package into one text for each of its files. It returns those
// changes that no switch can hold: a constant that the length of an array needs, or the step of a
// loop.
func (c *code) together(changes []change) (texts map[string][]byte, alone []change, err error) {
	s := c.packages[changes[0].pkg()]
	if s.info == nil {
		s.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Implicits: map[ast.Node]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
		if !c.compiles(s, nil, s.info) {
			return nil, nil, fmt.Errorf("%s does not compile", s.path)
		}
	}
	var placed []change
	for _, one := range changes {
		if one.new == "" && !one.listed {
			alone = append(alone, one)
		} else {
			placed = append(placed, one)
		}
	}
	misfits := slices.Clone(c.misfits(s, placed))
	placed = slices.DeleteFunc(placed, func(one change) bool { return slices.Contains(misfits, one) })
	return c.edited(s, placed), append(alone, misfits...), nil
}

// misfits are those changes that do not compile behind their switches.
func (c *code) misfits(s *source, changes []change) []change {
	switch {
	case len(changes) == 0 || c.compiles(s, c.edited(s, changes), nil):
		return nil
	case len(changes) == 1:
		return changes
	}
	half := len(changes) / 2
	return slices.Concat(c.misfits(s, changes[:half]), c.misfits(s, changes[half:]))
}

const libraryFile = "zz_mutants.go"

// edited are the texts of the changed files and the file of the switches.
func (c *code) edited(s *source, changes []change) map[string][]byte {
	edits := map[string][]edit{}
	for _, one := range changes {
		more := one.switched(func(p token.Pos) int { return c.set.Position(p).Offset }, func(e ast.Expr) string { return s.typeOf(one.file, e) })
		edits[one.file] = append(edits[one.file], more...)
	}
	texts := map[string][]byte{libraryFile: []byte(library(s.name, 2*c.set.Base()))}
	for file, of := range edits {
		texts[file] = apply(s.texts[file], of)
	}
	return texts
}

// typeOf names the type of an expression as an explicit type argument, in the words of a file. It
// is empty if the file cannot name it: then Go may infer it.
func (s *source) typeOf(file string, e ast.Expr) string {
	unknown := false
	name := types.TypeString(s.info.TypeOf(e), func(p *types.Package) string {
		if p.Path() == s.path {
			return ""
		}
		for _, spec := range s.trees[file].Imports {
			if path, err := strconv.Unquote(spec.Path.Value); err == nil && path == p.Path() {
				return s.info.PkgNameOf(spec).Name()
			}
		}
		unknown = true
		return ""
	})
	if unknown {
		return ""
	}
	return "[" + name + "]"
}
