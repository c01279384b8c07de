package main

import (
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// The most words that a name may have.
const (
	longestTest = 14 // in the name of a test function, without Test
	longestCase = 20 // in the name of a table's case, or of a subtest
)

// humps matches the words of a name of code.
var humps = regexp.MustCompile(`[A-Z]+(?:[0-9]+)?(?:[a-z]+)?|[a-z]+|[0-9]+`)

// BadTestNames returns the names that break a rule: of a file's tests, benchmarks and fuzz tests,
// and of the cases of their tables. A name has no phrase that is banned in sentences, and not too
// many words. Cases are the keys of a table, and literal names of t.Run. It ignores quotations in
// them.
func BadTestNames(source []byte) ([]Finding, error) {
	set := token.NewFileSet()
	file, err := goparser.ParseFile(set, "", source, goparser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []Finding
	check := func(n ast.Node, name string, count, most int) {
		line := set.Position(n.Pos()).Line
		if count > most {
			found = append(found, Finding{line, fmt.Sprintf("%d words in the name of a test, at most %d: %s", count, most, name)})
		}
		for _, b := range banned {
			if m := b.pattern.FindString(quotation.ReplaceAllString(name, code)); m != "" {
				found = append(found, Finding{line, fmt.Sprintf("%q: write %s: %s", m, b.instead, name)})
			}
		}
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || f.Body == nil {
			continue
		}
		for _, kind := range []string{"Test", "Benchmark", "Fuzz"} {
			if rest, ok := strings.CutPrefix(f.Name.Name, kind); ok {
				words := humps.FindAllString(rest, -1)
				check(f, strings.Join(words, " "), len(words), longestTest)
				ast.Inspect(f.Body, func(n ast.Node) bool {
					for _, name := range caseNames(n) {
						if text, err := strconv.Unquote(name.Value); err == nil {
							check(name, text, len(strings.Fields(text)), longestCase)
						}
					}
					return true
				})
			}
		}
	}
	return found, nil
}

// caseNames are the names of cases in a node.
func caseNames(n ast.Node) (names []*ast.BasicLit) {
	add := func(e ast.Expr) {
		if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
			names = append(names, l)
		}
	}
	switch n := n.(type) {
	case *ast.CompositeLit:
		of, ok := n.Type.(*ast.MapType)
		if !ok {
			return nil
		}
		if _, table := of.Value.(*ast.StructType); !table {
			return nil // data instead of a table of cases
		}
		for _, e := range n.Elts {
			if pair, ok := e.(*ast.KeyValueExpr); ok {
				add(pair.Key)
			}
		}
	case *ast.CallExpr:
		if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Run" && len(n.Args) == 2 {
			add(n.Args[0])
		}
	}
	return names
}
