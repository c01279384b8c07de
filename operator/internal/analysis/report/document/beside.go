package document

import (
	"cmp"
	"slices"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/analysis/report/strip"
	"assay.dev/assay/operator/internal/results"
)

// Beside is a number of the source with the measured value for it.
type Beside struct {
	// At and What name what is compared: a point and a metric, or a claim.
	At, What string
	// Paper, Measured with its spread, and Ratio of the two, as tables have them.
	Paper, Measured, Ratio string
}

// BesideThePaper are the numbers of the source that have a measurement: of points, and then of
// claims.
func BesideThePaper(e results.Experiment) []Beside {
	metrics := slices.Clone(shownMetrics)
	for _, m := range e.Measurements {
		metrics = append(metrics, shownMetric{metric: m.Name, name: measurementTitle(m), scale: 1})
	}
	var all []Beside
	for _, p := range e.Points {
		for _, m := range metrics {
			paper, has := model.PaperValue(e, m.metric, p.Coordinates)
			measured := p.Metrics[m.metric]
			if !has || measured.N == 0 {
				continue
			}
			all = append(all, Beside{
				At: cmp.Or(model.At(e.Axes, p.Coordinates), "the only point"), What: m.name,
				Paper: paperCell(paper, true), Measured: meanCell(measured, m.scale), Ratio: ratioCell(measured, paper, true),
			})
		}
	}
	for _, c := range e.Claims {
		tracks := strip.Tracks(c)
		if c.Reported == "" || len(tracks) != 1 || tracks[0].Reference == nil {
			continue
		}
		ratio := "-"
		if *tracks[0].Reference != 0 {
			ratio = Tick3(tracks[0].Value / *tracks[0].Reference)
		}
		all = append(all, Beside{At: c.Name, What: c.Expr, Paper: c.Reported, Measured: strip.Show(tracks[0].Interval, tracks[0].Unit), Ratio: ratio})
	}
	return all
}
