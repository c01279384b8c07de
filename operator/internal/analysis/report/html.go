package report

import (
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/strip"
	"assay.dev/assay/operator/internal/results"
)

// HTML writes a report as one page that needs nothing else: no font, no picture, no script from
// elsewhere. Its own script (pageScript) may be switched off: all numbers are in the page.
func HTML(w io.Writer, e results.Experiment) error {
	p := newPage(e)
	view := htmlView{
		Title: p.title, First: p.first, Facts: p.rest, Legend: p.reading(legend), Points: htmlTableOf(p.points),
		Network: htmlTableOf(p.network), NetNote: p.netNote, Faults: htmlTableOf(p.faults), FaultsLegend: faultsLegend,
		Excluded: htmlTableOf(p.excluded), Origin: p.origin, Gap: p.gap, LeftOut: p.leftOut,
	}
	for _, g := range p.noted {
		view.Noted = append(view.Noted, htmlNotes{g.title, g.notes})
	}
	view.Headline, view.HeadlineSays = headline(e)
	_, overAxis := numericAxis(e)
	view.Pair = overAxis && len(view.Headline) > 1
	var err error
	if view.Glance, err = strip.Glance(e.Claims, e.Completed != nil, "claim"); err != nil {
		return err
	}
	if view.Strip, err = strip.HTML(e.Claims, e.Completed != nil, e.Look != nil, "claim"); err != nil {
		return err
	}
	view.Checks, view.Checked, view.ChecksLegend = htmlTableOf(p.checks), htmlTableOf(p.checked), checksLegend
	view.Datasets, view.DatasetsLegend = htmlTableOf(p.datasets), datasetsLegend
	view.Changes, view.ChangesTitle = htmlTableOf(p.changes), changesTitle
	view.Sessions, view.SessionsLegend = htmlTableOf(p.sessions), sessionsLegend
	view.Collected, view.CollectedLegend = htmlTableOf(p.kept), collectedLegend
	view.Failures, view.FailuresLegend = htmlTableOf(p.failures), p.reading(failuresLegend)
	view.Trials, view.TrialsLegend, view.Again = htmlTableOf(p.trials), trialsLegend, htmlAgain{Command: p.again.command, Note: p.again.note, Spec: p.again.spec}
	view.Capacity, view.CapacityLegend = htmlTableOf(p.capacity), capacityLegend
	view.Knees, view.KneesLegend, view.KneesNotes = htmlTableOf(p.knees), p.kneeNote, p.kneeRest
	view.Measured, view.Lacking, view.MeasuredLegend = htmlTableOf(p.measured), htmlTableOf(p.lacking), measurementLegend
	view.Resources, view.ResourcesLegend = htmlTableOf(p.used), resourceLegend
	view.Balance, view.BalanceLegend = htmlTableOf(p.balance), balanceLegend
	view.Recovery, view.RecoveryNotes, view.RecoveryLegend = htmlTableOf(p.recovery), p.recNotes, recoveryLegend
	view.Plots, view.PlotsNote = htmlLines(e, "curve")
	view.Searches = htmlSearches(e, "search")
	view.Bars, view.BarsNote = htmlBars(e, "bar")
	view.BarsLegend = barsLegend
	view.Declared = htmlDeclared(e, "figure")
	view.OverTime, view.OverTimeNote = overTime(e)
	view.OverTimeLegend = p.reading(legendOverTime(e))
	view.Distributions, view.DistributionsNote = distributions(e)
	view.DistributionsLegend = p.reading(cdfLegend)
	var body strings.Builder
	if err := htmlPage.ExecuteTemplate(&body, "body", &view); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	view.Body = template.HTML(body.String()) // #nosec G203 -- the template has escaped it
	if err := htmlPage.Execute(w, &view); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// Heading begins a section that the page links to.
func (v *htmlView) Heading(title string) template.HTML {
	id := fileName(title)
	for slices.ContainsFunc(v.Sections, func(s htmlSection) bool { return s.ID == id }) {
		id += "-2"
	}
	v.Sections = append(v.Sections, htmlSection{id, title})
	return template.HTML(`<h2 id="` + id + `">` + template.HTMLEscapeString(title) + "</h2>") // #nosec G203 -- escaped
}

// escaped marks a picture as HTML: who draws it escapes every text in it.
func escaped(svg string) template.HTML { return template.HTML(svg) } // #nosec G203 -- see above

// htmlView is what the page's template sees.
type htmlView struct {
	Title string
	// First are the facts of the first screen, beside the verdicts at a glance and one figure.
	First        []string
	Glance       template.HTML
	Headline     []htmlPlot
	HeadlineSays string
	// Pair: the figure is two plots of curves, which are as wide as the page side by side.
	Pair bool
	// Body is the rest of the page, with its Sections.
	Body     template.HTML
	Sections []htmlSection

	Facts  []string
	Strip  template.HTML
	Legend string
	Points htmlTable
	Noted  []htmlNotes
	Plots  []htmlPlot
	// PlotsNote says which curves are not drawn, and BarsNote which bars.
	PlotsNote string

	Bars                 []htmlPlot
	BarsLegend, BarsNote string

	Declared []htmlFigure

	Network  htmlTable
	NetNote  string
	Faults   htmlTable
	Excluded htmlTable

	FaultsLegend string

	Failures       htmlTable
	FailuresLegend string
	Checks         htmlTable
	Checked        htmlTable
	ChecksLegend   string
	Datasets       htmlTable
	DatasetsLegend string

	Changes        htmlTable
	ChangesTitle   string
	Sessions       htmlTable
	SessionsLegend string

	Collected       htmlTable
	CollectedLegend string

	Capacity       htmlTable
	CapacityLegend string
	Searches       []htmlPlot
	Knees          htmlTable
	KneesLegend    string
	KneesNotes     []string

	Recovery       htmlTable
	RecoveryNotes  []string
	RecoveryLegend string

	Resources       htmlTable
	ResourcesLegend string

	Balance       htmlTable
	BalanceLegend string

	Measured, Lacking htmlTable
	MeasuredLegend    string

	OverTime       []htmlPlot
	OverTimeNote   string
	OverTimeLegend string

	Distributions       []htmlPlot
	DistributionsNote   string
	DistributionsLegend string

	Trials       htmlTable
	TrialsLegend string

	Origin  [][2]string
	Gap     string
	LeftOut []string

	Again htmlAgain
}

// htmlSection is a heading of the page.
type htmlSection struct{ ID, Title string }

// htmlNotes are notes of one kind.
type htmlNotes struct {
	Title string
	Notes []string
}

type htmlAgain struct{ Command, Note, Spec string }

type htmlPlot struct {
	Title string
	// Says is the caption after the title: what was measured.
	Says string
	SVG  template.HTML
	// file is the name of its file, without kind and number. Empty: after the title.
	file string
}

// htmlFigure is a figure that the experiment declares.
type htmlFigure struct {
	Title, Legend string
	Plots         []htmlPlot
	Numbers       htmlTable
	Notes         []string
}

type htmlTable struct {
	Columns []htmlCell
	Rows    [][]htmlCell
}

// How many columns a printed page takes: in its common type, and upright.
const (
	mostInCommonType = 10
	mostUpright      = 15
)

// Many columns are printed in smaller type.
func (t htmlTable) Many() bool { return len(t.Columns) > mostInCommonType }

// Wide tables are printed on pages across.
func (t htmlTable) Wide() bool { return len(t.Columns) > mostUpright }

type htmlCell struct {
	Text    string
	Beside  string // in brackets after a number; below it on a page, where columns of both would be too wide
	Numeric bool
	Name    bool // is not broken at its hyphens
}

func htmlTableOf(t table) htmlTable {
	var h htmlTable
	for _, c := range t.columns {
		h.Columns = append(h.Columns, htmlCell{Text: c.name, Numeric: c.numeric})
	}
	for _, row := range t.rows {
		cells := make([]htmlCell, len(row))
		for i, text := range row {
			cells[i] = htmlCell{Text: text, Numeric: t.columns[i].numeric, Name: t.columns[i].name == "trial"}
			if number, beside, found := strings.Cut(text, " ("); found && cells[i].Numeric && strings.Contains(beside, " to ") {
				cells[i].Text, cells[i].Beside = number, "("+beside
			}
		}
		h.Rows = append(h.Rows, cells)
	}
	return h
}

var htmlPage = template.Must(template.New("report").Funcs(template.FuncMap{"script": scriptElement}).Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
` + pagePolicy() + `
<title>{{.Title}}</title>
<style>
` + pageStyle + `</style>
</head>
<body>
<header>
<h1>{{.Title}}</h1>
{{range .First}}<p>{{.}}</p>
{{end}}{{if or .Glance .Headline}}<div class="glance{{if .Pair}} pair{{end}}">
{{.Glance}}
{{- if .Headline}}<div class="headline">
{{range .Headline}}{{template "figure" .}}{{end}}
{{- with .HeadlineSays}}<p>{{.}}</p>
{{end}}</div>
{{end}}</div>
{{end}}<nav aria-label="Sections">{{range .Sections}}<a href="#{{.ID}}">{{.Title}}</a> {{end}}</nav>
</header>
<main>
{{.Body}}</main>
{{script}}
</body>
</html>
{{define "body"}}
{{- if .Strip}}{{.Heading "Verdicts"}}
{{.Strip}}{{end}}
{{- if .Facts}}{{.Heading "About these results"}}
{{range .Facts}}<p>{{.}}</p>
{{end}}{{end}}
{{- if .Plots}}{{.Heading "Curves"}}
<p>Large dots are means, small ones trials. Bands and whiskers are the 95% interval of the mean, cut off at the frame. Dashed with hollow dots: the paper.</p>
{{template "plots" .Plots}}
{{- with .PlotsNote}}<p>{{.}}</p>
{{end}}{{end}}
{{- if .Bars}}{{.Heading "Variants"}}
<p>{{.BarsLegend}}</p>
{{template "plots" .Bars}}
{{- with .BarsNote}}<p>{{.}}</p>
{{end}}{{end}}
{{- range .Declared}}{{$.Heading .Title}}
{{if .Plots}}<p>{{.Legend}}</p>
{{template "plots" .Plots}}{{end}}
{{- if .Numbers.Rows}}{{template "table" .Numbers}}{{end}}
{{- if .Notes}}<ul>{{range .Notes}}<li>{{.}}</li>{{end}}</ul>
{{end}}{{end}}
{{- if .Capacity.Rows}}{{.Heading "Capacity"}}
{{if .Searches}}{{template "plots" .Searches}}{{end}}<p>{{.CapacityLegend}}</p>
{{template "table" .Capacity}}
{{- end}}
{{- if .Knees.Rows}}{{.Heading "Knees and peaks"}}
<p>{{.KneesLegend}}{{if .Plots}} A ring marks the knee in the plot of latency against throughput.{{end}}</p>
{{template "table" .Knees}}
{{- if .KneesNotes}}<ul>{{range .KneesNotes}}<li>{{.}}</li>{{end}}</ul>
{{end}}{{end}}{{.Heading "Points"}}
<p>In the table: {{.Legend}}.</p>
{{template "table" .Points}}
{{- range .Noted}}<details class="notes"><summary>{{.Title}}{{if gt (len .Notes) 1}}: {{len .Notes}} notes{{end}}</summary><ul>{{range .Notes}}<li>{{.}}</li>{{end}}</ul></details>
{{end}}
{{- if .Checks.Rows}}{{.Heading "Safety"}}
<p>{{.ChecksLegend}}</p>
{{template "table" .Checks}}
{{- if .Checked.Rows}}{{template "table" .Checked}}{{end}}{{end}}
{{- if .Failures.Rows}}{{.Heading "Failures"}}
<p>{{.FailuresLegend}}</p>
{{template "table" .Failures}}{{end}}
{{- if .Measured.Rows}}{{.Heading "Measurements"}}
<p>{{.MeasuredLegend}}</p>
{{template "table" .Measured}}
{{- if .Lacking.Rows}}{{template "table" .Lacking}}{{end}}{{end}}
{{- if .Datasets.Rows}}{{.Heading "Data sets"}}
<p>{{.DatasetsLegend}}</p>
{{template "table" .Datasets}}{{end}}
{{- if .Network.Rows}}{{.Heading "Network"}}
<p>{{.NetNote}}</p>
{{template "table" .Network}}{{end}}
{{- if .Faults.Rows}}{{.Heading "Faults"}}
<p>{{.FaultsLegend}}</p>
{{template "table" .Faults}}{{end}}
{{- if .Recovery.Rows}}{{.Heading "Recovery"}}
<p>{{.RecoveryLegend}}</p>
{{template "table" .Recovery}}
{{- if .RecoveryNotes}}<ul>{{range .RecoveryNotes}}<li>{{.}}</li>{{end}}</ul>
{{end}}{{end}}
{{- if .OverTime}}{{.Heading "Over time"}}
<p>{{.OverTimeLegend}}</p>
{{template "plots" .OverTime}}
{{- with .OverTimeNote}}<p>{{.}}</p>
{{end}}{{end}}
{{- if .Distributions}}{{.Heading "Latency distributions"}}
<p>{{.DistributionsLegend}}</p>
{{template "plots" .Distributions}}
{{- with .DistributionsNote}}<p>{{.}}</p>
{{end}}{{end}}
{{- if .Resources.Rows}}{{.Heading "Resources"}}
<p>{{.ResourcesLegend}}</p>
{{template "table" .Resources}}{{end}}
{{- if .Balance.Rows}}{{.Heading "Balance"}}
<p>{{.BalanceLegend}}</p>
{{template "table" .Balance}}{{end}}
{{- if .Sessions.Rows}}{{.Heading "Script"}}
<p>{{.SessionsLegend}}</p>
{{template "table" .Sessions}}{{end}}
{{- if .Changes.Rows}}{{.Heading .ChangesTitle}}
{{template "table" .Changes}}{{end}}
{{- if .Excluded.Rows}}{{.Heading "Excluded trials"}}
{{template "table" .Excluded}}{{end}}
{{- if .Collected.Rows}}{{.Heading "Collected files"}}
<p>{{.CollectedLegend}}</p>
{{template "table" .Collected}}{{end}}
{{- if .Trials.Rows}}{{.Heading "Every trial"}}
<p>{{.TrialsLegend}}</p>
{{template "table" .Trials}}{{end}}{{.Heading "Where this comes from"}}
<dl>
{{range .Origin}}<dt>{{index . 0}}</dt><dd>{{index . 1}}</dd>
{{end}}</dl>
{{if .Gap}}<p>{{.Gap}}</p>
{{end}}{{range .LeftOut}}<p>Left out: {{.}}.</p>
{{end}}
{{- if .Again.Spec}}{{.Heading "Run it again"}}
<p><code>{{.Again.Command}}</code></p>
<p>{{.Again.Note}}</p>
<details><summary>The spec</summary><pre>{{.Again.Spec}}</pre></details>
{{end}}{{end}}{{define "plots"}}<div class="plots">
{{range .}}{{template "figure" .}}{{end}}</div>
{{end}}{{define "figure"}}<figure><figcaption><b>{{.Title}}</b>{{with .Says}}<br>{{.}}{{end}}</figcaption>
{{.SVG}}</figure>
{{end}}{{define "table"}}<div class="scroll{{if .Many}} many{{end}}{{if .Wide}} wide{{end}}" tabindex="0"><table>
<thead><tr>{{range .Columns}}<th scope="col"{{if .Numeric}} class="number"{{end}}>{{.Text}}</th>{{end}}</tr></thead>
{{range .Rows}}<tr>{{range .}}<td{{if .Numeric}} class="number"{{else if .Name}} class="name"{{end}}>{{.Text}}{{with .Beside}} <span class="beside">{{.}}</span>{{end}}</td>{{end}}</tr>
{{end}}</table></div>
{{end}}`))
