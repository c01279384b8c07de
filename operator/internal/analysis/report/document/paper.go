package document

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// paperCells are the paper's value at a point, and the ratio of the measured value to it. A value
// between two reported ones has a mark.
func paperCells(e results.Experiment, metric string, p results.PointResult) []string {
	measured := p.Metrics[metric]
	paper, has := model.PaperValue(e, metric, p.Coordinates)
	if has {
		return []string{paperCell(paper, true), ratioCell(measured, paper, true)}
	}
	if paper, has = model.PaperBetween(e, metric, p.Coordinates); !has {
		return []string{"-", "-"}
	}
	ratio := ratioCell(measured, paper, true)
	if ratio != "-" {
		ratio = between + ratio
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(paper, 'g', betweenDigits, 64), 64)
	if err != nil {
		rounded = paper // a number that was just written is read again
	}
	return []string{between + strconv.FormatFloat(rounded, 'f', -1, 64), ratio}
}

const (
	// between marks a value of the paper that lies between two reported ones.
	between = "≈"
	// betweenDigits are the digits of such a value: papers' curves are read to about 1%.
	betweenDigits = 3
)

// paperNotes name the paper's values that are not in the table, and facts that the source left
// unclear. Series with the same note share it.
func paperNotes(e results.Experiment) []string {
	var unknown, elsewhere, unclear sharedNotes
	for _, s := range e.Reported {
		if _, known := model.Factor(s); !known {
			unknown.add(s.Name, fmt.Sprintf("in %q, which cannot be converted to tx/s or ms: not in the table.", s.Unit))
			continue
		}
		var xs []string
		for _, x := range s.X {
			if !slices.ContainsFunc(e.Points, func(p results.PointResult) bool {
				return model.Agrees(s.At, p.Coordinates) && results.SameValue(x, p.Coordinates[s.Axis])
			}) {
				xs = append(xs, x)
			}
		}
		if len(xs) > 0 {
			elsewhere.add(s.Name, fmt.Sprintf("also at %s = %s, which this sweep has not.", s.Axis, strings.Join(xs, ", ")))
		}
		if s.Correction > 0 {
			unclear.add(s.Name, fmt.Sprintf("its values are multiplied by %s everywhere.", strconv.FormatFloat(s.Correction, 'f', -1, 64)))
		}
		if s.Note != "" {
			unclear.add(s.Name, s.Note)
		}
	}
	notes := slices.Concat(unknown.lines(), elsewhere.lines(), unclear.lines())
	if slices.ContainsFunc(e.Points, func(p results.PointResult) bool {
		return slices.ContainsFunc(shownMetrics, func(m shownMetric) bool { _, ok := model.PaperBetween(e, m.metric, p.Coordinates); return ok })
	}) {
		notes = append(notes, between+": the paper does not report this point. The value lies on the straight line between its neighbours there, and no verdict uses it.")
	}
	return notes
}

// sharedNotes are notes on series, in the order in which they were first made.
type sharedNotes struct {
	texts  []string
	series map[string][]string
}

func (n *sharedNotes) add(series, text string) {
	if n.series == nil {
		n.series = map[string][]string{}
	}
	if n.series[text] == nil {
		n.texts = append(n.texts, text)
	}
	n.series[text] = append(n.series[text], series)
}

func (n *sharedNotes) lines() []string {
	var lines []string
	for _, text := range n.texts {
		lines = append(lines, fmt.Sprintf("Paper, %s: %s", strings.Join(n.series[text], ", "), text))
	}
	return lines
}
