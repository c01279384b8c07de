package main

import (
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Words are the texts in Go files for people: comments of declarations, texts of errors, and names
// of tests. Each begins with its place.
type Words struct {
	Comments, Errors, Tests []string
}

// errorFunctions return errors. The number is the index of the text's argument; -1: the last.
var errorFunctions = map[string]int{
	"errors.New": 0, "fmt.Errorf": 0,
	"field.Invalid": -1, "field.Forbidden": -1, "field.Required": -1,
}

// ReadWords reads the words of the Go files below root.
func ReadWords(root string) (Words, error) {
	files, err := CommentFiles(root)
	if err != nil {
		return Words{}, err
	}
	var all Words
	for _, f := range files {
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f)))
		if err != nil {
			return Words{}, err
		}
		if err := all.add(f, source); err != nil {
			return Words{}, fmt.Errorf("%s: %w", f, err)
		}
	}
	return all, nil
}

// add adds the words of one file.
func (w *Words) add(name string, source []byte) error {
	set := token.NewFileSet()
	file, err := goparser.ParseFile(set, "", source, goparser.ParseComments|goparser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return err
	}
	at := func(n ast.Node) string { return fmt.Sprintf("%s:%d: ", name, set.Position(n.Pos()).Line) }
	test := strings.HasSuffix(name, "_test.go")
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			w.comment(at, n.Doc)
			if test && strings.HasPrefix(n.Name.Name, "Test") && n.Name.Name != "TestMain" {
				w.Tests = append(w.Tests, at(n)+n.Name.Name)
			}
		case *ast.GenDecl:
			w.comment(at, n.Doc)
		case *ast.TypeSpec:
			w.comment(at, n.Doc)
		case *ast.Field:
			w.comment(at, n.Doc)
		case *ast.CallExpr:
			if text := errorText(n); text != "" && !test {
				w.Errors = append(w.Errors, at(n)+text)
			}
		}
		return true
	})
	return nil
}

func (w *Words) comment(at func(ast.Node) string, group *ast.CommentGroup) {
	if group == nil {
		return
	}
	if text := strings.Join(strings.Fields(group.Text()), " "); text != "" {
		w.Comments = append(w.Comments, at(group)+text)
	}
}

// errorText is the text of the error that a call makes from a literal; empty: it makes none.
func errorText(call *ast.CallExpr) string {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	pkg, ok := selector.X.(*ast.Ident)
	if !ok {
		return ""
	}
	place, ok := errorFunctions[pkg.Name+"."+selector.Sel.Name]
	if !ok || len(call.Args) == 0 {
		return ""
	}
	if place < 0 {
		place = len(call.Args) - 1
	}
	literal, ok := call.Args[place].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return text
}

// The sizes of a draw.
const drawnComments, drawnErrors, drawnTests = 60, 40, 40

// draw prints random words, for a person to judge: the same seed gives the same words.
func draw(out io.Writer, root string, seed uint64) error {
	w, err := ReadWords(root)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for _, part := range []struct {
		title string
		words []string
		most  int
	}{{"comments", w.Comments, drawnComments}, {"texts of errors", w.Errors, drawnErrors}, {"names of tests", w.Tests, drawnTests}} {
		fmt.Fprintf(out, "%d of %d %s, seed %d:\n", min(part.most, len(part.words)), len(part.words), part.title, seed)
		for _, i := range random.Perm(len(part.words))[:min(part.most, len(part.words))] {
			fmt.Fprintln(out, "  "+part.words[i])
		}
	}
	return nil
}
