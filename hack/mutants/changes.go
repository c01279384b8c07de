package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// change is one small defect at a drawn place.
type change struct {
	file     string // below the repository
	line     int
	from, to int    // bytes of the file
	new      string // replaces these bytes
	old      string

	place  string   // its line without the indent, and where it is there
	id     int      // of its switch; the next number is kept for a second change of the same operator
	second bool     // it is that one
	node   ast.Node // what changes
	listed bool     // the node is a statement between others
}

func (c change) pkg() string { return "./" + filepath.ToSlash(filepath.Dir(c.file)) }

func (c change) String() string {
	if c.new == "" {
		return fmt.Sprintf("%s:%d without %s", c.file, c.line, firstLine(c.old))
	}
	return fmt.Sprintf("%s:%d %s for %s", c.file, c.line, c.new, c.old)
}

// key names a change within a record: two changes of one line may have the same text.
func (c change) key() string { return fmt.Sprintf("%s @%d", c, c.from) }

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
func changesOf(set *token.FileSet, file string, text []byte, tree *ast.File) []change {
	var found []change
	listed := map[ast.Node]bool{}
	add := func(n ast.Node, from, to token.Pos, instead string) {
		a, b := set.Position(from), set.Position(to)
		before := text[bytes.LastIndexByte(text[:a.Offset], '\n')+1 : a.Offset]
		rest, _, _ := bytes.Cut(text[a.Offset:], []byte("\n"))
		found = append(found, change{
			place: fmt.Sprintf("%s\x00%s", bytes.TrimLeft(before, "\t"), rest),
			file:  file, line: a.Line, from: a.Offset, to: b.Offset, new: instead, old: string(text[a.Offset:b.Offset]),
			id: 2 * int(from), node: n, listed: listed[n],
		})
	}
	swap := func(n ast.Node, at token.Pos, op token.Token) {
		for i, other := range swaps[op] {
			add(n, at, at+token.Pos(len(op.String())), other.String())
			found[len(found)-1].second = i > 0
		}
	}
	list := func(statements []ast.Stmt) {
		for _, s := range statements {
			listed[s] = true
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok != token.CONST && n.Tok != token.IMPORT // the value of a constant is chosen, so no test can derive it
		case *ast.BlockStmt:
			list(n.List)
		case *ast.CaseClause:
			list(n.Body)
		case *ast.CommClause:
			list(n.Body)
		case *ast.BinaryExpr:
			swap(n, n.OpPos, n.Op)
		case *ast.IncDecStmt:
			swap(n, n.TokPos, n.Tok)
		case *ast.AssignStmt:
			swap(n, n.TokPos, n.Tok)
			if n.Tok != token.DEFINE {
				add(n, n.Pos(), n.End(), "")
			}
		case *ast.ExprStmt:
			add(n, n.Pos(), n.End(), "")
		case *ast.UnaryExpr:
			if n.Op == token.NOT || n.Op == token.SUB {
				add(n, n.OpPos, n.OpPos+1, " ")
			}
		case *ast.Ident:
			if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
				add(n, n.Pos(), n.End(), other)
			}
		case *ast.BasicLit:
			if v, err := strconv.Atoi(n.Value); n.Kind == token.INT && err == nil {
				add(n, n.Pos(), n.End(), strconv.Itoa(v+1))
			}
		}
		return true
	})
	return found
}

// plain is the file's text with the change alone.
func (c change) plain(text []byte) []byte {
	return slices.Concat(text[:c.from], []byte(c.new), text[c.to:])
}
