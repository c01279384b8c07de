package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// BestOf is the first plot with numbers of the source; latency against throughput, which papers
// show, goes before the other two. -1: there is none.
func BestOf[P any](all []P, ofPaper func(P) bool, key func(P) string) int {
	if i := slices.IndexFunc(all, func(p P) bool { return key(p) == LatencyAgainstThroughput && ofPaper(p) }); i >= 0 {
		return i
	}
	return slices.IndexFunc(all, ofPaper)
}

// SameKey returns the plots with the key of the i-th one. There may be two: the measured values,
// and the source's.
func SameKey[P any](all []P, i int, key func(P) string) (same []P) {
	for _, p := range all {
		if key(p) == key(all[i]) {
			same = append(same, p)
		}
	}
	return same
}

// TimesThePaper says by how many times the measured means differ from the source's numbers.
func TimesThePaper(e results.Experiment, metrics ...string) string {
	var parts []string
	for _, metric := range metrics {
		var ratios []float64
		for _, p := range e.Points {
			paper, has := model.PaperValue(e, metric, p.Coordinates)
			if a := p.Metrics[metric]; has && paper != 0 && a.N > 0 {
				ratios = append(ratios, a.Mean/paper)
			}
		}
		if len(ratios) == 0 {
			continue
		}
		slices.Sort(ratios)
		text := nameOf(metric) + " "
		if least, most := Tick3(ratios[0]), Tick3(ratios[len(ratios)-1]); least == most {
			text += least
		} else {
			text += least + " to " + most
		}
		parts = append(parts, fmt.Sprintf("%s times the source's (%s)", text, model.Count(len(ratios), "number")))
	}
	if len(parts) == 0 {
		return ""
	}
	return "Measured: " + strings.Join(parts, "; ") + "."
}

// nameOf a metric in a sentence.
func nameOf(metric string) string {
	for _, m := range shownMetrics {
		if m.metric == metric {
			name, _, _ := strings.Cut(m.name, " ms")
			return strings.TrimSuffix(name, " tx/s")
		}
	}
	return metric
}

// CaptionOf words the measurement behind a figure: what was measured, for how long, and in how many
// valid trials.
func CaptionOf(e results.Experiment) string {
	least, most := 0, 0
	for _, p := range e.Points {
		if p.Valid == 0 {
			continue
		}
		if least == 0 || p.Valid < least {
			least = p.Valid
		}
		most = max(most, p.Valid)
	}
	if most == 0 {
		return ""
	}
	trials := model.Count(least, "valid trial")
	if most > least {
		trials = fmt.Sprintf("%d to %s", least, model.Count(most, "valid trial"))
	}
	text := trials + " of each of " + model.Count(len(e.Points), "point")
	if len(e.Points) == 1 {
		text = trials
	}
	if f := e.Fidelity; f != nil {
		var programs []string
		for _, s := range f.Systems {
			if name := strings.TrimSpace(s.Program + " " + s.Version); name != "" && !slices.Contains(programs, name) {
				programs = append(programs, name)
			}
		}
		if len(programs) > 0 {
			text += " of " + strings.Join(programs, ", ")
		}
	}
	if e.Profile != "" {
		text += ", profile " + e.Profile
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// LatencyAgainstThroughput is the key of latency against throughput.
const LatencyAgainstThroughput = "Latency against throughput"

// InThePaper ends the title of a plot that has the source's numbers alone.
const InThePaper = " in the paper"

// Key is what a plot shows, no matter who measured it.
func (p LinePlot) Key() string { return strings.Replace(p.Title, InThePaper, "", 1) }

// Key is what a plot shows, no matter who measured it.
func (p BarPlot) Key() string { return strings.Replace(p.Title, InThePaper, "", 1) }

// OfPaper reports whether the source's numbers are in the plot.
func (p LinePlot) OfPaper() bool {
	return slices.ContainsFunc(p.Curves, func(c Curve) bool { return c.Paper })
}

// OfPaper reports whether the source's numbers are in the plot.
func (p BarPlot) OfPaper() bool {
	return strings.HasSuffix(p.Title, InThePaper) || slices.ContainsFunc(p.Bars, func(b Bar) bool { return b.HasPaper })
}

// Heading is the title above a plot.
func (p LinePlot) Heading() string { return p.Title }

// Heading is the title above a plot.
func (p BarPlot) Heading() string { return p.Title }

// Says is a caption.
func (p LinePlot) Says(e results.Experiment) string {
	switch {
	case strings.Contains(p.Title, InThePaper):
		return sourceCaption(e)
	case p.One != "":
		return CaptionOf(e)
	}
	text := CaptionOf(e)
	if slices.ContainsFunc(p.Curves, func(c Curve) bool { return c.Paper }) {
		text += " Dashed, hollow: " + SourceName(e) + "."
	}
	return text
}

// Says is a caption.
func (p BarPlot) Says(e results.Experiment) string {
	if strings.HasSuffix(p.Title, InThePaper) {
		return sourceCaption(e)
	}
	return CaptionOf(e)
}

func sourceCaption(e results.Experiment) string {
	return "As " + SourceName(e) + " reports it, on a scale of its own."
}

// SourceName is the source with its section.
func SourceName(e results.Experiment) string {
	name := cmp.Or(e.Source["title"], "the source")
	if section := e.Source["section"]; section != "" {
		name += ", " + section
	}
	return name
}
