package parsers

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

// onePass matches a regular expression by a table, in one step for each byte of the line, and finds
// the groups on the way. Package regexp takes 15 to 40 ns for a byte where groups are wanted. That
// is most of the time that a report of one line for each operation takes to read.
//
// A table suffices if each byte decides which part of the pattern it belongs to (Russ Cox, "Regular
// Expression Matching in the Wild", 2010, "One-pass"):
//
//	^(?P<op>[a-z]+),(?P<took>[0-9]+)$       a comma ends op: one pass
//	^(?P<op>[a-z]+).* took=(?P<took>[0-9]+)  a blank is of .* or of " took=": not one pass
//
// A state is the instruction of the compiled expression at which a byte was taken. From there a
// byte leads to one other state at most. The table also has the groups that begin or end before the
// byte. compileOnePass returns nil for every other expression, and for those with boundaries of
// words, or of lines within a line. Lines with a byte that is not ASCII are left to regexp, too.
type onePass struct {
	// next has 128 entries for each state. The first state is 0.
	next []edge
	// ends of a match in a state.
	ends []matchEnd
	// first are the bytes with which a match may begin.
	first [128]bool
	// anchored: a match begins with the line.
	anchored bool
	slots    int
}

// edge is where a byte leads: to is the state, -1 for none; groups are the slots that get the
// byte's place.
type edge struct {
	to     int32
	groups uint32
}

// matchEnd says whether a state ends a match: always, whatever follows; or at the end of the line.
// It also has the slots that get that place.
type matchEnd struct {
	always, atEnd             bool
	alwaysGroups, atEndGroups uint32
}

const (
	// mostStates bounds a table to 1 MB.
	mostStates = 1000
	noState    = -1
)

// compileOnePass makes the table for the groups of a pattern, and nil if it cannot.
func compileOnePass(pattern string, groups []int) *onePass {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(groups) > 16 {
		return nil
	}
	c := passCompiler{program: program, states: map[uint32]int32{}, slotOf: map[uint32]int{}}
	for i, group := range groups {
		c.slotOf[uint32(2*group)], c.slotOf[uint32(2*group+1)] = 2*i, 2*i+1
	}
	c.out.slots = 2 * len(groups)
	c.out.anchored = program.StartCond()&syntax.EmptyBeginText != 0
	if !c.state(uint32(program.Start), true) {
		return nil
	}
	state := 0
	for state < len(c.todo) { // which grows
		if !c.fill(c.todo[state], state, state == 0) {
			return nil
		}
		state++
	}
	for b := range c.out.first {
		c.out.first[b] = c.out.next[b].to != noState
	}
	if c.out.ends[0].always || c.out.ends[0].atEnd {
		return nil // it matches an empty line: no pattern of records
	}
	return &c.out
}

type passCompiler struct {
	program *syntax.Prog
	out     onePass
	states  map[uint32]int32 // by instruction
	todo    []uint32
	slotOf  map[uint32]int // by the program's slot
	seen    map[uint32]bool
}

// state makes sure that an instruction has a state. The first one is apart: it alone is at the
// beginning of the line.
func (c *passCompiler) state(pc uint32, first bool) bool {
	if _, known := c.states[pc]; known {
		return true
	}
	if len(c.todo) == mostStates {
		return false
	}
	if !first {
		c.states[pc] = int32(len(c.todo))
	}
	c.todo = append(c.todo, pc)
	for range 128 {
		c.out.next = append(c.out.next, edge{to: noState})
	}
	c.out.ends = append(c.out.ends, matchEnd{})
	return true
}

// fill sets the edges of a state.
func (c *passCompiler) fill(pc uint32, state int, atBegin bool) bool {
	c.seen = map[uint32]bool{}
	_, ok := c.walk(pc, state, 0, atBegin, false)
	return ok
}

// walk follows the instructions up to those that take a byte, in the order of their priority. The
// argument groups has the slots on the way; atEnd says that only the end of the line can follow.
// The result done says that instructions later in the order cannot match any more. The result ok is
// false if two ways lead to one instruction, or one byte has two ways.
func (c *passCompiler) walk(pc uint32, state int, groups uint32, atBegin, atEnd bool) (done, ok bool) {
	i := &c.program.Inst[pc]
	if i.Op == syntax.InstFail {
		return false, true
	}
	if c.seen[pc] {
		return false, false
	}
	c.seen[pc] = true
	switch i.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		if done, ok = c.walk(i.Out, state, groups, atBegin, atEnd); done || !ok {
			return done, ok
		}
		return c.walk(i.Arg, state, groups, atBegin, atEnd)
	case syntax.InstNop:
		return c.walk(i.Out, state, groups, atBegin, atEnd)
	case syntax.InstCapture:
		if slot, wanted := c.slotOf[i.Arg]; wanted {
			groups |= 1 << slot
		}
		return c.walk(i.Out, state, groups, atBegin, atEnd)
	case syntax.InstEmptyWidth:
		switch syntax.EmptyOp(i.Arg) {
		case syntax.EmptyBeginText:
			if !c.out.anchored {
				return false, false // a match may begin there or elsewhere
			}
			if !atBegin {
				return false, true
			}
		case syntax.EmptyEndText:
			atEnd = true
		default:
			return false, false
		}
		return c.walk(i.Out, state, groups, atBegin, atEnd)
	case syntax.InstMatch:
		return c.end(state, groups, atEnd)
	}
	return false, atEnd || c.take(i, state, groups)
}

// end notes that a state ends a match. The first in the order wins.
func (c *passCompiler) end(state int, groups uint32, atEnd bool) (done, ok bool) {
	e := &c.out.ends[state]
	if !e.atEnd {
		e.atEnd, e.atEndGroups = true, groups
	}
	if !atEnd {
		e.always, e.alwaysGroups = true, groups
	}
	return !atEnd, true
}

// take notes the bytes that an instruction takes.
func (c *passCompiler) take(i *syntax.Inst, state int, groups uint32) bool {
	if !c.state(i.Out, false) {
		return false
	}
	to := c.states[i.Out]
	for b := range 128 {
		takes := false
		switch i.Op {
		case syntax.InstRuneAny:
			takes = true
		case syntax.InstRuneAnyNotNL:
			takes = b != '\n'
		default:
			takes = i.MatchRune(rune(b))
		}
		if !takes {
			continue
		}
		e := &c.out.next[state*128+b]
		if e.to != noState {
			return false
		}
		*e = edge{to, groups}
	}
	return true
}

// outcome of an attempt.
type outcome int

const (
	noMatch outcome = iota
	matched
	unknown // for package regexp to say
)

// match finds the leftmost match and the places of its groups, -1 where a group has none. The
// argument spots has room for two places of each group, and as much behind them.
func (p *onePass) match(line []byte, spots []int) outcome {
	steps := 4*len(line) + 64 // attempts at many places must not take the square of the length
	for start, b := range line {
		if b >= utf8.RuneSelf {
			return unknown
		}
		if !p.first[b] {
			if p.anchored {
				return noMatch
			}
			continue
		}
		how, taken := p.from(line, start, spots)
		if how != noMatch || p.anchored {
			return how
		}
		if steps -= taken; steps < 0 {
			return unknown
		}
	}
	return noMatch
}

// from tries a match that begins at a place. taken are the bytes that it looked at.
func (p *onePass) from(line []byte, start int, spots []int) (how outcome, taken int) {
	spots, best := spots[:p.slots], spots[p.slots:2*p.slots]
	for i := range spots {
		spots[i] = -1
	}
	state := int32(0)
	for at := start; at < len(line); at++ {
		b := line[at]
		if end := &p.ends[state]; end.always {
			how = matched
			copy(best, spots)
			set(best, end.alwaysGroups, at)
		}
		if b >= utf8.RuneSelf {
			return unknown, at - start
		}
		e := p.next[int(state)<<7|int(b)]
		if e.to == noState {
			copy(spots, best) // of no use without a match
			return how, at - start + 1
		}
		if e.groups != 0 {
			set(spots, e.groups, at)
		}
		state = e.to
	}
	if end := &p.ends[state]; end.atEnd {
		set(spots, end.atEndGroups, len(line))
		return matched, len(line) - start
	}
	copy(spots, best)
	return how, len(line) - start
}

// set puts a place into the slots of a set.
func set(spots []int, slots uint32, at int) {
	for i := 0; slots != 0; i, slots = i+1, slots>>1 {
		if slots&1 != 0 {
			spots[i] = at
		}
	}
}

// lineMatcher finds the groups of a pattern in lines.
type lineMatcher struct {
	pattern *regexp.Regexp
	table   *onePass
	groups  []int
	spots   []int
	texts   []string
	// needed is text that every match has; empty where none is known.
	needed []byte
}

func newLineMatcher(pattern *regexp.Regexp, names []string) *lineMatcher {
	m := &lineMatcher{pattern: pattern, groups: make([]int, len(names)), spots: make([]int, 4*len(names)), texts: make([]string, len(names))}
	for i, name := range names {
		m.groups[i] = pattern.SubexpIndex(name)
	}
	if m.table = compileOnePass(pattern.String(), m.groups); m.table == nil {
		m.needed = neededText(pattern.String())
	}
	return m
}

// match gives the texts of the groups, valid until the next call, and false where the line does not
// match. A group that took no part is empty.
func (m *lineMatcher) match(line []byte) ([]string, bool) {
	spots, how := m.spots, unknown
	if m.table != nil {
		how = m.table.match(line, spots)
	} else if !bytes.Contains(line, m.needed) {
		return nil, false
	}
	switch how {
	case noMatch:
		return nil, false
	case unknown:
		all := m.pattern.FindSubmatchIndex(line)
		if all == nil {
			return nil, false
		}
		for i, g := range m.groups {
			spots[2*i], spots[2*i+1] = all[2*g], all[2*g+1]
		}
	}
	text := string(line)
	for i := range m.texts {
		m.texts[i] = ""
		if from := spots[2*i]; from >= 0 {
			m.texts[i] = text[from:spots[2*i+1]]
		}
	}
	return m.texts, true
}

// neededText is the longest text that is in every match of a pattern. Alternatives are not tried,
// so that a longer one may exist.
func neededText(pattern string) []byte {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	var longest string
	var look func(*syntax.Regexp)
	look = func(e *syntax.Regexp) {
		switch e.Op {
		case syntax.OpLiteral:
			if text := string(e.Rune); e.Flags&syntax.FoldCase == 0 && len(text) > len(longest) {
				longest = text
			}
		case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
			for _, part := range e.Sub {
				look(part)
			}
		}
	}
	look(parsed)
	return []byte(longest)
}
