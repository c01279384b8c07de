// Package strip shows verdicts. A claim is one sentence (Sentence), a row of a strip (HTML, SVG),
// or lines for a table (Tracks). In a row, a band shows the values that the claim allows, and a bar
// over it shows the measured interval.
//
// Text, Markdown, page, CSV and LaTeX are made from the same fields of results.ClaimResult. Older
// results have only a message for comparisons: they get its first sentence and no picture. The
// package judges nothing.
package strip

import (
	"math"
	"strconv"
	"strings"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// State is the meaning of a verdict, whatever its word. The strip's colours and marks follow it.
type State string

// The states. They are classes of the page's style.
const (
	Supported State = "good"
	Refuted   State = "bad"
	Open      State = "open"
	NotJudged State = "none"
)

// StateOf a verdict.
func StateOf(verdict string) State {
	v := v1alpha1.Verdict(verdict)
	switch {
	case v.Supports():
		return Supported
	case v.Refutes():
		return Refuted
	case v == v1alpha1.VerdictNotEvaluated:
		return NotJudged
	}
	return Open
}

// sign stands beside the word, so that no meaning depends on the colour alone.
func (s State) sign() string {
	switch s {
	case Supported:
		return "✓"
	case Refuted:
		return "✗"
	case Open:
		return "?"
	}
	return "–"
}

// Words are the verdicts in the order in which they are counted.
var Words = []v1alpha1.Verdict{
	v1alpha1.VerdictReproduced, v1alpha1.VerdictNotReproduced, v1alpha1.VerdictReplicated, v1alpha1.VerdictNotReplicated,
	v1alpha1.VerdictConsistent, v1alpha1.VerdictContradicted, v1alpha1.VerdictHolds, v1alpha1.VerdictFails,
	v1alpha1.VerdictInconclusive, v1alpha1.VerdictNotEvaluated,
}

// Quantity is what a track shows.
type Quantity string

// The quantities of a track: a value beside its bounds, left divided by right, or left less right.
const (
	Value      Quantity = "value"
	Ratio      Quantity = "ratio"
	Difference Quantity = "difference"
)

// Track is one comparison as it is drawn: an estimate with its interval, and the values that the
// claim allows.
type Track struct {
	// Text of the comparison; empty where the claim is one quantity.
	Text     string
	Quantity Quantity
	Unit     string
	results.Interval
	// BoundLow and BoundHigh bound the values that the claim allows; nil: no bound on that side.
	// Both are nil for a test of a difference, which has no direction.
	BoundLow, BoundHigh *float64
	// Reference is the value that the source reports or the authors expect, or the value at which
	// there is no effect.
	Reference *float64
	State     State
}

// Tracks of a claim, in the order of its expression. None: the results have no numbers for it.
func Tracks(c results.ClaimResult) []Track {
	if StateOf(c.Verdict) == NotJudged {
		return nil
	}
	if c.Measured != nil {
		return []Track{quantityTrack(c)}
	}
	var tracks []Track
	for _, t := range c.Terms {
		if track, ok := termTrack(t); ok {
			tracks = append(tracks, track)
		}
	}
	return tracks
}

// quantityTrack is the track of a claim that compares one quantity with reported or expected.
func quantityTrack(c results.ClaimResult) Track {
	t := Track{Quantity: Value, Unit: c.Unit, BoundLow: c.BoundLow, BoundHigh: c.BoundHigh, State: StateOf(c.Verdict)}
	t.Interval = results.Interval{Value: *c.Measured, Low: c.Low, High: c.High}
	if c.Low != nil && c.High != nil && *c.Low == *c.High { // how older results say that there is none
		t.Low, t.High = nil, nil
	}
	reference, ok := number(firstOf(c.Reported, c.Expected))
	if !ok {
		return t
	}
	t.Reference = &reference
	if t.BoundLow == nil && t.BoundHigh == nil {
		t.BoundLow, t.BoundHigh = boundsOf(reference, c.Within)
	}
	return t
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// number reads a value of a claim: a decimal, or a duration in milliseconds.
func number(text string) (float64, bool) {
	if x, err := strconv.ParseFloat(text, 64); err == nil {
		return x, true
	}
	d, err := time.ParseDuration(text)
	return float64(d) / float64(time.Millisecond), err == nil
}

// boundsOf are the bounds of older results, which have bounds as text only.
func boundsOf(value float64, within string) (low, high *float64) {
	by, percent := strings.CutSuffix(within, "%")
	half, ok := number(by)
	if !ok {
		return nil, nil
	}
	if percent {
		half = half / 100 * max(value, -value)
	}
	a, b := value-half, value+half
	return &a, &b
}

// termTrack draws a comparison with a number as the value beside it, and a comparison of two
// measured values as their ratio or their difference.
func termTrack(term results.ClaimTerm) (Track, bool) {
	t := Track{Text: term.Text, Unit: term.Unit, State: stateOfTerm(term)}
	left, right := known(term.Left), known(term.Right)
	switch {
	case left && !right && direction(term.Relation) != 0:
		t.Quantity, t.Interval, t.Reference = Value, term.Left, &term.Right.Value
		t.bound(term.Relation, term.Right.Value)
	case right && !left && direction(term.Relation) != 0:
		t.Quantity, t.Interval, t.Reference = Value, term.Right, &term.Left.Value
		t.bound(mirrored[term.Relation], term.Left.Value)
	case term.Ratio != nil && term.Ratio.Value > 0:
		t.Quantity, t.Interval, t.Unit = Ratio, *term.Ratio, ""
		t.against(term.Relation, 1)
	case term.Difference != nil:
		t.Quantity, t.Interval = Difference, negated(*term.Difference)
		t.against(term.Relation, 0)
	default:
		return Track{}, false
	}
	return t, true
}

func (t *Track) against(relation string, noEffect float64) {
	t.Reference = &noEffect
	t.bound(relation, noEffect)
}

// bound allows the values on the relation's side of a bound.
func (t *Track) bound(relation string, at float64) {
	switch direction(relation) {
	case 1:
		t.BoundLow = &at
	case -1:
		t.BoundHigh = &at
	}
}

// direction of a comparison: 1 if the left side must be the greater one, and else -1. 0: a test.
func direction(relation string) int {
	switch relation {
	case ">", ">=":
		return 1
	case "<", "<=":
		return -1
	}
	return 0
}

var mirrored = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<="}

func known(i results.Interval) bool { return i.Low != nil || i.High != nil }

// negated turns right less left, as results have it, into left less right, so that the greater left
// side lies to the right.
func negated(i results.Interval) results.Interval {
	flip := func(x *float64) *float64 {
		if x == nil {
			return nil
		}
		y := 0 - *x // not -0
		return &y
	}
	return results.Interval{Value: 0 - i.Value, Low: flip(i.High), High: flip(i.Low)}
}

func stateOfTerm(t results.ClaimTerm) State {
	switch t.Outcome {
	case "True":
		return Supported
	case "False":
		return Refuted
	}
	return Open
}

// Show writes a number with its unit and interval, with no more digits than the interval supports.
func Show(i results.Interval, unit string) string {
	half := 0.0
	switch {
	case i.Low != nil && i.High != nil:
		half = (*i.High - *i.Low) / 2
	case i.Low != nil:
		half = i.Value - *i.Low
	case i.High != nil:
		half = *i.High - i.Value
	}
	decimals := stats.Decimals(i.Value, half)
	text := stats.Fixed(i.Value, decimals) + suffix(unit)
	if !known(i) {
		return text
	}
	end := func(x *float64) string {
		if x == nil {
			return "..."
		}
		return stats.Fixed(*x, decimals)
	}
	return text + " [" + end(i.Low) + ", " + end(i.High) + "]"
}

func suffix(unit string) string {
	if unit == "" {
		return ""
	}
	return " " + unit
}

// bare writes a bound: a number without an interval. A whole number has no decimals.
func bare(x float64) string {
	if x == math.Trunc(x) {
		return stats.Fixed(x, 0)
	}
	return stats.Rounded(x, 0)
}
