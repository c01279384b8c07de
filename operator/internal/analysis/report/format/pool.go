package format

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/analysis/report/plot"
)

// PoolText writes pooled effects for a terminal.
func PoolText(w io.Writer, p model.PooledEffects, o TextOptions) error {
	if o.Width <= 0 {
		o.Width = 100
	}
	sites, effects := document.PoolTables(p)
	b := &strings.Builder{}
	wrap(b, o.Width, "", p.Lead())
	b.WriteString("\n")
	textTable(b, sites)
	b.WriteString("\n")
	textTable(b, effects)
	wrap(b, o.Width, "", document.PoolLegend)
	for _, n := range p.Notes {
		wrap(b, o.Width, "", n)
	}
	return writePool(w, b.String())
}

// PoolJSON writes pooled effects as JSON.
func PoolJSON(w io.Writer, p model.PooledEffects) error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the pooled effects: %w", err)
	}
	return writePool(w, string(text)+"\n")
}

// PoolHTML writes pooled effects as a page that needs nothing else.
func PoolHTML(w io.Writer, p model.PooledEffects) error {
	sites, effects := document.PoolTables(p)
	view := struct {
		Sites, Effects htmlTable
		Lead, Legend   string
		Notes          []string
	}{htmlTableOf(sites), htmlTableOf(effects), p.Lead(), document.PoolLegend, p.Notes}
	if err := poolPage.Execute(w, view); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

var poolPage = template.Must(template.Must(htmlPage.Clone()).New("pool").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
` + pagePolicy() + `
<title>Several sites together</title>
<style>` + plot.PageStyle + `</style>
</head>
<body>
<h1>Several sites together</h1>
<p>{{.Lead}}</p>
{{template "table" .Effects}}
<p>{{.Legend}}</p>
{{range .Notes}}<p>{{.}}</p>
{{end}}<h2>Sites</h2>
{{template "table" .Sites}}
</body>
</html>
`))

func writePool(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write the pooled effects: %w", err)
	}
	return nil
}
