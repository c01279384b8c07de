package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Step is the next step of an experiment, and its reason.
type Step struct {
	// Create is the trial to create, or nil.
	Create *v1alpha1.TrialSpec
	// Done is true when no further trial will run.
	Done bool
	// Reason of the experiment's condition Complete: TrialsRunning, Suspended, AllTrialsValid,
	// RetriesExhausted or BudgetExhausted.
	Reason string
	// Message is a sentence for users. It stays the same while nothing happens.
	Message string
	// Counts of the trials by outcome.
	Counts v1alpha1.TrialCounts
	// Disturbed is how much of disturbances.retryFor the disturbed trials took.
	Disturbed time.Duration
	// NodeTime is how long finished trials held nodes, summed over the nodes.
	NodeTime time.Duration
	// Budget says whether the experiment is within spec.budget.
	Budget Affordable
	// Withdraw names trials in the queue for which it is too late.
	Withdraw []string
}

// Outcome returns the outcome of a trial: ReasonSucceeded, ReasonInvalid or ReasonFailed when it is
// complete, otherwise ReasonInProgress.
func Outcome(t *v1alpha1.Trial) string {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialComplete)
	if c == nil || c.Status != metav1.ConditionTrue {
		return v1alpha1.ReasonInProgress
	}
	switch c.Reason {
	case v1alpha1.ReasonSucceeded, v1alpha1.ReasonInvalid:
		return c.Reason
	}
	return v1alpha1.ReasonFailed
}

// Next decides from the existing trials. It creates at most one trial, and none on a set of nodes
// with an active trial. trials must be those of this experiment, in any order.
func Next(p *Plan, seed int64, trials []v1alpha1.Trial) Step { return NextFrom(p, seed, trials, 0) }

// NextFrom is Next for an experiment whose numbers below first are taken, by deleted trials whose
// results still exist.
func NextFrom(p *Plan, seed int64, trials []v1alpha1.Trial, first int32) Step {
	for i := range trials {
		first = max(first, trials[i].Spec.Number+1)
	}
	measuring, others := Split(trials)
	o := observe(measuring)
	o.trials, o.next = trials, first // the budget pays for all trials
	return p.thenFlameGraphs(nextMeasuring(p, seed, o), seed, o, others)
}

// nextMeasuring is NextFrom for the trials that may count.
func nextMeasuring(p *Plan, seed int64, o observation) Step {
	if p.Search != nil {
		return nextOfSearch(p, seed, o)
	}
	points := o.progresses(p)
	each, planned := wanted(points)
	o.counts.Planned = planned
	step := Step{Counts: o.counts, Disturbed: o.lost, NodeTime: o.nodeTime(p)}
	slot, open := nextSlot(p, rounds(p, seed, each), o)
	resolved := o.resolved(each)
	step.Budget, step.Withdraw = o.afford(p, slot.Point, open), o.withdrawn(p)
	switch {
	case o.counts.Active > 0 && (!open || p.Spec.Suspend || step.Budget.over()):
		step.Reason = v1alpha1.ReasonTrialsRunning
		step.Message = runs(p, o.active, resolved, planned) + o.disturbances(p) + mayFollow(p, points)
	case !open && resolved == planned:
		step.Done, step.Reason = true, v1alpha1.ReasonAllTrialsValid
		step.Message = fmt.Sprintf("All %d trials of %d points are valid.", planned, len(p.Points)) + whyEnough(p, points)
	case !open:
		step.Done, step.Reason = true, v1alpha1.ReasonRetriesExhausted
		step.Message = fmt.Sprintf("%d of %d trials are valid.", resolved, planned) + o.exhausted(p, each) + whyEnough(p, points)
	case step.Budget.over():
		step.Done, step.Reason = true, v1alpha1.ReasonBudgetExhausted
		step.Message = fmt.Sprintf("%d of %d trials are valid, and are judged. ", resolved, planned) + step.Budget.Message
	case p.Spec.Suspend:
		step.Reason = v1alpha1.ReasonSuspended
		step.Message = fmt.Sprintf("No trial is started while spec.suspend is true; %d of %d trials are valid.", resolved, planned)
	default:
		step.Reason = v1alpha1.ReasonTrialsRunning
		step.Create = newTrial(p, seed, slot, o)
		step.Message = runs(p, append(o.active, step.Create), resolved, planned) + o.disturbances(p) + mayFollow(p, points)
	}
	return step
}

// runs describes the running trials. The sentence is the same before and after a trial has been
// created, so that it is written once.
func runs(p *Plan, active []*v1alpha1.TrialSpec, resolved, planned int32) string {
	valid := fmt.Sprintf(" %d of %d trials are valid.", resolved, planned)
	if t := active[0]; p.AtOnce() == 1 {
		return fmt.Sprintf("Trial %d runs: point %d, repetition %d, attempt %d.", t.Number, t.Point.Index, t.Repetition, t.Attempt) + valid
	}
	var each []string
	for _, t := range active {
		each = append(each, fmt.Sprintf("trial %d on %s (point %d, repetition %d, attempt %d)", t.Number, t.NodeSet, t.Point.Index, t.Repetition, t.Attempt))
	}
	return "These run: " + strings.Join(each, ", ") + "." + valid
}

// observation has the facts that follow from the trials.
type observation struct {
	counts   v1alpha1.TrialCounts
	active   []*v1alpha1.TrialSpec    // in the order of their numbers
	attempts map[Slot]int32           // used so far, successful or not
	spent    map[Slot]int32           // those of them that failed because of the system
	latest   map[Slot]*v1alpha1.Trial // the latest attempt
	lost     time.Duration            // time that disturbed trials took
	valid    map[Slot]*v1alpha1.Trial // if there are several, the first
	// alike has, by set of nodes, the last of several trials that failed in the same way.
	alike  map[string]*v1alpha1.Trial
	next   int32            // number of the next trial
	trials []v1alpha1.Trial // all of them
}

func observe(trials []v1alpha1.Trial) observation {
	o := observation{trials: trials, attempts: map[Slot]int32{}, spent: map[Slot]int32{}, latest: map[Slot]*v1alpha1.Trial{}, valid: map[Slot]*v1alpha1.Trial{}}
	o.alike = alikeOnSets(trials)
	for i := range trials {
		t := &trials[i]
		slot := Slot{Point: t.Spec.Point.Index, Repetition: t.Spec.Repetition}
		o.attempts[slot] = max(o.attempts[slot], t.Spec.Attempt+1)
		o.charge(slot, t)
		switch Outcome(t) {
		case v1alpha1.ReasonSucceeded:
			o.counts.Succeeded++
			if first := o.valid[slot]; first == nil || t.Spec.Number < first.Spec.Number {
				o.valid[slot] = t
			}
		case v1alpha1.ReasonInvalid:
			o.counts.Invalid++
		case v1alpha1.ReasonFailed:
			o.counts.Failed++
		default:
			o.counts.Active++
			o.active = append(o.active, &t.Spec)
		}
	}
	slices.SortFunc(o.active, func(a, b *v1alpha1.TrialSpec) int { return cmp.Compare(a.Number, b.Number) })
	return o
}

// resolved counts the slots of the plan that have a valid trial, if point i gets each[i]
// repetitions.
func (o observation) resolved(each []int32) int32 {
	n := int32(0)
	for slot := range o.valid {
		if int(slot.Point) < len(each) && slot.Repetition < each[slot.Point] {
			n++
		}
	}
	return n
}

// nextSlot looks in the first round with an open slot. It returns the first slot with the fewest
// attempts. A slot is not open if its set of nodes has a trial.
func nextSlot(p *Plan, rounds [][]Slot, o observation) (slot Slot, open bool) {
	busy := o.busy(p)
	for _, round := range rounds {
		for _, s := range round {
			if busy[p.setOf(s.Repetition)] || o.valid[s] != nil || o.givenUp(p, s) != "" {
				continue
			}
			if !open || o.attempts[s] < o.attempts[slot] {
				slot, open = s, true
			}
		}
		if open {
			return slot, true
		}
	}
	return Slot{}, false
}

// newTrial completes a point's template.
func newTrial(p *Plan, seed int64, slot Slot, o observation) *v1alpha1.TrialSpec {
	t := new(p.On(int(slot.Point), p.setOf(slot.Repetition)))
	t.Number = o.next
	t.Repetition = slot.Repetition
	t.Attempt = o.attempts[slot]
	t.Seed = TrialSeed(seed, slot.Point, slot.Repetition, t.Attempt)
	return t
}
