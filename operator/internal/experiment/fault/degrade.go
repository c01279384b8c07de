package fault

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/network"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
)

// degrade makes links worse.
type degrade struct {
	always
	d *v1alpha1.Degrade
}

func init() {
	add("degrade", func(f *v1alpha1.Fault) kind {
		if f.Degrade == nil {
			return nil
		}
		return degrade{d: f.Degrade}
	})
}

func (k degrade) targets() []*v1alpha1.Target {
	return []*v1alpha1.Target{k.d.Target, k.d.From, k.d.To}
}

func (k degrade) begin(salt string, cast Cast) ([]timeline.Action, error) {
	d := k.d
	worse, err := network.Effect(d.LinkEffect)
	if err != nil {
		return nil, err
	}
	everyone := append(cast.ServerPods(), cast.ClientPods()...)
	choose := func(t *v1alpha1.Target, part string) []string {
		if t == nil {
			return everyone
		}
		return cast.Choose(*t, salt+"/"+part, nil)
	}
	l := newLinks()
	if d.Target != nil {
		pods := choose(d.Target, "target")
		l.add(pods, everyone)
		l.add(everyone, pods)
	} else {
		l.add(choose(d.From, "from"), choose(d.To, "to"))
	}
	var acts []timeline.Action
	for _, pod := range l.order {
		a := timeline.Action{Pod: pod, Kind: timeline.Degrade}
		for _, peer := range l.out[pod] {
			a.Links = append(a.Links, timeline.LinkChange{Peer: peer, Side: shaping.Egress, Worse: worse})
		}
		for _, peer := range l.in[pod] {
			a.Links = append(a.Links, timeline.LinkChange{Peer: peer, Side: shaping.Ingress, Worse: worse})
		}
		acts = append(acts, a)
	}
	return acts, nil
}

func (e *checker) checkDegrade(path *field.Path, c targetCheck, d v1alpha1.Degrade) {
	if (d.Target != nil) == (d.From != nil || d.To != nil) {
		e.add(field.Invalid(path, "", "set either target (all links of these replicas, both ways), or from or to or both (one direction)"))
		return
	}
	link, err := network.Effect(d.LinkEffect)
	if err != nil {
		e.add(network.At(path, err))
	} else if link.Delay == 0 && link.Jitter == 0 && link.Loss == 0 && link.Rate == 0 {
		e.add(field.Invalid(path, "", "changes nothing: set at least one of delay, jitter, loss, rate"))
	}
	for _, part := range []struct {
		name   string
		target *v1alpha1.Target
	}{{"target", d.Target}, {"from", d.From}, {"to", d.To}} {
		if part.target != nil {
			c.path = path.Child(part.name)
			e.checkTarget(c, *part.target)
		}
	}
}

func (k degrade) check(e *checker, path *field.Path, c targetCheck) map[placement.Place]bool {
	if e.Trial.Network.Shaping == v1alpha1.ShapingNone {
		e.add(field.Forbidden(path.Child("degrade"), unshaped))
	}
	e.checkDegrade(path.Child("degrade"), c, *k.d)
	return nil
}
