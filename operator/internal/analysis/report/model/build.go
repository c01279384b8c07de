// Package model computes the results of an experiment. Build and Fit put them together, Details has
// the data that only its trials have, and Verify computes everything once more. Compare, NewHistory
// and Pool take the results of several runs. Package document lays the numbers out.
//
// Build is pure: it takes the time as a parameter and reads nothing.
package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/analysis/fidelity"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Build puts together the results of an experiment so far. They are the trials that are done
// (lines, in any order), their aggregates at every point of the axes, and the verdicts. The
// experiment's profile is applied. The argument exp is the object as it is in the cluster, and
// systems has its Systems by name.
func Build(exp *v1alpha1.Experiment, systems map[string]v1alpha1.SystemSpec, axes []results.Axis, lines []results.TrialLine, now time.Time) results.Experiment {
	spec := plan.ApplyProfile(exp.Spec)
	lines = slices.Clone(lines)
	slices.SortFunc(lines, func(a, b results.TrialLine) int { return int(a.Number) - int(b.Number) })
	points := stats.Points(lines, furtherMetrics(spec)...)
	r := results.Experiment{
		Format:     results.ExperimentFormat,
		Name:       exp.Name,
		Recurs:     exp.Labels[v1alpha1.LabelRecurs],
		UID:        string(exp.UID),
		Profile:    exp.Spec.Profile,
		Seed:       exp.Status.Seed,
		SpecSHA256: SpecSHA256(exp.Spec),
		Source:     source(exp.Spec.Source),
		Written:    now.UTC(),
		Method:     claims.Method,
		Axes:       axes,
		Points:     everyPoint(axes, points),
		Capacities: plan.Capacities(spec, axes, lines),
		Trials:     lines,
	}
	if len(r.Capacities) > 0 {
		r.Axes, r.Points = triedAlone(r.Axes, r.Capacities[0].Axis, points)
	}
	r.Planned = len(r.Points) * int(plan.LeastRepetitions(spec.Repetitions, len(r.Points))+spec.AdditionalRepetitions)
	r.AdditionalRepetitions = int(spec.AdditionalRepetitions)
	if t := exp.Status.StartTime; t != nil {
		r.Started = t.UTC()
	}
	if t := exp.Status.CompletionTime; t != nil {
		done := t.UTC()
		r.Completed = &done
	}
	for _, m := range spec.Measurements {
		r.Measurements = append(r.Measurements, MeasurementColumn(m))
	}
	r.Figures = FiguresOf(spec)
	r.Fidelity = whatRanOf(exp.Spec, systems, lines)
	r.Look = lookOf(spec.Repetitions, r.Points, lines, r.Completed != nil)
	r.Claims = JudgeAt(exp.Spec, r.Fidelity, r.Points, lines, r.Capacities, r.Look, r.Completed != nil)
	r.Reported, r.LeftOut = reported(spec.Reported)
	return r
}

// furtherMetrics are the metrics that points have only because the source reports them.
func furtherMetrics(spec v1alpha1.ExperimentSpec) []string {
	var series []string
	for _, s := range spec.Reported {
		series = append(series, s.Metric)
	}
	return stats.Further(series)
}

// SpecSHA256 identifies what was run: the hash of the spec as JSON, without suspend, priority,
// budget, debug, flame graphs and additional repetitions, which may change.
func SpecSHA256(spec v1alpha1.ExperimentSpec) string {
	spec.Suspend, spec.Priority, spec.AdditionalRepetitions, spec.Budget, spec.Debug = false, 0, 0, nil, nil
	spec.Faults = fault.WithoutFlameGraphs(spec.Faults)
	b, err := json.Marshal(spec)
	if err != nil {
		panic(fmt.Sprintf("report: a spec that came as JSON cannot be written as JSON: %v", err))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func source(s *v1alpha1.Source) map[string]string {
	if s == nil {
		return nil
	}
	m := map[string]string{"title": s.Title}
	if s.Section != "" {
		m["section"] = s.Section
	}
	if s.URL != "" {
		m["url"] = s.URL
	}
	return m
}

// everyPoint adds the points without a trial, so that the table does not look complete. The last
// axis moves fastest, as in a plan.
func everyPoint(axes []results.Axis, run []results.PointResult) []results.PointResult {
	total := 1
	for _, a := range axes {
		total *= len(a.Values)
	}
	points := make([]results.PointResult, total)
	for i := range points {
		coordinates := map[string]string{}
		rest := i
		for k := len(axes) - 1; k >= 0; k-- {
			n := len(axes[k].Values)
			coordinates[axes[k].Name] = axes[k].Values[rest%n]
			rest /= n
		}
		points[i] = results.PointResult{Index: int32(i), Coordinates: coordinates, Metrics: map[string]results.Aggregate{}}
	}
	for _, p := range run {
		if int(p.Index) < total {
			points[p.Index] = p
			continue
		}
		points = append(points, p)
	}
	return points
}

// triedAlone leaves out the loads that a search has not tried: most of them never get a trial.
func triedAlone(axes []results.Axis, searched string, points []results.PointResult) ([]results.Axis, []results.PointResult) {
	axes = slices.Clone(axes)
	for i := range axes {
		if axes[i].Name != searched {
			continue
		}
		axes[i].Values = slices.DeleteFunc(slices.Clone(axes[i].Values), func(v string) bool {
			return !slices.ContainsFunc(points, func(p results.PointResult) bool { return p.Coordinates[searched] == v })
		})
	}
	return axes, points
}

// Judge evaluates the claims of a spec as it is written, with the profile that it uses, in the
// order of the spec. A claim that the profile skips gets the profile's reason instead. f says what
// ran.
func Judge(spec v1alpha1.ExperimentSpec, f *results.Fidelity, points []results.PointResult, lines []results.TrialLine, capacities []results.Capacity) []results.ClaimResult {
	return JudgeAt(spec, f, points, lines, capacities, nil, true)
}

// JudgeAt is Judge at one of several looks; nil: there is only one. The argument complete says that
// no trials follow.
func JudgeAt(spec v1alpha1.ExperimentSpec, f *results.Fidelity, points []results.PointResult, lines []results.TrialLine, capacities []results.Capacity, look *results.Look, complete bool) []results.ClaimResult {
	applied := plan.ApplyProfile(spec)
	list := applied.Claims
	var judged []results.ClaimResult
	if look == nil {
		judged = claims.EvaluateWith(list, points, lines, capacities, applied.Reported...)
		claims.AddAnalyses(list, points, lines, judged, applied.Reported...)
	} else {
		judged = judgeAtLook(applied, points, lines, *look, complete)
	}
	fidelity.Say(spec, f, judged)
	caveatImported(judged, lines)
	return judged
}

// reported turns the paper's curves into numbers. A value that is not a number is left out and
// named.
func reported(series []v1alpha1.ReportedSeries) (out []results.ReportedSeries, leftOut []string) {
	for _, s := range series {
		r := results.ReportedSeries{Name: s.Name, Metric: s.Metric, Unit: s.Unit, Axis: s.Axis, Note: s.Note, Measurement: s.Measurement}
		if s.Correction != "" {
			x, err := strconv.ParseFloat(s.Correction, 64)
			if err != nil || !(x > 0) {
				leftOut = append(leftOut, fmt.Sprintf("reported series %s: its correction %q is no number above 0", s.Name, s.Correction))
				continue
			}
			r.Correction = x
		}
		for axis, value := range s.At {
			if r.At == nil {
				r.At = map[string]string{}
			}
			r.At[axis] = value.String()
		}
		for _, v := range s.Values {
			y, err := strconv.ParseFloat(v.Y.String(), 64)
			if err != nil {
				leftOut = append(leftOut, fmt.Sprintf("reported series %s at %s=%s: %q is not a number", s.Name, s.Axis, v.X, v.Y))
				continue
			}
			r.X = append(r.X, v.X.String())
			r.Y = append(r.Y, y)
		}
		out = append(out, r)
	}
	return out, leftOut
}

// Fit encodes results so that they fit, for a ConfigMap. Lines that do not fit are left out in this
// order and named in LeftOut: the lines of trials that succeeded, then all lines. Both are in the
// ConfigMaps of the trials; verdicts and aggregates always stay. It fails when not even they fit.
func Fit(e results.Experiment, fits func(encoded []byte) bool) ([]byte, error) {
	size := 0
	for _, drop := range []struct {
		what string
		keep func(results.TrialLine) bool
	}{
		{"", func(results.TrialLine) bool { return true }},
		{withoutSucceeded, func(l results.TrialLine) bool { return l.Outcome != stats.Succeeded }},
		{withoutLines, func(results.TrialLine) bool { return false }},
	} {
		smaller := e
		smaller.Trials = slices.DeleteFunc(slices.Clone(e.Trials), func(l results.TrialLine) bool { return !drop.keep(l) })
		if drop.what != "" {
			smaller.LeftOut = append(slices.Clone(e.LeftOut), drop.what)
		}
		b, err := results.EncodeExperiment(smaller)
		if err != nil {
			return nil, err
		}
		if fits(b) {
			return b, nil
		}
		size = len(b)
	}
	return nil, fmt.Errorf("the results of experiment %s take %d bytes even without its trials, and do not fit: plan fewer points or measurements", e.Name, size)
}
