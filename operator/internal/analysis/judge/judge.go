// Package judge makes points, verdicts and reports of trials that are over, by a spec of today. It
// needs no cluster. The trials' own results stay as they are: a change of claims does not change a
// measurement.
package judge

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/experiment/measured"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/seal"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/text/buildinfo"
)

// Ran is what a run left.
type Ran struct {
	Results results.Experiment
	Trials  []results.Trial
	// Spec that the trials ran under.
	Spec v1alpha1.ExperimentSpec
	// Before is the last judgement of the run, with its ClaimsSHA256. Nil: the run was never judged
	// anew.
	Before *results.Judged
}

// Today has the files by which trials are judged.
type Today struct {
	// Experiment with the profile of the run.
	Experiment *v1alpha1.Experiment
	// Systems that it runs, by name, with the programs that they hold.
	Systems map[string]v1alpha1.SystemSpec
	// File that it was read from, for the reader of a report.
	File string
}

// RefusedError says why trials are not of an experiment.
type RefusedError struct {
	Experiment string
	// Differences in words, one for each field.
	Differences []string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the trials are not of experiment %s as the file has it; judge them by the file that they ran under, or run them again:\n  %s",
		e.Experiment, strings.Join(e.Differences, "\n  "))
}

// Again judges the trials of a run by today's claims. It returns the spec of the trials with
// today's claims, and with today's other fields for verdicts and reports.
func Again(ran Ran, today Today, now time.Time) (results.Experiment, v1alpha1.ExperimentSpec, error) {
	exp := today.Experiment
	if exp.Name != ran.Results.Name {
		return results.Experiment{}, v1alpha1.ExperimentSpec{}, &RefusedError{exp.Name, []string{"the trials are of experiment " + ran.Results.Name}}
	}
	d, err := Compare(ran.Spec, exp.Spec)
	if err != nil {
		return results.Experiment{}, v1alpha1.ExperimentSpec{}, err
	}
	changed := changedMeasurements(ran.Spec, exp.Spec)
	if refused := slices.Concat(d.Refused, changed); len(refused) > 0 {
		return results.Experiment{}, v1alpha1.ExperimentSpec{}, &RefusedError{exp.Name, refused}
	}
	spec := merge(ran.Spec, exp.Spec)
	lines, notes := linesOf(ran, spec)
	e := model.Build(object(ran.Results, spec), today.Systems, ran.Results.Axes, lines, now)
	keep(&e, ran.Results)
	if e.Seal, err = sealed(ran.Results.Seal, spec); err != nil {
		return results.Experiment{}, v1alpha1.ExperimentSpec{}, err
	}
	e.Judged = &results.Judged{
		At: now.UTC(), By: buildinfo.Version(), File: today.File, SpecSHA256: model.SpecSHA256(exp.Spec), ClaimsSHA256: seal.Of(spec), Differences: d.Said, Notes: notes,
	}
	count(e.Judged, ran, spec)
	return e, spec, nil
}

// sealed is the seal of a run, with the differences of another spec from it.
func sealed(kept *results.Seal, spec v1alpha1.ExperimentSpec) (*results.Seal, error) {
	if kept == nil || kept.Sealed == nil {
		return kept, nil
	}
	out := *kept
	var err error
	out.Changes, err = seal.Since(kept.Sealed, spec)
	return &out, err
}

// count says how often the run was judged anew, this time included. The same file again does not
// count twice.
func count(j *results.Judged, ran Ran, spec v1alpha1.ExperimentSpec) {
	claims := seal.Of(ran.Spec)
	if s := ran.Results.Seal; s != nil {
		claims = s.SHA256
	}
	j.Times = 1
	if before := ran.Before; before != nil {
		j.Times, j.OtherClaims = max(before.Times, 1), before.OtherClaims
		if before.SpecSHA256 != j.SpecSHA256 {
			j.Times++
		}
		claims = before.ClaimsSHA256
	}
	if !seal.Is(claims, spec) {
		j.OtherClaims++
	}
}

// object is the Experiment as a cluster would have it.
func object(e results.Experiment, spec v1alpha1.ExperimentSpec) *v1alpha1.Experiment {
	exp := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Name: e.Name, UID: types.UID(e.UID)}, Spec: spec}
	exp.Status.Seed = e.Seed
	if !e.Started.IsZero() {
		exp.Status.StartTime = &metav1.Time{Time: e.Started}
	}
	if e.Completed != nil {
		exp.Status.CompletionTime = &metav1.Time{Time: *e.Completed}
	}
	return exp
}

// keep copies the fields about the course of the run, without its judgement.
func keep(e *results.Experiment, ran results.Experiment) {
	e.SpecSHA256, e.Written, e.Planned = ran.SpecSHA256, ran.Written, ran.Planned
	e.AdditionalRepetitions, e.Stopped, e.NotMeasuring = ran.AdditionalRepetitions, ran.Stopped, ran.NotMeasuring
	for _, l := range ran.LeftOut {
		if !slices.Contains(e.LeftOut, l) && !model.SaysOfLines(l) {
			e.LeftOut = append(e.LeftOut, l)
		}
	}
	for i := range e.Capacities { // lines do not know that a search was given up
		c := &e.Capacities[i]
		if i < len(ran.Capacities) && ran.Capacities[i].Outcome == string(v1alpha1.CapacityGivenUp) && c.Outcome == string(v1alpha1.CapacitySearching) {
			c.Outcome = string(v1alpha1.CapacityGivenUp)
		}
	}
}

// merge is the spec that trials ran under with the fields of another that verdicts are made from.
//
// In an old bundle, the profile is already applied to the spec, so that the full evaluation is
// unknown. Then today's file gives the full evaluation, and its profile gets all fields that ran.
// So the same trials are judged, and the changes of the profile show.
func merge(ran, today v1alpha1.ExperimentSpec) v1alpha1.ExperimentSpec {
	out := mergeAsRan(ran, today)
	i := slices.IndexFunc(today.Profiles, func(p v1alpha1.Profile) bool { return p.Name == ran.Profile })
	if ran.Profile == "" || i < 0 {
		return out
	}
	whole := *today.DeepCopy()
	whole.Seed, whole.Suspend, whole.Priority, whole.Debug, whole.AdditionalRepetitions = ran.Seed, ran.Suspend, ran.Priority, ran.Debug, ran.AdditionalRepetitions
	whole.Budget = ran.Budget
	whole.Profile = ran.Profile
	applied := plan.ApplyProfile(ran)
	p := &whole.Profiles[i]
	p.Sweep, p.Schedule, p.Repetitions, p.Topology, p.Network = applied.Sweep, &applied.Schedule, &applied.Repetitions, &applied.Topology, &applied.Network
	p.Placement, p.Faults, p.Tolerances, p.Disturbances = &applied.Placement, applied.Faults, &applied.Tolerances, &applied.Disturbances
	p.Nodes, p.ThinkTime, p.Parameters = &applied.Clients.Nodes, &applied.Clients.ThinkTime, applied.Parameters
	p.Phases = applied.Clients.Phases
	return whole
}

// mergeAsRan is the spec of the run with today's claims.
func mergeAsRan(ran, today v1alpha1.ExperimentSpec) v1alpha1.ExperimentSpec {
	out := *ran.DeepCopy()
	from := today.DeepCopy()
	out.Source, out.Claims, out.Reported, out.Figures, out.Measurements = from.Source, from.Claims, from.Reported, from.Figures, from.Measurements
	out.Profiles = nil
	for _, p := range from.Profiles {
		if was, ok := profileOf(ran, p.Name); ok && p.Name == ran.Profile {
			was.Claims, was.Doc = p.Claims, p.Doc
			p = was
		}
		out.Profiles = append(out.Profiles, p)
	}
	return out
}

func profileOf(spec v1alpha1.ExperimentSpec, name string) (v1alpha1.Profile, bool) {
	i := slices.IndexFunc(spec.Profiles, func(p v1alpha1.Profile) bool { return p.Name == name })
	if i < 0 {
		return v1alpha1.Profile{}, false
	}
	return *spec.Profiles[i].DeepCopy(), true
}

// changedMeasurements names measurements whose query is no longer that of the run: their numbers
// come from the old query. Counters are read again from the trials' results.
func changedMeasurements(ran, today v1alpha1.ExperimentSpec) []string {
	var changed []string
	for _, m := range today.Measurements {
		was, asked := measurementOf(ran, m.Name)
		was.Unit, was.Required, m.Unit, m.Required = "", false, "", false // these change no number
		if asked && m.Query != "" && !reflect.DeepEqual(was, m) {
			changed = append(changed, fmt.Sprintf("measurements[%s] asked something else in the run; give it another name", m.Name))
		}
	}
	return changed
}

func measurementOf(spec v1alpha1.ExperimentSpec, name string) (v1alpha1.Measurement, bool) {
	i := slices.IndexFunc(spec.Measurements, func(m v1alpha1.Measurement) bool { return m.Name == name })
	if i < 0 {
		return v1alpha1.Measurement{}, false
	}
	return spec.Measurements[i], true
}

// linesOf makes the lines of the trials anew from their own results. Notes name trials without
// results of their own, whose lines are taken as they are.
func linesOf(ran Ran, spec v1alpha1.ExperimentSpec) (lines []results.TrialLine, notes []string) {
	said := map[string]results.TrialLine{}
	for _, l := range ran.Results.Trials {
		said[l.Name] = l
	}
	for _, t := range results.ByRow(results.Measuring(ran.Trials)) {
		line := model.LineOf(t)
		if l, ok := said[t.Name]; ok { // what only the run's lines have
			line.ConfigMap, line.Checks, line.Datasets = l.ConfigMap, l.Checks, l.Datasets
			delete(said, t.Name)
		}
		line.Measurements = measurements(ran.Spec, spec, line.Measurements, &t)
		lines = append(lines, line)
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		line := said[name]
		line.Measurements = measurements(ran.Spec, spec, line.Measurements, nil)
		lines = append(lines, line)
	}
	if n := len(said); n > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d trials have no results of their own here: their lines are taken as they are", n, len(lines)))
	}
	return lines, notes
}

// measurements returns the measurements of a trial that today's spec asks for. They are as they
// were measured, or read again from the trial's own results. A number that Prometheus was not asked
// for in the run stays unknown.
func measurements(ran, today v1alpha1.ExperimentSpec, has []results.Measurement, trial *results.Trial) []results.Measurement {
	var out []results.Measurement
	for _, m := range plan.ApplyProfile(today).Measurements {
		i := slices.IndexFunc(has, func(r results.Measurement) bool { return r.Name == m.Name })
		was, asked := measurementOf(ran, m.Name)
		var read results.Measurement
		var of bool
		if trial != nil {
			read, of = measured.Column(m).Read(trial)
		}
		// If there was little room, the trial's results may lack it.
		left := i >= 0 && read.Value == nil && reflect.DeepEqual(was.Use, m.Use) && was.Unit == m.Unit
		switch {
		case of && !(m.Use != nil && left):
			out = append(out, read)
		case i >= 0:
			out = append(out, has[i])
		case !asked:
			out = append(out, results.Measurement{Name: m.Name, Reason: "not asked for in the run"})
		}
	}
	return out
}
