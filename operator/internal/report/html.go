package report

import (
	"fmt"
	"html/template"
	"io"

	"assay.dev/assay/operator/internal/results"
)

// HTML writes a report as one page that needs nothing else: no script, no font, no picture from elsewhere.
func HTML(w io.Writer, e results.Experiment) error {
	p := newPage(e)
	view := htmlView{
		Title: p.title, Facts: p.facts, Verdicts: p.verdicts, Legend: legend, Points: htmlTableOf(p.points), Warnings: p.warnings,
		Excluded: htmlTableOf(p.excluded), Origin: p.origin, Gap: p.gap, LeftOut: p.leftOut,
	}
	for _, plot := range plots(e) {
		view.Plots = append(view.Plots, htmlPlot{Title: plot.title, SVG: template.HTML(plot.svg())}) // every text in it is escaped
	}
	if err := htmlPage.Execute(w, view); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// htmlView is what the page's template sees.
type htmlView struct {
	Title    string
	Facts    []string
	Verdicts []results.ClaimResult
	Legend   string
	Points   htmlTable
	Plots    []htmlPlot
	Warnings []string
	Excluded htmlTable
	Origin   [][2]string
	Gap      string
	LeftOut  []string
}

type htmlPlot struct {
	Title string
	SVG   template.HTML
}

type htmlTable struct {
	Columns []htmlCell
	Rows    [][]htmlCell
}

type htmlCell struct {
	Text    string
	Numeric bool
}

func htmlTableOf(t table) htmlTable {
	var h htmlTable
	for _, c := range t.columns {
		h.Columns = append(h.Columns, htmlCell{c.name, c.numeric})
	}
	for _, row := range t.rows {
		cells := make([]htmlCell, len(row))
		for i, text := range row {
			cells[i] = htmlCell{text, t.columns[i].numeric}
		}
		h.Rows = append(h.Rows, cells)
	}
	return h
}

var htmlPage = template.Must(template.New("report").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 1100px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.2em 0.7em; text-align: left; vertical-align: top; border-bottom: 1px solid #ddd; }
.number { text-align: right; white-space: nowrap; }
code { font-size: 0.9em; overflow-wrap: anywhere; }
.verdict { font-weight: 600; white-space: nowrap; }
.Reproduced { color: #00664a; } .NotReproduced { color: #a40000; } .Inconclusive { color: #8a5a00; } .NotEvaluated { color: #555; }
.plots { display: flex; flex-wrap: wrap; gap: 1.5em; } figure { margin: 0; flex: 1 1 460px; max-width: 640px; } figcaption { font-weight: 600; }
svg { width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: #333; } svg .grid { stroke: #e5e5e5; }
dt { float: left; clear: left; width: 8em; color: #555; } dd { margin-left: 8em; overflow-wrap: anywhere; }
</style>
</head>
<body>
<h1>{{.Title}}</h1>
{{range .Facts}}<p>{{.}}</p>
{{end}}
{{- if .Verdicts}}<h2>Verdicts</h2>
<div class="scroll"><table>
<tr><th>verdict</th><th>claim</th><th>measured</th></tr>
{{range .Verdicts}}<tr><td class="verdict {{.Verdict}}">{{.Verdict}}</td><td><b>{{.Name}}</b><br>{{.Statement}}<br><code>{{.Expr}}</code></td><td>{{.Message}}</td></tr>
{{end}}</table></div>
{{end}}
{{- if .Plots}}<h2>Curves</h2>
<p>Dots are means, bands and whiskers their 95% intervals. Dashed: the paper.</p>
<div class="plots">
{{range .Plots}}<figure><figcaption>{{.Title}}</figcaption>
{{.SVG}}</figure>
{{end}}</div>
{{end}}<h2>Points</h2>
<p>In the table: {{.Legend}}.</p>
{{template "table" .Points}}
{{- if .Warnings}}<ul>{{range .Warnings}}<li>{{.}}</li>{{end}}</ul>
{{end}}
{{- if .Excluded.Rows}}<h2>Trials that are in no number</h2>
{{template "table" .Excluded}}{{end}}<h2>Where this comes from</h2>
<dl>
{{range .Origin}}<dt>{{index . 0}}</dt><dd>{{index . 1}}</dd>
{{end}}</dl>
{{if .Gap}}<p>{{.Gap}}</p>
{{end}}{{range .LeftOut}}<p>Left out: {{.}}.</p>
{{end}}</body>
</html>
{{define "table"}}<div class="scroll"><table>
<tr>{{range .Columns}}<th{{if .Numeric}} class="number"{{end}}>{{.Text}}</th>{{end}}</tr>
{{range .Rows}}<tr>{{range .}}<td{{if .Numeric}} class="number"{{end}}>{{.Text}}</td>{{end}}</tr>
{{end}}</table></div>
{{end}}`))
