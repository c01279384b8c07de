package model

import (
	"slices"

	"assay.dev/assay/operator/internal/results"
)

// intoLines completes each trial's line from the trial's own results. A line has only the
// recoveries that fit into the trial's status: the first occurrences, without kind, instant,
// earlier throughput and cautions.
func (d *Details) intoLines(e *results.Experiment) {
	e.Trials = slices.Clone(e.Trials)
	for i, l := range e.Trials {
		e.Trials[i].Window = d.lines[l.Name].Window
		if p95, read := d.p95[l.Name]; read {
			e.Trials[i].P95Millis = p95
		}
		e.Trials[i].Remarks = d.lines[l.Name].Remarks
		if own := d.lines[l.Name]; len(own.Recovery) > 0 {
			e.Trials[i].Recovery = own.Recovery
		}
	}
}
