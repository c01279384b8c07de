package plan

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
)

// mostNodeHours is the greatest spec.budget.nodeHours, so that it can be counted in nanoseconds.
const mostNodeHours = 1000000

// Affordable says whether an experiment is within its budget.
type Affordable struct {
	// Reason of the condition WithinBudget: WithinBudget, NodeHoursExhausted or DeadlineReached.
	// Empty: there is no budget.
	Reason string
	// Message is a sentence for users.
	Message string
	// Again is when to look again, since the answer then changes with time alone. Zero: never.
	Again time.Time
}

// over reports whether the next trial exceeds the budget.
func (a Affordable) over() bool { return a.Reason != "" && a.Reason != v1alpha1.ReasonWithinBudget }

// nodeTime returns how long finished trials have held nodes, summed over the nodes.
func (o observation) nodeTime(p *Plan) time.Duration {
	all := time.Duration(0)
	for i := range o.trials {
		if t := &o.trials[i]; Outcome(t) != v1alpha1.ReasonInProgress {
			all += time.Duration(o.nodesOf(p, t)) * held(t)
		}
	}
	return all
}

// held returns how long a finished trial held its nodes, with the time for inspection.
func held(t *v1alpha1.Trial) time.Duration {
	from, to := t.Status.Times.Admitted, t.Status.Times.Done
	if from == nil || to == nil {
		return 0
	}
	return max(0, to.Sub(from.Time))
}

// nodesOf returns the number of nodes of a trial. For a trial that was given up before its pods
// were placed, it returns the expected number.
func (o observation) nodesOf(p *Plan, t *v1alpha1.Trial) int32 {
	if t.Status.Nodes > 0 {
		return t.Status.Nodes
	}
	return o.expectedNodes(p, t.Spec.Point.Index)
}

// expectedNodes returns the number of nodes for the next trial of a point: the most that a trial of
// the point has had, or else a trial of any point. Before the first trial, it is one node for each
// pod.
func (o observation) expectedNodes(p *Plan, point int32) int32 {
	same, most := int32(0), int32(0)
	for i := range o.trials {
		t := &o.trials[i]
		most = max(most, t.Status.Nodes)
		if t.Spec.Point.Index == point {
			same = max(same, t.Status.Nodes)
		}
	}
	switch {
	case same > 0:
		return same
	case most > 0:
		return most
	case int(point) < len(p.Points):
		return int32(podsOf(p.Points[point]))
	}
	return 0
}

// expectedTime returns how long the next trial will take: as long as the longest valid trial, but
// at least its schedule.
func (o observation) expectedTime(p *Plan, point int32) time.Duration {
	longest := time.Duration(0)
	if int(point) < len(p.Points) {
		s := p.Points[point].Template.Schedule
		longest = s.WarmUp.OrZero() + s.Measure.OrZero() + s.CoolDown.OrZero()
	}
	for i := range o.trials {
		if t := &o.trials[i]; Outcome(t) == v1alpha1.ReasonSucceeded {
			longest = max(longest, held(t))
		}
	}
	return longest
}

// afford compares the budget with the present trials and, if open is true, one more trial of a
// point.
func (o observation) afford(p *Plan, point int32, open bool) Affordable {
	b := p.Spec.Budget
	if b == nil {
		return Affordable{}
	}
	a := Affordable{Reason: v1alpha1.ReasonWithinBudget, Message: o.paid(p), Again: o.withdrawnAt(p)}
	if !open {
		return a
	}
	lasts := o.expectedTime(p, point)
	if b.Until != nil && !p.At.IsZero() {
		latest := b.Until.Add(-lasts)
		if a.Again.IsZero() || latest.Before(a.Again) {
			a.Again = latest
		}
		if p.At.After(latest) {
			return Affordable{Reason: v1alpha1.ReasonDeadlineReached, Message: fmt.Sprintf(
				"The next trial takes about %s, and would not be over at spec.budget.until, %s.", lasts.Round(time.Second), b.Until.UTC().Format(time.RFC3339))}
		}
	}
	if b.NodeHours == nil {
		return a
	}
	spent, next := o.nodeTime(p), time.Duration(o.expectedNodes(p, point))*lasts
	for i := range o.trials { // add the expected cost of running trials
		if t := &o.trials[i]; Outcome(t) == v1alpha1.ReasonInProgress {
			spent += time.Duration(o.nodesOf(p, t)) * o.expectedTime(p, t.Spec.Point.Index)
		}
	}
	if spent+next > nodeHours(b) {
		return Affordable{Reason: v1alpha1.ReasonNodeHoursExhausted, Message: fmt.Sprintf(
			"The next trial takes about %s node-hours, and of the %s of spec.budget.nodeHours %s are used.", Hours(next), b.NodeHours, Hours(spent))}
	}
	return a
}

// paid says how much trials have used so far.
func (o observation) paid(p *Plan) string {
	text := fmt.Sprintf("Trials have taken %s node-hours", Hours(o.nodeTime(p)))
	if q := p.Spec.Budget.NodeHours; q != nil {
		text += fmt.Sprintf(" of %s", q)
	}
	if u := p.Spec.Budget.Until; u != nil {
		text += ", and may run until " + u.UTC().Format(time.RFC3339)
	}
	return text + "."
}

// withdrawn returns the trials in the queue that would end too late if they started now.
func (o observation) withdrawn(p *Plan) (names []string) {
	if p.Spec.Budget == nil || p.Spec.Budget.Until == nil || p.At.IsZero() {
		return nil
	}
	for i := range o.trials {
		t := &o.trials[i]
		if Outcome(t) == v1alpha1.ReasonInProgress && t.Status.Times.Admitted == nil && t.DeletionTimestamp.IsZero() &&
			p.At.Add(o.expectedTime(p, t.Spec.Point.Index)).After(p.Spec.Budget.Until.Time) {
			names = append(names, t.Name)
		}
	}
	return names
}

// withdrawnAt returns when the first trial in the queue will be withdrawn. Zero: never.
func (o observation) withdrawnAt(p *Plan) (at time.Time) {
	if p.Spec.Budget == nil || p.Spec.Budget.Until == nil || p.At.IsZero() {
		return at
	}
	for i := range o.trials {
		t := &o.trials[i]
		if Outcome(t) != v1alpha1.ReasonInProgress || t.Status.Times.Admitted != nil {
			continue
		}
		if latest := p.Spec.Budget.Until.Add(-o.expectedTime(p, t.Spec.Point.Index)); at.IsZero() || latest.Before(at) {
			at = latest
		}
	}
	return at
}

// nodeHours returns the node-hours of a budget that has them.
func nodeHours(b *v1alpha1.Budget) time.Duration {
	return time.Duration(b.NodeHours.AsApproximateFloat64() * float64(time.Hour))
}

// Hours writes a time in hours, with three digits.
func Hours(d time.Duration) string {
	h := d.Hours()
	if h >= 100 {
		return strconv.FormatFloat(math.Round(h), 'f', -1, 64)
	}
	return strconv.FormatFloat(h, 'g', 3, 64)
}

// checkBudget checks the bounds of spec.budget.
func checkBudget(b *v1alpha1.Budget) (errs field.ErrorList) {
	path := field.NewPath("spec", "budget")
	switch {
	case b == nil:
		return nil
	case b.NodeHours == nil && b.Until == nil:
		return field.ErrorList{field.Required(path, "has nodeHours or until, or both")}
	}
	if q := b.NodeHours; q != nil && (q.Sign() <= 0 || q.AsApproximateFloat64() > mostNodeHours) {
		errs = append(errs, field.Invalid(path.Child("nodeHours"), q.String(), fmt.Sprintf("must be above 0 and at most %d: hours for which trials may hold nodes, as in 12", mostNodeHours)))
	}
	return errs
}
