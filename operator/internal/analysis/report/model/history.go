package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// History has the metrics of experiments from run to run.
type History struct {
	// Runs in their order.
	Runs []HistoryRun `json:"runs"`
	// Metrics with a value in some run: those with regressions first, the largest first, then those
	// with other changes.
	Metrics []HistoryMetric `json:"metrics"`
	// Level is the probability of any false change, if runs are exchangeable where nothing changed.
	Level float64 `json:"level"`
	// DriftP is the probability that runs are so like their neighbours by chance. Drifts: DriftP is
	// at most Level, so that the machines may have changed, and no change counts as a regression.
	DriftP float64 `json:"driftP"`
	Drifts bool    `json:"drifts,omitempty"`
	// Baseline that the numbers were divided by, as AXIS=VALUE; empty: none.
	Baseline string `json:"baseline,omitempty"`
	// Notes say what was left out.
	Notes []string `json:"notes,omitempty"`
}

// HistoryRun is one run of an experiment.
type HistoryRun struct {
	Experiment string    `json:"experiment"`
	Profile    string    `json:"profile,omitempty"`
	UID        string    `json:"uid,omitempty"`
	Started    time.Time `json:"started"`
	// From is the file or name that the run was read from, and Version what was measured: versions
	// of programs, else the digests of images.
	From    string `json:"from"`
	Version string `json:"version,omitempty"`
}

// HistoryMetric is one metric at one point of an experiment.
type HistoryMetric struct {
	Experiment string `json:"experiment"`
	Profile    string `json:"profile,omitempty"`
	Point      string `json:"point,omitempty"`
	Metric     string `json:"metric"`
	Unit       string `json:"unit,omitempty"`
	// Better is higher or lower. Empty: it is unknown which is better.
	Better string `json:"better,omitempty"`
	// Values of the runs that have the metric, in their order: means over the trials of a run.
	Values []HistoryValue `json:"values"`
	// Changes of the level, in the order of the runs.
	Changes []HistoryChange `json:"changes,omitempty"`
}

// HistoryValue is a metric in one run, by its place in Runs.
type HistoryValue struct {
	Run  int     `json:"run"`
	Mean float64 `json:"mean"`
	N    int     `json:"n"`
	// Low and High are the 95% interval over the trials of the run, where it has several.
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
}

// HistoryChange is a change of a metric's level. Ratio is the new level divided by the old one.
type HistoryChange struct {
	// At is the first run of the new level, and Last the last of the old one, by their places.
	At     int     `json:"at"`
	Last   int     `json:"last"`
	P      float64 `json:"p"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	// RunsBefore and RunsAfter are how many runs the two levels have.
	RunsBefore int               `json:"runsBefore"`
	RunsAfter  int               `json:"runsAfter"`
	Ratio      *results.Interval `json:"ratio,omitempty"`
	// Kind is Regression, Improvement or Change.
	Kind string `json:"kind"`
}

// Kinds of changes.
const (
	Regression  = "Regression"
	Improvement = "Improvement"
	OtherChange = "Change"
)

// Historic is a run that a history is made of.
type Historic struct {
	From    string
	Results results.Experiment
}

// HistoryOptions say how a history is made.
type HistoryOptions struct {
	// AsGiven keeps the order of the runs; else they are in the order in which they started.
	AsGiven bool
	// Baseline is AXIS=VALUE: the numbers of each run are divided by those of the same run at this
	// value. Empty: they are not divided.
	Baseline string
}

// historyLevel is the probability of any false change in a history.
const historyLevel = 0.05

// historyDraws is how many orders of the runs are drawn: a P of 5% has a standard error of 0.5
// points.
const historyDraws = 1999

// NewHistory puts runs into their order and finds the changes of all metrics (stats.FindShifts).
// Runs of other experiments and profiles are other series. A run that is not complete counts with
// the trials that it has.
func NewHistory(runs []Historic, o HistoryOptions) (History, error) {
	h := History{Level: historyLevel, Baseline: o.Baseline}
	runs = slices.Clone(runs)
	if !o.AsGiven {
		slices.SortStableFunc(runs, func(a, b Historic) int { return a.Results.Started.Compare(b.Results.Started) })
	}
	all := map[string]*HistoryMetric{}
	for i, r := range runs {
		h.Runs = append(h.Runs, HistoryRun{
			Experiment: r.Results.HistoryName(), Profile: r.Results.Profile, UID: r.Results.UID, Started: r.Results.Started.UTC(), From: r.From, Version: versionOf(r.Results),
		})
		values, err := historyValues(r.Results, o.Baseline)
		if err != nil {
			return History{}, fmt.Errorf("%s: %w", r.From, err)
		}
		for _, v := range values {
			key := strings.Join([]string{v.Experiment, v.Profile, v.Point, v.Metric}, "\x00")
			if all[key] == nil {
				all[key] = &HistoryMetric{Experiment: v.Experiment, Profile: v.Profile, Point: v.Point, Metric: v.Metric, Unit: v.Unit, Better: v.Better}
			}
			v.Values[0].Run = i
			all[key].Values = append(all[key].Values, v.Values[0])
		}
	}
	keys := slices.Sorted(maps.Keys(all))
	for _, key := range keys {
		h.Metrics = append(h.Metrics, *all[key])
	}
	if err := h.find(); err != nil {
		return History{}, err
	}
	slices.SortStableFunc(h.Metrics, func(a, b HistoryMetric) int { return cmp.Compare(b.worst(), a.worst()) })
	h.note()
	return h, nil
}

// find looks for changes in all metrics together.
func (h *History) find() error {
	series := make([]stats.RunSeries, len(h.Metrics))
	for i, m := range h.Metrics {
		for _, v := range m.Values {
			series[i].Values, series[i].Runs = append(series[i].Values, v.Mean), append(series[i].Runs, v.Run)
		}
	}
	// The same runs give the same page.
	found, err := stats.FindShifts(series, h.Level, historyDraws, rand.New(rand.NewPCG(1, uint64(len(h.Runs))))) // #nosec G404 -- no secret
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	h.DriftP, h.Drifts = found.DriftP, found.DriftP <= h.Level
	for i, shifts := range found.Of {
		m := &h.Metrics[i]
		for _, s := range shifts {
			c := HistoryChange{At: m.Values[s.At].Run, Last: m.Values[s.At-1].Run, P: s.P, Before: s.Before.Mean, After: s.After.Mean, RunsBefore: s.Before.N, RunsAfter: s.After.N, Kind: OtherChange}
			if s.HasRatio {
				c.Ratio = &results.Interval{Value: s.Ratio.Value}
				if s.Ratio.Known {
					c.Ratio.Low, c.Ratio.High = &s.Ratio.Low, &s.Ratio.High
				}
			}
			if m.Better != "" && !h.Drifts {
				c.Kind = Improvement
				if (s.After.Mean < s.Before.Mean) == (m.Better == "higher") {
					c.Kind = Regression
				}
			}
			m.Changes = append(m.Changes, c)
		}
	}
	return nil
}

func (h *History) note() {
	counts := map[string]int{}
	for _, r := range h.Runs {
		counts[r.Experiment+"\x00"+r.Profile]++
	}
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		name, profile, _ := strings.Cut(key, "\x00")
		if n := counts[key]; n < stats.LeastRuns {
			h.Notes = append(h.Notes, fmt.Sprintf("%s: %d runs. Changes are looked for in %d and more.", HistoryName(name, profile), n, stats.LeastRuns))
		}
	}
	if h.Drifts {
		h.Notes = append(h.Notes, fmt.Sprintf("Runs are like their neighbours (P %s): the machines may drift. A change may be theirs, so that none counts as a regression. Numbers by a baseline of the same run are free of it (--baseline).", HistoryPText(h.DriftP)))
	}
}

// HistoryName names an experiment with its profile.
func HistoryName(experiment, profile string) string {
	if profile != "" {
		return experiment + " (" + profile + ")"
	}
	return experiment
}

// Undecided says that no experiment has enough runs for a change.
func (h History) Undecided() bool {
	return !slices.ContainsFunc(h.Metrics, func(m HistoryMetric) bool { return len(m.Values) >= stats.LeastRuns })
}

// Regressions are the metrics whose last change is a regression.
func (h History) Regressions() []HistoryMetric {
	var all []HistoryMetric
	for _, m := range h.Metrics {
		if n := len(m.Changes); n > 0 && m.Changes[n-1].Kind == Regression {
			all = append(all, m)
		}
	}
	return all
}

// worst orders metrics: first by the factor of the greatest regression, then metrics with other
// changes. 0: there is no change.
func (m HistoryMetric) worst() float64 {
	most := 0.0
	for _, c := range m.Changes {
		most = max(most, 1e-9)
		if c.Kind == Regression {
			most = max(most, c.factor())
		}
	}
	return most
}

// factor is how many times worse or better a change is, above 1.
func (c HistoryChange) factor() float64 {
	if c.Ratio == nil || c.Ratio.Value <= 0 {
		return math.MaxFloat64 // from 0 or to it
	}
	return max(c.Ratio.Value, 1/c.Ratio.Value)
}

// better is the direction in which a metric is better.
func better(metric string) string {
	switch {
	case metric == stats.Throughput, metric == stats.PerCorrectClientThroughput, metric == capacityMetric:
		return "higher"
	case strings.HasSuffix(metric, "Latency"), metric == stats.AbortRate:
		return "lower"
	}
	return ""
}

// capacityMetric is the outcome of a search.
const capacityMetric = "capacity"

// historyValues are the metrics of one run, each with one value.
func historyValues(e results.Experiment, baseline string) ([]HistoryMetric, error) {
	axis, value, found := strings.Cut(baseline, "=")
	if baseline != "" {
		if !found || axis == "" || value == "" {
			return nil, fmt.Errorf("the baseline %q is not AXIS=VALUE, such as system=kv-old", baseline)
		}
		if !slices.ContainsFunc(e.Axes, func(a results.Axis) bool { return a.Name == axis && slices.Contains(a.Values, value) }) {
			return nil, fmt.Errorf("the baseline %s is at no point; the axes are %s", baseline, axesInWords(e))
		}
	}
	var all []HistoryMetric
	for _, p := range e.Points {
		if baseline != "" && p.Coordinates[axis] == value {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(p.Metrics)) {
			a := p.Metrics[name]
			v := HistoryValue{Mean: a.Mean, N: a.N}
			unit := historyUnit(e, name)
			if a.N > 1 {
				v.Low, v.High = &a.Low, &a.High
			}
			if baseline != "" {
				base, ok := baseOf(e, p, axis, value).Metrics[name]
				if !ok || base.Mean == 0 {
					continue
				}
				v = byBaseline(a, base)
				unit = "of " + baseline
			}
			all = append(all, HistoryMetric{Experiment: e.HistoryName(), Profile: e.Profile, Point: At(e.Axes, p.Coordinates), Metric: name, Unit: unit, Better: better(name), Values: []HistoryValue{v}})
		}
	}
	for _, c := range e.Capacities {
		if c.Capacity != nil && baseline == "" {
			all = append(all, HistoryMetric{Experiment: e.HistoryName(), Profile: e.Profile, Point: At(e.Axes, c.At), Metric: capacityMetric, Unit: c.Axis, Better: better(capacityMetric),
				Values: []HistoryValue{{Mean: *c.Capacity, N: c.Trials, Low: c.Low, High: c.High}}})
		}
	}
	return all, nil
}

func axesInWords(e results.Experiment) string {
	var all []string
	for _, a := range e.Axes {
		all = append(all, a.Name+" ("+strings.Join(a.Values, ", ")+")")
	}
	return strings.Join(all, ", ")
}

// byBaseline is a number as a multiple of the baseline's number.
func byBaseline(a, base results.Aggregate) HistoryValue {
	v := HistoryValue{Mean: a.Mean / base.Mean, N: min(a.N, base.N)}
	if r, err := stats.Ratio(a, base); err == nil && r.Known {
		v.Low, v.High = &r.Low, &r.High
	}
	return v
}

// baseOf is the point that differs from another in the value of one axis alone.
func baseOf(e results.Experiment, p results.PointResult, axis, value string) results.PointResult {
	for _, q := range e.Points {
		same := q.Coordinates[axis] == value
		for name, v := range p.Coordinates {
			same = same && (name == axis || q.Coordinates[name] == v)
		}
		if same {
			return q
		}
	}
	return results.PointResult{}
}

// historyUnit of a metric of an experiment.
func historyUnit(e results.Experiment, metric string) string {
	for _, m := range e.Measurements {
		if m.Name == metric {
			return m.Unit
		}
	}
	switch {
	case metric == stats.Throughput, metric == stats.PerCorrectClientThroughput:
		return "tx/s"
	case strings.HasSuffix(metric, "Latency"):
		return "ms"
	}
	return ""
}

// versionOf names what was measured: the versions of the programs, else the digests of images.
func versionOf(e results.Experiment) string {
	var all []string
	if e.Fidelity != nil {
		for _, s := range e.Fidelity.Systems {
			if s.Version != "" {
				all = append(all, strings.TrimSpace(s.Program+" "+s.Version))
			}
		}
	}
	if len(all) > 0 || e.Provenance == nil {
		return strings.Join(all, ", ")
	}
	for _, part := range slices.Sorted(maps.Keys(e.Provenance.Images)) {
		if part == partAgent {
			continue
		}
		for _, image := range e.Provenance.Images[part] {
			_, digest, found := strings.Cut(image, "sha256:")
			if short := "image " + digest[:min(12, len(digest))]; found && !slices.Contains(all, short) {
				all = append(all, short)
			}
		}
	}
	return strings.Join(all, ", ")
}

// errNoRuns is the error of a history without runs.
var errNoRuns = errors.New("there are no runs")

// HistoryJSON is a history for programs.
func HistoryJSON(h History) ([]byte, error) {
	if len(h.Runs) == 0 {
		return nil, errNoRuns
	}
	text, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the history: %w", err)
	}
	return append(text, '\n'), nil
}
