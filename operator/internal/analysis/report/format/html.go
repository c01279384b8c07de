package format

import (
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/analysis/report/plot"
	"assay.dev/assay/operator/internal/analysis/report/strip"
	"assay.dev/assay/operator/internal/results"
)

// HTML writes a report as one page that needs nothing else: no font, no picture, no script from
// elsewhere. Its own script (pageScript) may be switched off: all numbers are in the page.
func HTML(w io.Writer, e results.Experiment) error {
	p := document.NewPage(e)
	view := htmlView{
		Title: p.Title, First: p.First, Facts: p.Rest, Legend: p.Reading(legend), Points: htmlTableOf(p.Points),
		Network: htmlTableOf(p.Network), NetNote: p.NetNote, Faults: htmlTableOf(p.Faults), FaultsLegend: document.FaultsLegend,
		Excluded: htmlTableOf(p.Excluded), Origin: p.Origin, Gap: p.Gap, LeftOut: p.LeftOut,
	}
	for _, g := range p.Noted {
		view.Noted = append(view.Noted, htmlNotes{g.Title, g.Notes})
	}
	view.Headline, view.HeadlineSays = plot.Headline(e)
	_, overAxis := document.NumericAxis(e)
	view.Pair = overAxis && len(view.Headline) > 1
	var err error
	if view.Glance, err = strip.Glance(e.Claims, e.Completed != nil, "claim"); err != nil {
		return err
	}
	if view.Strip, err = strip.HTML(e.Claims, e.Completed != nil, e.Look != nil, "claim"); err != nil {
		return err
	}
	view.Checks, view.Checked, view.ChecksLegend = htmlTableOf(p.Checks), htmlTableOf(p.Checked), document.ChecksLegend
	view.Datasets, view.DatasetsLegend = htmlTableOf(p.Datasets), document.DatasetsLegend
	view.Changes, view.ChangesTitle = htmlTableOf(p.Changes), document.ChangesTitle
	view.Sessions, view.SessionsLegend = htmlTableOf(p.Sessions), document.SessionsLegend
	view.Collected, view.CollectedLegend = htmlTableOf(p.Kept), document.CollectedLegend
	view.FlameGraphs, view.FlameGraphsLegend = htmlTableOf(p.FlameGraphs), document.FlameGraphsLegend
	view.Failures, view.FailuresLegend = htmlTableOf(p.Failures), p.Reading(document.FailuresLegend)
	view.Trials, view.TrialsLegend, view.Again = htmlTableOf(p.Trials), document.TrialsLegend, htmlAgain{Command: p.Again.Command, Note: p.Again.Note, Spec: p.Again.Spec}
	view.Capacity, view.CapacityLegend = htmlTableOf(p.Capacity), document.CapacityLegend
	view.Knees, view.KneesLegend, view.KneesNotes = htmlTableOf(p.Knees), p.KneeNote, p.KneeRest
	view.Measured, view.Lacking, view.MeasuredLegend = htmlTableOf(p.Measured), htmlTableOf(p.Lacking), document.MeasurementLegend
	view.Resources, view.ResourcesLegend = htmlTableOf(p.Used), document.ResourceLegend
	view.Balance, view.BalanceLegend = htmlTableOf(p.Balance), document.BalanceLegend
	view.Uses, view.UsesLegend = htmlTableOf(p.Uses), document.UsesLegend
	view.LatencyBy, view.LatencyByLegend = htmlTableOf(p.LatencyBy), document.LatencyByLegend
	view.Recovery, view.RecoveryNotes, view.RecoveryLegend = htmlTableOf(p.Recovery), p.RecNotes, document.RecoveryLegend
	view.Plots, view.PlotsNote = plot.DrawnLines(e, "curve")
	view.Searches = plot.DrawnSearches(e, "search")
	view.Bars, view.BarsNote = plot.DrawnBars(e, "bar")
	view.BarsLegend = document.BarsLegend
	view.Declared = htmlDeclared(e, "figure")
	view.OverTime, view.OverTimeNote = plot.OverTime(e)
	view.OverTimeLegend = p.Reading(plot.LegendOverTime(e))
	view.Distributions, view.DistributionsNote = plot.Distributions(e)
	view.DistributionsLegend = p.Reading(plot.CDFLegend)
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
	id := plot.FileName(title)
	for slices.ContainsFunc(v.Sections, func(s htmlSection) bool { return s.ID == id }) {
		id += "-2"
	}
	v.Sections = append(v.Sections, htmlSection{id, title})
	return template.HTML(`<h2 id="` + id + `">` + template.HTMLEscapeString(title) + "</h2>") // #nosec G203 -- escaped
}

// htmlView is what the page's template sees.
type htmlView struct {
	Title string
	// First are the facts of the first screen, beside the verdicts at a glance and one figure.
	First        []string
	Glance       template.HTML
	Headline     []plot.Drawn
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
	Plots  []plot.Drawn
	// PlotsNote says which curves are not drawn, and BarsNote which bars.
	PlotsNote string

	Bars                 []plot.Drawn
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

	Uses, LatencyBy             htmlTable
	UsesLegend, LatencyByLegend string

	Collected       htmlTable
	CollectedLegend string

	FlameGraphs       htmlTable
	FlameGraphsLegend string

	Capacity       htmlTable
	CapacityLegend string
	Searches       []plot.Drawn
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

	OverTime       []plot.Drawn
	OverTimeNote   string
	OverTimeLegend string

	Distributions       []plot.Drawn
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

// htmlFigure is a figure that the experiment declares.
type htmlFigure struct {
	Title, Legend string
	Plots         []plot.Drawn
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
	Link    bool // to a file beside the page, whose name the text is
}

func htmlTableOf(t document.Table) htmlTable {
	var h htmlTable
	for _, c := range t.Columns {
		h.Columns = append(h.Columns, htmlCell{Text: c.Name, Numeric: c.Numeric})
	}
	for _, row := range t.Rows {
		cells := make([]htmlCell, len(row))
		for i, text := range row {
			cells[i] = htmlCell{Text: text, Numeric: t.Columns[i].Numeric, Name: t.Columns[i].Name == "trial"}
			cells[i].Link = t.Columns[i].Name == document.FlameGraphColumn && document.IsFolder(text)
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
` + plot.PageStyle + `</style>
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
{{- if .Uses.Rows}}{{.Heading "Use over time"}}
<p>{{.UsesLegend}}</p>
{{template "table" .Uses}}{{end}}
{{- if .LatencyBy.Rows}}{{.Heading "Latency by kind, node and region"}}
<p>{{.LatencyByLegend}}</p>
{{template "table" .LatencyBy}}{{end}}
{{- if .Sessions.Rows}}{{.Heading "Script"}}
<p>{{.SessionsLegend}}</p>
{{template "table" .Sessions}}{{end}}
{{- if .Changes.Rows}}{{.Heading .ChangesTitle}}
{{template "table" .Changes}}{{end}}
{{- if .FlameGraphs.Rows}}{{.Heading "Flame graphs"}}
<p>{{.FlameGraphsLegend}}</p>
{{template "table" .FlameGraphs}}{{end}}
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
{{range .Rows}}<tr>{{range .}}<td{{if .Numeric}} class="number"{{else if .Name}} class="name"{{end}}>{{if .Link}}<a href="{{.Text}}">{{.Text}}</a>{{else}}{{.Text}}{{end}}{{with .Beside}} <span class="beside">{{.}}</span>{{end}}</td>{{end}}</tr>
{{end}}</table></div>
{{end}}`))

// htmlDeclared are the plots of declared figures for a page. Their ids begin with id.
func htmlDeclared(e results.Experiment, id string) (all []htmlFigure) {
	for i, f := range document.DeclaredFigures(e) {
		h := htmlFigure{Title: f.Title, Legend: f.Legend, Numbers: htmlTableOf(f.Numbers), Notes: f.Notes}
		for k, p := range f.Plots {
			h.Plots = append(h.Plots, plot.DrawnDeclared(e, f, p, fmt.Sprintf("%s%d-%d", id, i, k)))
		}
		all = append(all, h)
	}
	return all
}
