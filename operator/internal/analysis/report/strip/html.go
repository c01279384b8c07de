package strip

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/results"
)

// htmlClaim is a claim as the page's template sees it.
type htmlClaim struct {
	results.ClaimResult
	ID       string // what a glance links to
	State    State
	Sign     string
	Sentence string
	Picture  template.HTML
	Terms    []string
	Caveats  []Group
	Fold     string // the summary of the folded part
}

type htmlStrip struct {
	Preliminary bool
	Claims      []htmlClaim
	NotJudged   []results.ClaimResult
	Marks       bool
	Interval    string
}

// HTML is the strip for a page with the report's style: a row for each claim, and one line that
// folds the claims that are not evaluated. Ids in it begin with id. Verdicts of an experiment that
// still runs are called preliminary. The argument looks says that the claims are judged at one of
// several looks.
func HTML(claims []results.ClaimResult, complete, looks bool, id string) (template.HTML, error) {
	if len(claims) == 0 {
		return "", nil
	}
	view := htmlStrip{Preliminary: !complete, Interval: intervalOf(looks)}
	for i, c := range claims {
		state := StateOf(c.Verdict)
		if state == NotJudged {
			view.NotJudged = append(view.NotJudged, c)
			continue
		}
		h := htmlClaim{ClaimResult: c, ID: fmt.Sprintf("%s%d", id, i), State: state, Sign: state.sign(), Sentence: Sentence(c), Caveats: Caveats(c)}
		h.Picture = template.HTML(SVG(c, fmt.Sprintf("%s%d-track", id, i))) // #nosec G203 -- SVG escapes every text in it
		if len(c.Terms) > 1 {
			for _, t := range c.Terms {
				h.Terms = append(h.Terms, t.Text)
			}
		}
		h.Fold = fold(c, h.Caveats)
		view.Marks = view.Marks || h.Picture != ""
		view.Claims = append(view.Claims, h)
	}
	var b strings.Builder
	if err := stripTemplate.Execute(&b, view); err != nil {
		return "", fmt.Errorf("show the verdicts: %w", err)
	}
	return template.HTML(b.String()), nil // #nosec G203 -- the template has escaped it
}

// fold is the summary of the folded part below a claim.
func fold(c results.ClaimResult, caveats []Group) string {
	text := "Expression"
	if c.Full != nil {
		text = "Expressions here and in the full evaluation"
	}
	n := 0
	for _, g := range caveats {
		n += len(g.Notes)
	}
	switch n {
	case 0:
		return text
	case 1:
		return text + ", and a caveat"
	}
	return fmt.Sprintf("%s, and %d caveats", text, n)
}

// Details of a claim's text, as rows of name and text: in every form the same.
func Details(c results.ClaimResult) [][2]string {
	rows := [][2]string{{"judged", c.Expr}}
	add := func(name, text string) {
		if text != "" {
			rows = append(rows, [2]string{name, text})
		}
	}
	if f := c.Full; f != nil {
		add("full evaluation says", f.Statement)
		add("full evaluation judges", f.Expr)
		add("full evaluation allows", allowed(*f))
		add("wider because", f.WiderBecause)
	}
	// A caveat says so, too, except in results from before caveats were a list.
	if !slices.ContainsFunc(c.Caveats, func(v results.Caveat) bool { return strings.Contains(v.Text, c.Weak) }) {
		add("weak bound", c.Weak)
	}
	add("replication", replication(c.Replication, c.Unit))
	add("other analyses", analyses(c.Analyses))
	return rows
}

// replication words the comparison of a quantity with the source's runs.
func replication(r *results.Replication, unit string) string {
	if r == nil {
		return ""
	}
	number := func(x float64) string { return strings.TrimSpace(strconv.FormatFloat(x, 'g', 4, 64) + " " + unit) }
	text := fmt.Sprintf("prediction interval %s to %s", number(r.Low), number(r.High))
	if r.SmallTelescopesP != nil {
		text += fmt.Sprintf("; the source's runs find an effect of %s in a third of cases, P of one that great here %.2g; sceptical P %.2g", number(*r.LeastEffect), *r.SmallTelescopesP, *r.ScepticalP)
	}
	return text
}

// mostOthers is how many analyses that do not agree are named.
const mostOthers = 6

// analyses says how many other analyses of the same trials agree, and which do not.
func analyses(a *results.Analyses) string {
	if a == nil {
		return ""
	}
	text := fmt.Sprintf("%d of %d agree", a.Agree, a.Of)
	for i, o := range a.Others {
		if i == mostOthers {
			return text + fmt.Sprintf("; and %d more", len(a.Others)-i)
		}
		text += "; " + o.How + ": " + o.Verdict
	}
	return text
}

func allowed(f results.ClaimText) string {
	value := firstOf(f.Reported, f.Expected)
	if value == "" || f.Within == "" {
		return ""
	}
	return value + " within " + f.Within
}

var stripTemplate = template.Must(template.New("strip").Funcs(template.FuncMap{"details": Details}).Parse(`<section class="strip">
{{if .Preliminary}}<p class="preliminary"><b>Preliminary:</b> the experiment still runs, and each verdict may change.</p>
{{end}}
{{- if .Marks}}<p class="key"><svg class="legend" viewBox="0 0 62 20" aria-hidden="true"><rect class="allowed" x="1" y="1" width="60" height="18"/></svg> what the claim allows
<span class="good"><svg class="legend" viewBox="0 0 62 20" aria-hidden="true"><path class="line bar" d="M1,10H61"/><path class="dot" transform="translate(31,10)" d="` + disc + `"/></svg></span> {{.Interval}}, estimate: supported
<span class="bad"><svg class="legend" viewBox="0 0 62 20" aria-hidden="true"><path class="line bar" d="M1,10H61"/><path class="dot" transform="translate(31,10)" d="` + square + `"/></svg></span> refuted
<span class="open"><svg class="legend" viewBox="0 0 62 20" aria-hidden="true"><path class="line bar" d="M1,10H61"/><path class="ghost" transform="translate(31,10)" d="` + diamond + `"/></svg></span> not decided
<svg class="legend" viewBox="0 0 62 20" aria-hidden="true"><path class="mark ends" d="M31,0v20"/></svg> reported, expected, or no effect</p>
{{end}}
{{- range .Claims}}<article id="{{.ID}}" class="claim{{if not .Picture}} plain{{end}}">
<p class="word"><b class="{{.State}}"><span aria-hidden="true">{{.Sign}}</span> {{.Verdict}}</b>{{with .Distance}}<span class="beside">{{.}}</span>{{end}}</p>
<div class="says"><b>{{.Name}}</b><br>{{.Statement}}
{{- with .Weak}}<br><span class="note">Weak: {{.}}</span>{{end}}</div>
{{with .Picture}}<div class="picture">{{.}}</div>
{{end}}<p class="line1">{{.Sentence}}.</p>
<details><summary>{{.Fold}}</summary>
<dl>{{range details .ClaimResult}}<dt>{{index . 0}}</dt><dd>{{index . 1}}</dd>
{{end}}</dl>
{{if .Terms}}<ol>{{range .Terms}}<li><code>{{.}}</code></li>{{end}}</ol>
{{end}}
{{- range .Caveats}}<p><b>{{.Title}}</b></p><ul>{{range .Notes}}<li>{{.Text}}{{with .Points}}<span class="beside">{{range $i, $p := .}}{{if $i}}; {{end}}{{$p}}{{end}}</span>{{end}}</li>{{end}}</ul>
{{end}}</details>
</article>
{{end}}
{{- with .NotJudged}}<details class="claim rest"><summary><b class="none">– NotEvaluated</b>: {{if eq (len .) 1}}1 claim{{else}}{{len .}} claims{{end}}</summary>
<ul>{{range .}}<li><b>{{.Name}}</b>: {{.Statement}}<span class="beside">{{.Message}}</span></li>
{{end}}</ul></details>
{{end}}</section>
`))

// Style is what the strip needs beside the report's own style, which gives the colours of the
// states. Details are open on paper.
const Style = `.good { color: var(--good); }
.bad { color: var(--bad); }
.open { color: var(--open); }
.none { color: var(--soft); }
.verdicts p { margin: 0 0 0.4em; } .verdicts .counts b { margin-right: 0.9em; font-size: 1.15em; white-space: nowrap; } .verdicts .preliminary { color: var(--soft); }
.verdicts ol { list-style: none; margin: 0 0 0.5em; padding: 0; } .verdicts li { display: grid; grid-template-columns: 1.2em minmax(0, 1fr) 130px; column-gap: 0.6em; align-items: center; border-top: 1px solid var(--rule); padding: 0.25em 0; break-inside: avoid; }
.verdicts .sign { font-weight: 700; align-self: start; } .verdicts .why { display: block; font-size: 0.87em; color: var(--soft); font-variant-numeric: tabular-nums; } .verdicts a { text-decoration: none; } .verdicts a:hover, .verdicts a:focus { text-decoration: underline; } .verdicts svg.small { width: 130px; display: block; }
.claim:target { background: var(--shade); }
.strip { margin: 1em 0; } .strip p { margin: 0; } .strip .key { font-size: 0.87em; color: var(--soft); margin-bottom: 0.6em; } .strip .preliminary { margin-bottom: 0.6em; }
.claim { display: grid; grid-template-columns: 11em minmax(0, 1fr) 320px; column-gap: 1.2em; align-items: start; border-top: 1px solid var(--rule); padding: 0.6em 0; break-inside: avoid; }
.claim .word { grid-row: 1 / span 3; } .claim .says { grid-column: 2; } .claim .picture { grid-column: 3; grid-row: 1 / span 2; } .claim .line1 { grid-column: 2; font-variant-numeric: tabular-nums; margin-top: 0.3em; }
.claim.plain .says, .claim.plain .line1 { grid-column: 2 / span 2; }
.claim details { grid-column: 2 / span 2; font-size: 0.93em; } .claim summary { color: var(--soft); cursor: pointer; } .claim .note { color: var(--soft); }
.claim dl { margin: 0.4em 0; display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 0.1em 1em; } .claim dt { float: none; width: auto; } .claim dd { margin: 0; overflow-wrap: anywhere; font-family: ui-monospace, monospace; font-size: 0.93em; } .claim ul, .claim ol { margin: 0.2em 0; }
.claim.rest { display: block; }
.strip svg.track { width: 320px; max-width: 100%; min-width: 0; display: block; } .strip svg.legend { width: 31px; min-width: 0; height: 10px; vertical-align: middle; }
svg .allowed { fill: var(--band); }
svg .weak { fill-opacity: 0.5; stroke: var(--mark); stroke-dasharray: 3 3; }
svg .edge { fill: none; stroke: var(--mark); stroke-width: 1.5; }
svg .bar { stroke-width: 3; }
@media screen and (max-width: 492px) { .verdicts li { grid-template-columns: 1.2em minmax(0, 1fr); } .verdicts svg.small { grid-column: 2; } }
@media screen and (max-width: 820px) { .claim { grid-template-columns: minmax(0, 1fr); row-gap: 0.3em; } .claim > * { grid-column: 1 !important; grid-row: auto !important; } .claim .picture { order: 0; } .claim dl { display: block; } }
@media print { .claim { grid-template-columns: 9em minmax(0, 1fr) 240px; } .claim details::details-content, details.claim::details-content { content-visibility: visible; height: auto; display: block; } .claim summary { list-style: none; } }
`
