package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/recurrence"
)

// leastDisturbed is the least time that a disturbed trial takes from disturbances.retryFor. It
// bounds the number of repetitions, even if a trial has no instants.
const leastDisturbed = 10 * time.Second

// Why a repetition is given up: one of its two budgets is used up, or its last trials failed in the
// same way, so that another one would, too.
const (
	retriesUsedUp  = "retries"
	retryForUsedUp = "disturbances.retryFor"
	failsAlike     = "alike"
)

// mostAlike is how many trials in a row may be disturbed in the same way. After so many, the cause
// is no passing disturbance.
const mostAlike = 4

// passing are the reasons for disturbed machines, links or clocks. Such a disturbance passes, even
// if it happens often. All other reasons of the environment say that something broke.
var passing = map[string]bool{
	v1alpha1.ReasonNetworkLate:        true,
	v1alpha1.ReasonPacketsLost:        true,
	v1alpha1.ReasonEvicted:            true,
	v1alpha1.ReasonFaultLate:          true,
	v1alpha1.ReasonStartSpread:        true,
	v1alpha1.ReasonStartLate:          true,
	v1alpha1.ReasonCPUStolen:          true,
	v1alpha1.ReasonProcessorContended: true,
	v1alpha1.ReasonGeneratorLate:      true,
	v1alpha1.ReasonClockUncertain:     true,
	v1alpha1.ReasonClocksApart:        true,
	v1alpha1.ReasonClockStepped:       true,
}

// lasting are reasons of the environment that time alone does not cure: a user must change the
// cluster, or the System. Repetitions after them count against spec.retries. A passed deadline is
// one of them. Mostly, the awaited event would never have come, and each such trial takes minutes.
var lasting = map[string]bool{
	v1alpha1.ReasonFailed:            true,
	v1alpha1.ReasonDeadlineExceeded:  true,
	v1alpha1.ReasonNoShapingBackend:  true,
	v1alpha1.ReasonPodsForbidden:     true,
	v1alpha1.ReasonDatasetDiffers:    true,
	v1alpha1.ReasonMachineRefused:    true,
	v1alpha1.ReasonChaosMeshMissing:  true,
	v1alpha1.ReasonResultsNotStored:  true,
	v1alpha1.ReasonClientsMiscounted: true,
}

// Disturbed reports whether the environment spoilt a trial, and not the system under test, in a way
// that may pass.
func Disturbed(t *v1alpha1.Trial) bool {
	if o := Outcome(t); o != v1alpha1.ReasonInvalid && o != v1alpha1.ReasonFailed {
		return false
	}
	reason := invalidBecause(t)
	return reason != "" && v1alpha1.CausedBy(reason) == v1alpha1.CausedByEnvironment && !lasting[reason] && reason != v1alpha1.ReasonInterrupted
}

// invalidBecause returns the reason why a finished trial does not count. Empty: there is no reason.
func invalidBecause(t *v1alpha1.Trial) string {
	if valid := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialValid); valid != nil {
		return valid.Reason
	}
	return ""
}

// took returns how long a trial held its machines. It leaves out the time in which people kept the
// pods for inspection.
func took(t *v1alpha1.Trial) time.Duration {
	from, to := t.Status.Times.Admitted, t.Status.Times.Done
	if from == nil || to == nil {
		return 0
	}
	all := to.Sub(from.Time)
	if kept := t.Status.Times.Kept; kept != nil {
		all -= kept.Sub(meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialValid).LastTransitionTime.Time)
	}
	return all
}

// charge counts a trial against the budget that pays for its repetition. An interrupted trial costs
// nothing: a person ended the command that carried it out, and starts the command again.
func (o *observation) charge(slot Slot, t *v1alpha1.Trial) {
	if last := o.latest[slot]; last == nil || last.Spec.Attempt < t.Spec.Attempt {
		o.latest[slot] = t
	}
	switch {
	case Disturbed(t):
		o.counts.Disturbed++
		o.lost += max(leastDisturbed, took(t))
	case Outcome(t) != v1alpha1.ReasonInProgress && invalidBecause(t) != v1alpha1.ReasonInterrupted:
		o.spent[slot]++
	}
}

// alikeOnSets returns the result of alike for each set of nodes. One set may be broken while the
// others work.
func alikeOnSets(trials []v1alpha1.Trial) map[string]*v1alpha1.Trial {
	sets, of := map[string][]*v1alpha1.Trial{}, map[string]*v1alpha1.Trial{}
	for i := range trials {
		set := trials[i].Spec.NodeSet
		sets[set] = append(sets[set], &trials[i])
	}
	for set, own := range sets {
		if last := alike(own); last != nil {
			of[set] = last
		}
	}
	return of
}

// alike returns the last finished trial of a set of nodes, if its last mostAlike trials were
// disturbed in the same way. Otherwise it returns nil. Trials are disturbed in the same way if
// their reasons are equal, and their messages are equal except for numbers.
func alike(trials []*v1alpha1.Trial) *v1alpha1.Trial {
	var last []*v1alpha1.Trial // the last finished trials, the newest first
	for _, t := range trials {
		at, _ := slices.BinarySearchFunc(last, t, func(a, b *v1alpha1.Trial) int { return cmp.Compare(b.Spec.Number, a.Spec.Number) })
		if at < mostAlike && Outcome(t) != v1alpha1.ReasonInProgress && invalidBecause(t) != v1alpha1.ReasonInterrupted {
			last = slices.Insert(last, at, t)
			last = last[:min(len(last), mostAlike)]
		}
	}
	if len(last) < mostAlike {
		return nil
	}
	for _, t := range last {
		if !Disturbed(t) || passing[invalidBecause(t)] || manner(t) != manner(last[0]) {
			return nil
		}
	}
	return last[0]
}

// manner returns how a trial failed: its reason and message, without numbers.
func manner(t *v1alpha1.Trial) string {
	valid := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialValid)
	return valid.Reason + " " + strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, strings.ReplaceAll(valid.Message, t.Name, ""))
}

// givenUp returns why a repetition without a valid trial is not tried again, or "". The outcome of
// the latest attempt decides which budget pays. Both budgets are compared with sums over finished
// trials, not with the time. So the answer is the same whenever it is asked.
func (o observation) givenUp(p *Plan, s Slot) string {
	switch last := o.latest[s]; {
	case o.alike[p.SetOf(s.Repetition)] != nil:
		return failsAlike
	case o.spent[s] > *p.Spec.Retries:
		return retriesUsedUp
	case last != nil && Disturbed(last) && o.lost >= p.Spec.Disturbances.RetryFor.OrZero():
		return retryForUsedUp
	}
	return ""
}

// disturbances says how much time the environment has cost so far, if any.
func (o observation) disturbances(p *Plan) string {
	if o.counts.Disturbed == 0 {
		return ""
	}
	return fmt.Sprintf(" The environment disturbed %s, which took %s of the %s of spec.disturbances.retryFor.",
		several(o.counts.Disturbed, "trial"), o.lost.Round(time.Second), p.Spec.Disturbances.RetryFor)
}

// exhausted says why repetitions without a valid trial are not tried again.
func (o observation) exhausted(p *Plan, each []int32) string {
	if sets := slices.Sorted(maps.Keys(o.alike)); len(sets) > 0 {
		last, on := o.alike[sets[0]], ""
		if sets[0] != "" {
			on = " on " + sets[0]
		}
		valid := meta.FindStatusCondition(last.Status.Conditions, v1alpha1.TrialValid)
		return fmt.Sprintf(" The last %d trials%s failed in the same way, so that another one would, too. Trial %d: %s: %s",
			mostAlike, on, last.Spec.Number, valid.Reason, valid.Message)
	}
	by := map[string]int32{}
	for point, n := range each {
		for repetition := range n {
			if s := (Slot{Point: int32(point), Repetition: repetition}); o.valid[s] == nil {
				by[o.givenUp(p, s)]++
			}
		}
	}
	text := ""
	if n := by[retriesUsedUp]; n > 0 {
		text += fmt.Sprintf(" Of %s all %d attempts that count failed or were invalid (spec.retries is %d).", several(n, "repetition"), *p.Spec.Retries+1, *p.Spec.Retries)
	}
	if n := by[retryForUsedUp]; n > 0 {
		text += fmt.Sprintf(" The environment disturbed the latest trial of %s, and disturbed trials have used up spec.disturbances.retryFor, %s.",
			several(n, "repetition"), p.Spec.Disturbances.RetryFor)
	}
	return text + " See the conditions of those Trials."
}

// several counts things: "1 trial", "2 trials".
func several(n int32, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Bounds of spec.debug.keepLogs.
var (
	leastKeptLogs = resource.MustParse("1Ki")
	mostKeptLogs  = resource.MustParse("16Mi")
)

// checkDebug checks the bounds of spec.debug.
func (e *fieldChecker) checkDebug() {
	if d := e.spec.Debug; d != nil {
		_, errs := checkDuration(field.NewPath("spec", "debug", "keepFailed"), d.KeepFailed, bounds{0, 24 * time.Hour})
		e.add(errs...)
		if q := d.KeepLogs; q != nil && (q.Cmp(leastKeptLogs) < 0 || q.Cmp(mostKeptLogs) > 0) {
			e.add(field.Invalid(field.NewPath("spec", "debug", "keepLogs"), q.String(), "must be from 1Ki to 16Mi: the end of each stream of each container"))
		}
	}
}

// checkPrePull checks the bounds of spec.prePull.
func (e *fieldChecker) checkPrePull() {
	if p := e.spec.PrePull; p != nil {
		_, errs := checkDuration(field.NewPath("spec", "prePull", "timeout"), p.TimeoutOrDefault(), bounds{10 * time.Second, 24 * time.Hour})
		e.add(errs...)
	}
}

// checkRecurrence checks the schedule of runs.
func (e *fieldChecker) checkRecurrence() {
	if r := e.spec.Recurrence; r != nil {
		_, errs := recurrence.New(field.NewPath("spec", "recurrence"), r)
		e.add(errs...)
	}
}

// checkDisturbances checks the bounds of spec.disturbances.
func (e *fieldChecker) checkDisturbances() {
	path, d := e.origin.disturbances(), e.spec.Disturbances
	_, errs := checkDuration(path.Child("retryFor"), d.RetryFor, bounds{0, 24 * time.Hour})
	e.add(errs...)
	_, errs = checkDuration(path.Child("idleWait"), d.IdleWait, bounds{0, 10 * time.Minute})
	e.add(errs...)
	if share, err := d.IdleThreshold.Share(); err != nil || share > 1 {
		e.add(field.Invalid(path.Child("idleThreshold"), string(d.IdleThreshold), "must be a percentage from 0% to 100%, such as 25%"))
	}
}
