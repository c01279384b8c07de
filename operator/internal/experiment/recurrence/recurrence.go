// Package recurrence decides when an experiment that recurs has its runs. It is pure: the caller
// passes the instant and the existing runs.
//
// Due times are those of a cron expression in a time zone. A look at an instant finds the due times
// since the last decided one:
//
//	decided      missed      missed      last one      now
//	----|-----------|-----------|------------|----------|----> time
//	                                         |-----| startWithin
//
// Only the last one may still have a run, and only within startWithin. It has none if an earlier
// run goes on, if the experiment is suspended, or if it is not accepted. Each due time is decided
// on once, so none has two runs: the name of a run states its due time.
package recurrence

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // images have no time zone database

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Schedule says when runs are due.
type Schedule struct {
	due         *cron.SpecSchedule
	startWithin time.Duration
	within      v1alpha1.Duration // the same as text
	keep        int
}

// bounds of startWithin.
const leastWithin, mostWithin = time.Minute, 24 * time.Hour

// New reads a recurrence. Each error names its field and the correct form.
func New(path *field.Path, r *v1alpha1.Recurrence) (*Schedule, field.ErrorList) {
	var errs field.ErrorList
	s := &Schedule{keep: r.KeepOrDefault(), within: r.StartWithinOrDefault()}
	zone, err := location(r.ZoneOrDefault())
	if err != nil {
		errs = append(errs, field.Invalid(path.Child("timeZone"), r.TimeZone, err.Error()))
	}
	if s.due, err = parse(r.Cron, zone); err != nil {
		errs = append(errs, field.Invalid(path.Child("cron"), r.Cron, err.Error()))
	}
	if s.startWithin, err = s.within.Parse(); err != nil || s.startWithin < leastWithin || s.startWithin > mostWithin {
		errs = append(errs, field.Invalid(path.Child("startWithin"), string(s.within), "must be a duration from 1m to 24h"))
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return s, nil
}

func location(name string) (*time.Location, error) {
	if name == "Local" { // each machine may have another local zone
		return nil, errors.New("must be a name of the IANA database, as Europe/Berlin or UTC")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, errors.New("must be a name of the IANA database, as Europe/Berlin or UTC, in just these letters")
	}
	return zone, nil
}

// parse reads the five fields or a short form. It is stricter than the library, which accepts
// intervals without fixed due times (@every), and zones in the text.
func parse(text string, zone *time.Location) (*cron.SpecSchedule, error) {
	const fields = "must be five fields: minute, hour, day of the month, month, day of the week, as \"0 3 * * *\""
	switch {
	case strings.Contains(text, "TZ="):
		return nil, fmt.Errorf("%s; name the zone in timeZone", fields)
	case strings.HasPrefix(text, "@every"):
		return nil, fmt.Errorf("%s, or @hourly, @daily, @weekly, @monthly, @yearly; @every has no fixed due times", fields)
	}
	parsed, err := cron.ParseStandard(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", fields, err)
	}
	due, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, errors.New(fields)
	}
	const minutes = 1<<60 - 1
	if n := bits.OnesCount64(due.Minute & minutes); n != 1 {
		return nil, fmt.Errorf("its first field names %d minutes of an hour; name one, since at most one run may be due in an hour", n)
	}
	if due.Location = zone; zone == nil {
		due.Location = time.UTC
	}
	if due.Next(time.Unix(0, 0)).IsZero() {
		return nil, errors.New("no day is like that; a due time must come within five years")
	}
	return due, nil
}

// Coming returns the next due times after an instant, at most n, in the schedule's zone.
func (s *Schedule) Coming(after time.Time, n int) (times []time.Time) {
	for at := s.due.Next(after); len(times) < n && !at.IsZero(); at = s.due.Next(at) {
		times = append(times, at.In(s.due.Location))
	}
	return times
}

// Run is an existing run.
type Run struct {
	Name string
	// Going: the run has trials left, or may have.
	Going bool
	// Disposable: deleting the run's Experiment loses nothing.
	Disposable bool
}

// State is the input of a decision.
type State struct {
	// Name of the experiment that recurs.
	Name string
	Now  time.Time
	// Since is the last due time that was decided on, or when the experiment was made.
	Since     time.Time
	Suspended bool
	// Refused is why the experiment is not accepted. Empty: it is accepted.
	Refused string
	// Runs are the existing runs.
	Runs []Run
}

// Step is the decision.
type Step struct {
	// Due is the due time that the decision is about. Zero: none has come.
	Due time.Time
	// Create is the name of the run to make for Due. Empty: no run is made, for Reason.
	Create string
	// Missed is how many earlier due times have no run.
	Missed          int
	Reason, Message string
	// Next due time.
	Next time.Time
	// Delete are the runs to delete, the oldest first.
	Delete []string
}

// RunName is the name of the run of a due time.
func RunName(experiment string, due time.Time) string {
	return experiment + "-" + due.UTC().Format("0601021504")
}

// Next makes the decision.
func (s *Schedule) Next(at State) Step {
	step := Step{Delete: s.surplus(at.Runs)}
	step.Next = s.due.Next(at.Since)
	for !step.Next.IsZero() && !step.Next.After(at.Now) {
		if !step.Due.IsZero() {
			step.Missed++
		}
		step.Due, step.Next = step.Next, s.due.Next(step.Next)
	}
	if !step.Due.IsZero() {
		s.decide(&step, at)
	}
	return step
}

func (s *Schedule) decide(step *Step, at State) {
	name := RunName(at.Name, step.Due)
	going := slices.IndexFunc(at.Runs, func(r Run) bool { return r.Going })
	switch {
	case slices.ContainsFunc(at.Runs, func(r Run) bool { return r.Name == name }):
		step.Create = name // the run was made, but the status was not written
	case at.Suspended:
		step.Reason, step.Message = v1alpha1.SkippedSuspended, "The experiment is suspended."
	case at.Refused != "":
		step.Reason, step.Message = v1alpha1.SkippedNotAccepted, at.Refused
	case going >= 0:
		step.Reason, step.Message = v1alpha1.SkippedStillGoing, fmt.Sprintf("Run %s is not over.", at.Runs[going].Name)
	case at.Now.Sub(step.Due) > s.startWithin:
		step.Reason, step.Message = v1alpha1.SkippedMissed, fmt.Sprintf("No run could be made within %s of it.", s.within)
	default:
		step.Create = name
	}
}

// surplus returns the runs beyond the number to keep. Names are in the order of due times.
func (s *Schedule) surplus(runs []Run) (names []string) {
	for _, r := range runs {
		if r.Disposable {
			names = append(names, r.Name)
		}
	}
	slices.Sort(names)
	return names[:max(0, len(names)-s.keep)]
}
