package strip

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/results"
)

// A glance is the strip in small, for the first screen of a page. A claim is a line with its
// verdict, its statement, a track without labels, and the numbers that decided. The line links to
// the claim's row in the strip (HTML), which has the same numbers with labels and caveats.

// mostAtAGlance is how many claims the first screen has room for.
const mostAtAGlance = 12

// The size of a track without labels, and by how much its marks are smaller.
const (
	glanceWidth, glanceHeight = 150.0, 18.0
	glanceMark                = 0.85
)

type glanceRow struct {
	State          State
	Sign           string
	Verdict        string
	Statement, Why string
	Weak           bool
	Picture        template.HTML
	Link           string
}

type glance struct {
	Counts      []glanceCount
	Preliminary bool
	Rows        []glanceRow
	More        int
}

type glanceCount struct {
	State State
	Sign  string
	N     int
	Says  string
}

// Glance is the strip in small. id begins the ids of the rows of HTML, which it links to. Empty:
// there are no claims.
func Glance(claims []results.ClaimResult, complete bool, id string) (template.HTML, error) {
	if len(claims) == 0 {
		return "", nil
	}
	view := glance{Preliminary: !complete}
	counts := map[State]int{}
	for i, c := range claims {
		state := StateOf(c.Verdict)
		counts[state]++
		switch {
		case state == NotJudged: // the counts say how many
		case len(view.Rows) == mostAtAGlance:
			view.More++
		default:
			view.Rows = append(view.Rows, glanceRow{
				State: state, Sign: state.sign(), Verdict: c.Verdict, Statement: c.Statement, Why: Why(c), Weak: c.Weak != "",
				Picture: template.HTML(small(c)), Link: fmt.Sprintf("%s%d", id, i), // #nosec G203 -- small writes numbers alone
			})
		}
	}
	for _, s := range []struct {
		State
		says string
	}{{Supported, "supported"}, {Refuted, "refuted"}, {Open, "not decided"}, {NotJudged, "not evaluated"}} {
		if n := counts[s.State]; n > 0 {
			view.Counts = append(view.Counts, glanceCount{State: s.State, Sign: s.sign(), N: n, Says: s.says})
		}
	}
	var b strings.Builder
	if err := glanceTemplate.Execute(&b, view); err != nil {
		return "", fmt.Errorf("show the verdicts at a glance: %w", err)
	}
	return template.HTML(b.String()), nil // #nosec G203 -- the template has escaped it
}

// Why is the shortest account of a verdict: the measured value, and the values that the claim
// allows. If there are several comparisons, it takes the one that the verdict follows from.
func Why(c results.ClaimResult) string {
	tracks := Tracks(c)
	if len(tracks) == 0 {
		return Sentence(c)
	}
	state := StateOf(c.Verdict)
	i := max(0, slices.IndexFunc(tracks, func(t Track) bool { return t.State == state }))
	text := tracks[i].says()
	if len(tracks) > 1 {
		text += fmt.Sprintf(" (comparison %d of %d)", i+1, len(tracks))
	}
	if why := overruled(c); why != "" {
		text += "; open all the same, see its caveats"
	}
	return text
}

func (t Track) says() string {
	text := map[Quantity]string{Value: "measured ", Ratio: "ratio ", Difference: "difference "}[t.Quantity] + Show(t.Interval, t.Unit)
	if !known(t.Interval) {
		text += " without an interval"
	}
	switch {
	case t.BoundLow != nil && t.BoundHigh != nil:
		text += fmt.Sprintf(", allowed is %s to %s%s", bare(*t.BoundLow), bare(*t.BoundHigh), suffix(t.Unit))
	case t.BoundLow != nil:
		text += ", allowed is above " + bare(*t.BoundLow) + suffix(t.Unit)
	case t.BoundHigh != nil:
		text += ", allowed is below " + bare(*t.BoundHigh) + suffix(t.Unit)
	}
	return text
}

// small draws the track of the comparison that Why takes, without labels.
func small(c results.ClaimResult) string {
	tracks := Tracks(c)
	if len(tracks) == 0 {
		return ""
	}
	state := StateOf(c.Verdict)
	t := tracks[max(0, slices.IndexFunc(tracks, func(t Track) bool { return t.State == state }))]
	s := scaleOf(t)
	x := func(at float64) float64 { return at * glanceWidth / trackWidth }
	const middle = glanceHeight / 2
	b := &strings.Builder{}
	fmt.Fprintf(b, `<svg class="small" viewBox="0 0 %g %g" aria-hidden="true"><path class="grid" d="M0,%.1fh%.1f"/>`, glanceWidth, glanceHeight, middle, glanceWidth)
	if t.BoundLow != nil || t.BoundHigh != nil {
		low, _ := s.end(t.BoundLow, 0)
		high, _ := s.end(t.BoundHigh, trackWidth)
		class := "allowed"
		if c.Weak != "" {
			class = "allowed weak"
		}
		fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="1" width="%.1f" height="%.1f"/>`, class, x(low), max(2, x(high)-x(low)), glanceHeight-2)
	}
	if t.Reference != nil {
		fmt.Fprintf(b, `<path class="mark ends" d="M%.1f,0v%.1f"/>`, x(s.x(*t.Reference)), glanceHeight)
	}
	fmt.Fprintf(b, `<g class="%s">`, t.State)
	if known(t.Interval) {
		low, _ := s.end(t.Low, 0)
		if high, _ := s.end(t.High, trackWidth); high > low {
			fmt.Fprintf(b, `<path class="line bar" d="M%.1f,%.1fH%.1f"/>`, x(low), middle, x(high))
		}
	}
	class, shape := t.mark()
	fmt.Fprintf(b, `<path class="%s" transform="translate(%.1f,%.1f) scale(%g)" d="%s"/></g></svg>`, class, x(s.x(t.Value)), middle, glanceMark, shape)
	return b.String()
}

var glanceTemplate = template.Must(template.New("glance").Parse(`<section class="verdicts" aria-label="Verdicts at a glance">
<p class="counts">{{range .Counts}}<b class="{{.State}}"><span aria-hidden="true">{{.Sign}}</span> {{.N}} {{.Says}}</b> {{end}}{{if .Preliminary}}<span class="preliminary">preliminary: each may change</span>{{end}}</p>
{{if .Rows}}<ol>{{range .Rows}}<li><span class="{{.State}} sign" aria-hidden="true">{{.Sign}}</span><div><a href="#{{.Link}}">{{.Statement}}</a><span class="why"><b class="{{.State}}">{{.Verdict}}</b>{{if .Weak}} (weak){{end}}: {{.Why}}</span></div>{{.Picture}}</li>
{{end}}</ol>
{{end}}
{{- if .More}}<p class="why">{{.More}} more: see <a href="#verdicts">Verdicts</a></p>
{{end}}
{{- if .Rows}}<p class="why">Grey band: what a claim allows. Bar: the measured interval. Dashed: reported, expected, or no effect.</p>
{{end}}</section>
`))
