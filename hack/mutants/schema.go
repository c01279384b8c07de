package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// All drawn changes of a package stand in one program, each behind a switch. A change then costs a
// run of the tests and no build. These are mutant schemata (Untch et al., "Mutation analysis using
// mutant schemata", ISSTA 1993).
const (
	switchOf  = "ASSAY_MUTANT"          // in the environment: the id of the change that is on
	reachedIn = "ASSAY_MUTANTS_REACHED" // a file for the ids of the switches that a run meets
)

// edit replaces bytes of a file.
type edit struct {
	at, end int
	text    string
	size    int  // of the node around which the edit is, twice; a call that splits it lies further in
	closes  bool // the edit is the end of such a node
	id      int
}

// helpers are the operators that become calls, because an operand may be evaluated only once.
var helpers = map[token.Token]string{
	token.LSS: "mutantLess", token.LEQ: "mutantAtMost", token.GTR: "mutantMore", token.GEQ: "mutantAtLeast",
	token.MUL: "mutantTimes", token.QUO: "mutantBy", token.REM: "mutantRest",
}

// switches is the beginning of the file that a package's program gets.
const switches = `package %s

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
)

var (
	mutant, _     = strconv.Atoi(os.Getenv(%q))
	mutantsFile   = os.Getenv(%q)
	mutantReached [%d]atomic.Bool
)

func mutated(id int) bool { return mutant == id || mutantsFile != "" && mutantNoted(id) }

func mutantNoted(id int) bool {
	if !mutantReached[id].Load() && !mutantReached[id].Swap(true) {
		file, err := os.OpenFile(mutantsFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			panic(err)
		}
		defer file.Close()
		fmt.Fprintln(file, id)
	}
	return false
}

type mutantInteger interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

type mutantNumber interface{ mutantInteger | ~float32 | ~float64 }

type mutantOrdered = cmp.Ordered

func mutantSign[T mutantNumber](id int, a T) T {
	if mutated(id) {
		return -a
	}
	return a
}

func mutantOne[T mutantNumber](id int) T { return mutantSign(id, T(1)) }

func mutantNext[T mutantNumber](id int, a T) T {
	if mutated(id) {
		return a + 1
	}
	return a
}
`

// library is the file that a package's program gets for its switches, whose ids are below ids.
func library(pkg string, ids int) string {
	var b strings.Builder
	fmt.Fprintf(&b, switches, pkg, switchOf, reachedIn, ids)
	for _, op := range slices.Sorted(maps.Keys(helpers)) {
		operands, result := "mutantOrdered", "bool"
		switch op {
		case token.MUL, token.QUO:
			operands, result = "mutantNumber", "T"
		case token.REM:
			operands, result = "mutantInteger", "T"
		}
		fmt.Fprintf(&b, "\nfunc %s[T %s](id int, a, b T) %s {\n", helpers[op], operands, result)
		for i, other := range swaps[op] {
			fmt.Fprintf(&b, "\tif mutated(id + %d) {\n\t\treturn a %s b\n\t}\n", i, other)
		}
		fmt.Fprintf(&b, "\treturn a %s b\n}\n", op)
	}
	return b.String()
}

// switched are the edits that put a change behind its switch. They move no line. A type is named as
// typeOf says: a constant gets the type of its place.
func (c change) switched(offset func(token.Pos) int, typeOf func(ast.Expr) string) []edit {
	var all []edit
	replace := func(from, to token.Pos, text string) {
		all = append(all, edit{at: offset(from), end: offset(to), text: text, id: c.id})
	}
	wrap := func(n ast.Node, size int, before, after string) {
		from, to := offset(n.Pos()), offset(n.End())
		all = append(all, edit{from, from, before, size, false, c.id}, edit{to, to, after, size, true, c.id})
	}
	whole := func(n ast.Node) int { return 2 * int(n.End()-n.Pos()) }
	call := func(name string, n ast.Expr) {
		wrap(n, whole(n), fmt.Sprintf("%s%s(%d, ", name, typeOf(n), c.id), ")")
	}
	negate := func(n ast.Expr) { wrap(n, whole(n), "((", fmt.Sprintf(") != mutated(%d))", c.id)) }
	without := func(n ast.Stmt) { wrap(n, whole(n), fmt.Sprintf("if !mutated(%d) { ", c.id), " }") }

	switch n := c.node.(type) {
	case *ast.ExprStmt:
		without(n)
	case *ast.AssignStmt:
		if c.new == "" {
			without(n)
		} else {
			call("mutantSign", n.Rhs[0])
		}
	case *ast.IncDecStmt:
		op := map[token.Token]string{token.INC: " += ", token.DEC: " -= "}[n.Tok]
		replace(n.TokPos, n.End(), fmt.Sprintf("%smutantOne%s(%d)", op, typeOf(n.X), c.id))
	case *ast.BinaryExpr:
		switch n.Op {
		case token.EQL, token.NEQ:
			negate(n)
		case token.LAND, token.LOR: // a || b is !(!a && !b)
			negate(n)
			negate(n.X)
			negate(n.Y)
		case token.ADD, token.SUB:
			call("mutantSign", n.Y)
		default:
			wrap(n, whole(n)-1, fmt.Sprintf("%s%s(%d, ", helpers[n.Op], typeOf(n.X), c.id), ")")
			replace(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), ",")
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			negate(n)
		} else {
			call("mutantSign", n.X)
		}
	case *ast.Ident:
		negate(n)
	case *ast.BasicLit:
		call("mutantNext", n)
	}
	return all
}

// number is the value of switchOf that turns a change on.
func (c change) number() int {
	if c.second {
		return c.id + 1
	}
	return c.id
}

// apply edits a text. Where several edits meet, ends come before beginnings, and inner nodes lie
// within outer ones.
func apply(text []byte, edits []edit) []byte {
	slices.SortFunc(edits, func(a, b edit) int {
		if c := cmp.Compare(a.at, b.at); c != 0 {
			return c
		}
		if a.closes != b.closes {
			return map[bool]int{true: -1, false: 1}[a.closes]
		}
		inner := cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(b.id, a.id), cmp.Compare(a.text, b.text))
		return map[bool]int{true: inner, false: -inner}[a.closes]
	})
	var out []byte
	at := 0
	for _, e := range slices.Compact(edits) { // two changes of one operator have the same edits
		out = append(append(out, text[at:e.at]...), e.text...)
		at = e.end
	}
	return append(out, text[at:]...)
}
