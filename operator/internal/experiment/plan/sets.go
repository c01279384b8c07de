package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Sets of nodes are blocks. All trials of repetition r, at any point, run on set r mod k of k sets,
// in the order of round r. So as many rounds run at once as there are sets, and within a round
// points are compared by trials on the same nodes. A difference between sets does not show up as a
// difference between points.
//
//	set a:  round 0 | round 2 | round 4
//	set b:  round 1 | round 3 | round 5
//
// If trials of one round ran on several sets, that round would compare machines, too.

// AtOnce returns how many trials run at the same time.
func (p *Plan) AtOnce() int { return p.Spec.Placement.AtOnce() }

// setOf returns the number of the set for a repetition.
func (p *Plan) setOf(repetition int32) int { return int(repetition) % p.AtOnce() }

// SetOf returns the name of the set of nodes for a repetition. Empty: there are no sets.
func (p *Plan) SetOf(repetition int32) string {
	_, name := p.Spec.Placement.On(p.setOf(repetition))
	return name
}

// On returns a point's trial on one of the sets of nodes.
func (p *Plan) On(point, set int) v1alpha1.TrialSpec {
	t := *p.Points[point].Template.DeepCopy()
	if len(p.Spec.Placement.Sets) == 0 {
		return t
	}
	on, name := p.Spec.Placement.On(set)
	t.NodeSet, t.Placement.Replicas, t.Placement.Clients = name, on.Replicas, on.Clients
	t.Placement.Components = slices.DeleteFunc(on.Components, func(c v1alpha1.ComponentPool) bool {
		return !slices.ContainsFunc(t.Topology.Components, func(has v1alpha1.ComponentRegions) bool { return has.Name == c.Name })
	})
	return t
}

// busy returns the sets of nodes that have a trial.
func (o observation) busy(p *Plan) map[int]bool {
	busy := map[int]bool{}
	for _, t := range o.active {
		busy[p.setOf(t.Repetition)] = true
	}
	return busy
}

// checkSets checks that no node is in two sets, and refuses settings that need trials one by one.
func (e *fieldChecker) checkSets() {
	p := e.spec.Placement
	if len(p.Sets) == 0 {
		return
	}
	path := e.origin.placement()
	at := path.Child("sets")
	for _, own := range [][2]string{{"replicas", p.Replicas}, {"clients", p.Clients}} {
		if own[1] != "" {
			e.add(field.Invalid(path.Child(own[0]), own[1], "sets have pools of their own; remove it"))
		}
	}
	if len(p.Components) > 0 {
		e.add(field.Forbidden(path.Child("components"), "sets have pools of their own; move these to each of them"))
	}
	if !p.IsExclusive() {
		e.add(field.Invalid(path.Child("exclusive"), false, "trials on sets measure at the same time, each alone on its nodes; remove it"))
	}
	if len(p.Sets) < 2 {
		e.add(field.Invalid(at, fmt.Sprintf("%d set", len(p.Sets)), "must be two sets or more; one is replicas and clients"))
	}
	if i := slices.IndexFunc(e.spec.Sweep, func(a v1alpha1.Axis) bool { return a.Search != nil }); i >= 0 {
		e.add(field.Invalid(at, fmt.Sprintf("%d sets", len(p.Sets)), fmt.Sprintf(
			"the search along %s chooses each load by the trial before it, so that its trials run one at a time; name one set, as replicas and clients", e.spec.Sweep[i].Axis)))
	}
	names, pools := map[string]bool{}, map[string]string{}
	for i := range p.Sets {
		s := &p.Sets[i]
		if names[s.Name] {
			e.add(field.Duplicate(at.Index(i).Child("name"), s.Name))
		}
		names[s.Name] = true
		e.checkSet(at.Index(i), s, pools)
	}
}

// checkSet checks one set. pools are the pools of the earlier sets.
func (e *fieldChecker) checkSet(at *field.Path, s *v1alpha1.NodeSet, pools map[string]string) {
	take := func(at *field.Path, pool string) {
		switch other, taken := pools[pool]; {
		case pool == "":
			e.add(field.Required(at, "a set without a pool is any node, and so overlaps all others"))
		case taken && other != s.Name:
			e.add(field.Invalid(at, pool, fmt.Sprintf("set %s has this pool, and no node may be in two sets; name another pool", other)))
		default:
			pools[pool] = s.Name
		}
	}
	take(at.Child("replicas"), s.Replicas)
	take(at.Child("clients"), s.Clients)
	for k, c := range s.Components {
		take(at.Child("components").Index(k).Child("pool"), c.Pool)
	}
}

// unevenSets warns of a last round that leaves sets idle.
func (e *expansion) unevenSets() []string {
	k, n := e.spec.Placement.AtOnce(), int(LeastRepetitions(e.spec.Repetitions, len(e.points))+e.spec.AdditionalRepetitions)
	if n%k == 0 {
		return nil
	}
	return []string{fmt.Sprintf("spec.repetitions: %d repetitions do not fill %d sets of nodes (spec.placement.sets), each of which runs whole repetitions: %s idle in the end. %d take no longer",
		n, k, few(k-n%k), n+k-n%k)}
}

// few writes a number of sets, with the verb.
func few(n int) string {
	if n == 1 {
		return "1 set is"
	}
	return fmt.Sprintf("%d sets are", n)
}
