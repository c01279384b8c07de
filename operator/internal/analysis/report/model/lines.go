package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Fit says this of the lines that it leaves out.
const (
	withoutSucceeded = "the lines of trials that succeeded: see the trials' own results"
	withoutLines     = "the lines of all trials: see the trials' own results"
)

// LacksLines reports whether lines of trials did not fit into the results.
func LacksLines(e results.Experiment) bool {
	return slices.ContainsFunc(e.LeftOut, SaysOfLines)
}

// SaysOfLines reports whether a text of LeftOut is about lines of trials.
func SaysOfLines(leftOut string) bool { return leftOut == withoutSucceeded || leftOut == withoutLines }

// addLine keeps the line that a trial would have in the experiment's results.
func (d *Details) addLine(t results.Trial) {
	if d.lines == nil {
		d.lines = map[string]results.TrialLine{}
	}
	for _, row := range t.ByRow() {
		d.lines[row.Name] = LineOf(row)
	}
}

// LineOf makes a trial's line from its own results, as the manager does.
func LineOf(t results.Trial) results.TrialLine {
	l := results.TrialLine{
		Name: t.Name, Number: t.Number, PointIndex: t.PointIndex, Coordinates: t.Coordinates, Repetition: t.Repetition, Attempt: t.Attempt,
		Outcome: t.Outcome, Reason: t.Reason, Message: t.Message, Imported: t.Imported, GapSeconds: t.GapSeconds, NodeSet: t.NodeSet,
		Committed: t.Summary.Committed, Aborted: t.Summary.Aborted, Errors: t.Summary.Errors, Timeouts: t.Summary.Timeouts,
		Offered: t.Summary.Offered, GivenUp: t.Summary.GivenUp, Unsent: t.Summary.Unsent, Unreported: t.Summary.Unreported, RunSummary: t.Summary.RunSummary,
		Throughput: t.Summary.Throughput, MeanMillis: t.Summary.MeanMillis, P10Millis: t.Summary.P10Millis, P50Millis: t.Summary.P50Millis, P90Millis: t.Summary.P90Millis,
		P99Millis: t.Summary.P99Millis, P999Millis: t.Summary.P999Millis,
		P95Millis: t.Summary.Percentiles["P95"], Percentiles: withoutP95(t.Summary.Percentiles), Remarks: t.Summary.Remarks,
		OfAll:          ofAll(t),
		CorrectClients: t.CorrectClients, Measurements: t.Measurements, Recovery: t.Recovery,
		ClientTimeShare: stats.ClientTime(t), ClientBusyShare: stats.ClientBusy(t), Script: t.Script,
	}
	if t.Script != "" {
		l.ClientTimeShare, l.ClientBusyShare = nil, nil // a script's clients are its own
	}
	if l.Coordinates == nil {
		l.Coordinates = map[string]string{}
	}
	if t.Outcome == stats.Succeeded {
		window := stats.CheckWindow(t)
		l.Window = &window
	}
	for _, p := range t.Pods {
		if p.Resources != nil {
			l.ThrottledShare, l.StealShare = worse(l.ThrottledShare, p.Resources.ThrottledShare), worse(l.StealShare, p.Resources.Node.StealShare)
		}
	}
	for _, m := range t.Machines {
		if m.ContendedShare != nil {
			l.ContendedShare = worse(l.ContendedShare, *m.ContendedShare)
		}
	}
	return l
}

// withoutP95 are the percentiles without the one that a line has for itself.
func withoutP95(percentiles map[string]float64) map[string]float64 {
	rest := maps.Clone(percentiles)
	delete(rest, "P95")
	if len(rest) == 0 {
		return nil
	}
	return rest
}

// ofAll returns percentiles over committed and failed requests together. It computes them from the
// trial's histogram, since results of earlier versions lack some or all of them.
func ofAll(t results.Trial) *results.Percentiles {
	if t.Summary.RunSummary || t.Latency == "" {
		return t.Summary.OfAll
	}
	h, err := results.DecodeHistogram(t.Latency)
	if err != nil { // Verify says so
		return nil
	}
	return results.Summarize(t.Summary.Counters, h, 0).OfAll
}

func worse(old *float64, share float64) *float64 {
	if old != nil && *old >= share {
		return old
	}
	return &share
}

// restoreLines makes the lines that did not fit again from the trials' own results, and says how
// many are missing.
func (d *Details) restoreLines(e *results.Experiment) {
	if !LacksLines(*e) {
		return
	}
	there := map[string]bool{}
	for _, l := range e.Trials {
		there[l.Name] = true
	}
	e.Trials = slices.Clone(e.Trials)
	for name, l := range d.lines {
		if !there[name] {
			e.Trials = append(e.Trials, l)
		}
	}
	slices.SortFunc(e.Trials, func(a, b results.TrialLine) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name))
	})
	e.LeftOut = slices.DeleteFunc(slices.Clone(e.LeftOut), SaysOfLines)
	if n := trialsDone(*e) - len(e.Trials); n > 0 {
		e.LeftOut = append(e.LeftOut, fmt.Sprintf("the lines of %s, which did not fit, and whose own results were not read", Count(n, "trial")))
	}
}

// trialsDone is how many trials the numbers of an experiment are about, valid or not.
func trialsDone(e results.Experiment) int {
	n := 0
	for _, p := range e.Points {
		n += p.Valid + p.Invalid + p.Failed
	}
	return n
}
