package fault

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/timeline"
)

// partition loses packets between replicas.
type partition struct {
	always
	p *v1alpha1.Partition
}

func init() {
	add("partition", func(f *v1alpha1.Fault) kind {
		if f.Partition == nil {
			return nil
		}
		return partition{p: f.Partition}
	})
}

func (k partition) begin(salt string, cast Cast) ([]timeline.Action, error) {
	return cuts(*k.p, salt, cast), nil
}

func (k partition) targets() []*v1alpha1.Target {
	all := []*v1alpha1.Target{k.p.Isolate, k.p.From, k.p.To}
	for i := range k.p.Groups {
		all = append(all, &k.p.Groups[i])
	}
	return all
}

func (k partition) setDefaults() { k.p.Clients = cmp.Or(k.p.Clients, "Everyone") }

func (k partition) flap() *v1alpha1.Flap { return k.p.Flap }

// flapOf returns how a fault comes and goes within one time of it. Nil: it does not flap.
func flapOf(f *v1alpha1.Fault) *v1alpha1.Flap {
	if k, ok := of(f).(flapping); ok {
		return k.flap()
	}
	return nil
}

// flaps divides a span into cuts. A partition that lasts to the end of the trial has cuts until the
// last request.
func flaps(flap v1alpha1.Flap, from, to, last time.Duration) []Span {
	period := flap.Period.OrZero()
	cut := period / 2
	if flap.Cut != nil {
		cut = flap.Cut.OrZero()
	}
	if to == 0 {
		to = last
	}
	var spans []Span
	for at := from; at < to && period > 0 && len(spans) <= MaxActions; at += period {
		spans = append(spans, Span{at, notZero(min(at+cut, to))})
	}
	return spans
}

// cuts loses the packets of a link at both ends. So packets that are on their way when the cut
// begins are lost, too, as on a line that is cut.
func cuts(p v1alpha1.Partition, salt string, cast Cast) []timeline.Action {
	if p.Isolate != nil && p.Isolate.Role != "" {
		return isolateRole(p, salt, cast)
	}
	l := newLinks()
	switch {
	case p.From != nil:
		l.add(cast.Choose(*p.From, salt+"/from", nil), cast.Choose(*p.To, salt+"/to", nil))
	case p.Isolate != nil:
		for _, pod := range cast.Choose(*p.Isolate, salt, nil) {
			others := cast.ServerPods()
			if p.Clients == "FirstGroup" {
				others = append(others, cast.ClientPods()...)
			}
			l.add([]string{pod}, others)
			l.add(others, []string{pod})
		}
	default:
		var groups [][]string
		var taken []string
		for i, g := range p.Groups {
			pods := cast.Choose(g, fmt.Sprintf("%s/%d", salt, i), taken)
			if taken = append(taken, pods...); i == 0 && p.Clients == "FirstGroup" {
				pods = append(pods, cast.ClientPods()...)
			}
			groups = append(groups, pods)
		}
		for i, a := range groups {
			for _, b := range groups[:i] {
				l.add(a, b)
				l.add(b, a)
			}
		}
	}
	var acts []timeline.Action
	for _, pod := range l.order {
		acts = append(acts, timeline.Action{Pod: pod, Kind: timeline.Cut, Out: l.out[pod], In: l.in[pod]})
	}
	return acts
}

// isolateRole makes a replica cut itself off if it has the role when the time comes. No other pod
// knows which replica that is.
func isolateRole(p v1alpha1.Partition, salt string, cast Cast) []timeline.Action {
	var acts []timeline.Action
	for _, pod := range cast.Choose(*p.Isolate, salt, nil) {
		others := slices.DeleteFunc(cast.ServerPods(), func(o string) bool { return o == pod })
		if p.Clients == "FirstGroup" {
			others = append(others, cast.ClientPods()...)
		}
		acts = append(acts, timeline.Action{Pod: pod, Kind: timeline.Cut, Role: p.Isolate.Role, Out: others, In: slices.Clone(others)})
	}
	return acts
}

func (e *checker) checkPartition(path *field.Path, c targetCheck, p v1alpha1.Partition) {
	if ways := count(len(p.Groups) > 0, p.Isolate != nil, p.From != nil || p.To != nil); ways != 1 || (p.From == nil) != (p.To == nil) {
		e.add(field.Invalid(path, fmt.Sprintf("%d of them", ways), "set exactly one of: groups; isolate; from and to"))
		return
	}
	switch {
	case p.Isolate != nil:
		c.path, c.roles = path.Child("isolate"), true
		e.checkTarget(c, *p.Isolate)
	case p.From != nil:
		c.path = path.Child("from")
		e.checkTarget(c, *p.From)
		c.path = path.Child("to")
		e.checkTarget(c, *p.To)
	default:
		e.checkGroups(path.Child("groups"), c, p.Groups)
	}
}

// checkGroups checks that no replica can be in two groups.
func (e *checker) checkGroups(path *field.Path, c targetCheck, groups []v1alpha1.Target) {
	c.taken, c.picks = map[placement.Place]bool{}, map[placement.Unit]int{}
	for i, g := range groups {
		c.path = path.Index(i)
		candidates, ok := e.checkTarget(c, g)
		if !ok {
			return
		}
		if g.Pick != nil {
			for _, unit := range placement.UnitsOf(g, c.topology) {
				c.picks[unit] += pickedOf(c, g)
			}
			continue
		}
		if intersect(candidates, c.taken) {
			e.add(field.Invalid(c.path, describeTarget(g), "a replica of an earlier group is in this one, too; it can be on one side only"))
			return
		}
		if len(c.picks) > 0 && slices.ContainsFunc(placement.UnitsOf(g, c.topology), func(u placement.Unit) bool { return c.picks[u] > 0 }) {
			e.add(field.Invalid(c.path, describeTarget(g), "groups that pick come last: an earlier group may pick a member of this one"))
			return
		}
		for p := range candidates {
			c.taken[p] = true
		}
	}
}

func count(set ...bool) int {
	n := 0
	for _, s := range set {
		if s {
			n++
		}
	}
	return n
}

func (k partition) check(e *checker, path *field.Path, c targetCheck) map[placement.Place]bool {
	if e.Trial.Network.Shaping == v1alpha1.ShapingNone {
		e.add(field.Forbidden(path.Child("partition"), unshaped))
	}
	e.checkPartition(path.Child("partition"), c, *k.p)
	return nil
}
