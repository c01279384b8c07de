package claims

import (
	"math"
	"slices"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Outcomes of a term.
const (
	termTrue      = "True"
	termFalse     = "False"
	termUndecided = "Undecided"
)

func outcomeOf(t truth) string {
	return map[truth]string{holds: termTrue, fails: termFalse, unsettled: termUndecided}[t]
}

// interval of an estimate. A side without an end is absent: JSON has no infinity.
func interval(e stats.Estimate) results.Interval {
	i := results.Interval{Value: e.Value}
	if e.Known && !math.IsInf(e.Low, 0) {
		i.Low = &e.Low
	}
	if e.Known && !math.IsInf(e.High, 0) {
		i.High = &e.High
	}
	return i
}

// term keeps a comparison of two quantities as data. Its difference and its ratio are computed
// beside the verdict. Notes from that computation are dropped, since the verdict does not rest on
// them.
func (r *recorder) term(id int64, relation string, left, right quantity, decided truth, p evidence) {
	if !r.detailed {
		return
	}
	caveats, models, rounds := slices.Clone(r.caveats), r.models, r.rounds
	defer func() { r.caveats, r.models, r.rounds = caveats, models, rounds }()
	a, _ := r.estimate(left)
	b, _ := r.estimate(right)
	t := results.ClaimTerm{Text: r.textOf(id), Relation: relation, Outcome: outcomeOf(decided), Left: interval(a), Right: interval(b), Unit: string(unitOf(left, right)), P: p.of()}
	if !left.measured() {
		t.Left.Low, t.Left.High = nil, nil
	}
	if !right.measured() {
		t.Right.Low, t.Right.High = nil, nil
	}
	if d, _ := r.difference(left, right); d.Known {
		i := interval(d)
		t.Difference = &i
	}
	if right.value != 0 && left.own == nil && right.own == nil {
		if q := with(left, right, r.over); isFinite(q.value) {
			if e, _ := r.estimate(q); e.Known && !q.unbounded && !math.IsInf(e.Low, 0) && !math.IsInf(e.High, 0) {
				i := interval(e)
				t.Ratio = &i
				r.effects = append(r.effects, Effect{What: t.Text + ": left by right", Estimate: e})
			}
		}
	}
	r.terms = append(r.terms, t)
}

// trendTerm keeps a trend: Kendall's tau, compared with 0.
func (r *recorder) trendTerm(id int64, direction string, t stats.Trend, decided truth) {
	if !r.detailed {
		return
	}
	p := t.P
	r.terms = append(r.terms, results.ClaimTerm{Text: r.textOf(id), Relation: direction, Outcome: outcomeOf(decided),
		Left: results.Interval{Value: t.Statistic}, Unit: "Kendall's tau", P: &p})
}

// of is the P of a comparison; nil where no test was made.
func (e evidence) of() *float64 {
	if e.untested {
		return nil
	}
	p := e.adjusted()
	return &p
}

// textOf is the author's text of a comparison. On both sides it reaches from the operator to the
// next && or ||, or to the bracket around it.
func (r *recorder) textOf(id int64) string {
	at := r.ast.SourceInfo().GetStartLocation(id)
	operator := r.source.nameOf(r.source.offset(at.Line(), at.Column()))
	all := tokens(r.source.author)
	here := slices.IndexFunc(all, func(t token) bool { return t.at+len(t.runes) > operator })
	if here < 0 {
		return string(r.source.author)
	}
	ends := func(t token, depth int) bool { return depth == 0 && (t.is("&") || t.is("|") || t.is("!")) }
	first, last := here, here
	for depth := 0; first > 0; first-- {
		t := all[first-1]
		if t.is(")") || t.is("]") {
			depth++
		}
		if t.is("(") || t.is("[") {
			depth--
		}
		if depth < 0 || ends(t, depth) {
			break
		}
	}
	for depth := 0; last < len(all)-1; last++ {
		t := all[last+1]
		if t.is("(") || t.is("[") {
			depth++
		}
		if t.is(")") || t.is("]") {
			depth--
		}
		if depth < 0 || ends(t, depth) {
			break
		}
	}
	return oneLine(all[first : last+1])
}

// oneLine joins tokens without comments, with one space where there was white space.
func oneLine(ts []token) string {
	text := ""
	space := false
	for _, t := range ts {
		if t.kind == tokenSpace {
			space = text != ""
			continue
		}
		if space {
			text += " "
		}
		text, space = text+string(t.runes), false
	}
	return text
}
