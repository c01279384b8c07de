package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Recurrence has an experiment run again and again, for a history of its metrics. The experiment
// itself has no trials then. At each due time it makes another Experiment, a run, with the rest of
// its spec and the Systems as they are then. A run's name is the experiment's with the due time in
// UTC, as nightly-2611270300. Each run has trials, results, a report and a bundle of its own.
// docs/guide/history.md.
type Recurrence struct {
	// cron says when runs are due, in the five fields of cron: minute, hour, day of the month,
	// month, day of the week, as "0 3 * * 1-5". Where both kinds of days are restricted, either is
	// enough. @hourly, @daily, @weekly, @monthly and @yearly are short forms. At most one run is
	// due in an hour, so that the minute is one number. At most 100 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	Cron string `json:"cron"`

	// timeZone of cron, by its name in the IANA database, as Europe/Berlin. A run that is due in
	// the hour that summer time skips is left out; where an hour comes twice, the run is due in
	// both. Default: UTC, which has no such hours.
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`

	// startWithin is how late a run may be made if no manager ran at its due time. The manager
	// skips a due time that lies further back. It also skips all but the last of several due times.
	// From 1m to 24h. Default: 1h.
	// +optional
	// +kubebuilder:default="1h"
	StartWithin Duration `json:"startWithin,omitempty"`

	// keep is how many runs that are over stay in the cluster as Experiments with their Trials. The
	// oldest are deleted once their results are stored. Results stay, as those of any Experiment
	// that is deleted. From 1 to 1000. Default: 30.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Keep int32 `json:"keep,omitempty"`
}

// ZoneOrDefault returns timeZone, or its default. A spec that did not come from an API server lacks
// the default.
func (r *Recurrence) ZoneOrDefault() string { return cmp.Or(r.TimeZone, "UTC") }

// StartWithinOrDefault returns startWithin, or its default.
func (r *Recurrence) StartWithinOrDefault() Duration { return cmp.Or(r.StartWithin, "1h") }

// KeepOrDefault returns keep, or its default.
func (r *Recurrence) KeepOrDefault() int { return int(cmp.Or(r.Keep, 30)) }

// RecurrenceStatus counts the runs of an experiment that recurs.
type RecurrenceStatus struct {
	// lastDueTime is the last due time for which the manager made a run or skipped it. Absent: no
	// due time has come yet.
	// +optional
	LastDueTime *metav1.Time `json:"lastDueTime,omitempty"`

	// nextDueTime is when the next run is due. Absent: the experiment is not accepted.
	// +optional
	NextDueTime *metav1.Time `json:"nextDueTime,omitempty"`

	// runs is how many runs were made.
	// +optional
	Runs int32 `json:"runs,omitempty"`

	// lastRun is the name of the Experiment that was made last.
	// +optional
	// +kubebuilder:validation:MaxLength=24
	LastRun string `json:"lastRun,omitempty"`

	// skipped is how many due times had no run.
	// +optional
	Skipped int32 `json:"skipped,omitempty"`

	// lastSkipped is the last due time that had no run, and why. Absent: none was skipped.
	// +optional
	LastSkipped *SkippedRun `json:"lastSkipped,omitempty"`
}

// SkippedRun is a due time at which no run was made.
type SkippedRun struct {
	// dueTime that was skipped.
	DueTime metav1.Time `json:"dueTime"`

	// reason: StillGoing, Suspended, Missed, NotAccepted or NameTaken.
	// +kubebuilder:validation:MaxLength=32
	Reason string `json:"reason"`

	// message says more: it names the run that goes on.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// Reasons for which a due time is skipped.
const (
	// SkippedStillGoing: an earlier run is not over. There is one at a time.
	SkippedStillGoing = "StillGoing"
	// SkippedSuspended: spec.suspend was set.
	SkippedSuspended = "Suspended"
	// SkippedMissed: no manager ran until startWithin had passed, or a later run was due.
	SkippedMissed = "Missed"
	// SkippedNotAccepted: the spec and its Systems did not fit together.
	SkippedNotAccepted = "NotAccepted"
	// SkippedNameTaken: another Experiment has the name of the run.
	SkippedNameTaken = "NameTaken"
)

// MaxRecurringName is how long the name of an experiment that recurs may be: its runs append a dash
// and ten digits, and an Experiment's name has 24 characters at most.
const MaxRecurringName = 13
