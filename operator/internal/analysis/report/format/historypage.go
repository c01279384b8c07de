package format

import (
	"fmt"
	"html/template"
	"io"

	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/analysis/report/plot"
)

// mostHistoryPlots of metrics that a page has.
const mostHistoryPlots = 60

// HistoryHTML writes a history as one page that needs nothing else.
func HistoryHTML(w io.Writer, h model.History) error {
	view := struct {
		Lead, Legend, More string
		Changes, Runs      htmlTable
		Changed, Steady    []plot.Drawn
		Notes              []string
	}{Lead: h.Lead(), Legend: document.HistoryLegend, Changes: htmlTableOf(document.HistoryChanges(h, document.AllChanges)), Runs: htmlTableOf(document.HistoryRuns(h)), Notes: h.Notes}
	for i, m := range h.Metrics {
		if i == mostHistoryPlots {
			view.More = fmt.Sprintf("The first %d of %d metrics are drawn; -o csv has all.", i, len(h.Metrics))
			break
		}
		drawn := plot.DrawnHistory(h, m, fmt.Sprintf("history%d", i))
		if len(m.Changes) > 0 {
			view.Changed = append(view.Changed, drawn)
		} else {
			view.Steady = append(view.Steady, drawn)
		}
	}
	if err := historyPage.Execute(w, view); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

var historyPage = template.Must(template.Must(htmlPage.Clone()).New("history").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
` + pagePolicy() + `
<title>Benchmarks over time</title>
<style>` + plot.PageStyle + `</style>
</head>
<body>
<main>
<h1>Benchmarks over time</h1>
<p>{{.Lead}}</p>
{{range .Notes}}<p>{{.}}</p>
{{end}}{{if .Changes.Rows}}<h2>Changes</h2>
{{template "table" .Changes}}
{{end}}<p>{{.Legend}}</p>
{{if .Changed}}<h2>Metrics that change</h2>
<p>A dot is the mean of a run, with the 95% interval over its trials. A line is the mean of a level; a dashed line stands where it changes. The axis does not begin at 0.</p>
{{template "plots" .Changed}}
{{end}}{{if .Steady}}<h2>Metrics without a change</h2>
{{template "plots" .Steady}}
{{end}}{{with .More}}<p>{{.}}</p>
{{end}}<h2>Runs</h2>
{{template "table" .Runs}}
</main>
{{script}}
</body>
</html>
`))
