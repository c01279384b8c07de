package fault

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/network"
	"assay.dev/assay/operator/internal/model/shaping"
)

// checkDegrades refuses settings that no link can have. Otherwise a confirmed fault might have done
// only the possible part of its settings. Links have the settings of the point, and those of other
// faults that may be in force at the same instant.
func (e *checker) checkDegrades() {
	trial := e.Trial
	var regions []string
	for _, region := range slices.Concat(placement.ServerRegions(trial.Topology), trial.Clients.Regions) {
		if !slices.Contains(regions, region) {
			regions = append(regions, region)
		}
	}
	asked, err := network.Resolve(trial.Network, regions)
	if err != nil {
		return // another check of the network reports it
	}
	all := make([]degraded, len(trial.Faults))
	for i := range trial.Faults {
		all[i] = degradedBy(trial, &trial.Faults[i])
	}
	for i, f := range all {
		if len(f.touched) == 0 {
			continue
		}
		path := e.Path(trial.Faults[i].Name).Child("degrade")
		for _, d := range f.touched {
			e.checkWorse(path, trial.Faults[i].Degrade, d, asked[d], sum(asked[d], f.worse), "")
			if link, others := together(trial, all, i, d, asked[d]); len(others) > 0 {
				e.checkWorse(path, trial.Faults[i].Degrade, d, asked[d], link, " together with fault "+strings.Join(others, ", "))
			}
		}
		slower := slices.ContainsFunc(f.touched, func(d network.Direction) bool { l := asked[d]; return f.worse.Rate < l.RateOrDefault() })
		if f.worse.Rate != 0 && !slower {
			e.add(field.Invalid(path.Child("rate"), trial.Faults[i].Degrade.Rate, fmt.Sprintf(
				"no link that it is for is faster than that, so that it changes nothing; a link that asks for no rate has %dMbit", shaping.DefaultRate/1_000_000)))
		}
	}
}

// checkWorse checks the settings that a link would get.
func (e *checker) checkWorse(path *field.Path, d *v1alpha1.Degrade, where network.Direction, asked, worse shaping.Link, with string) {
	name := where.From + " to " + where.To
	if where.From == where.To {
		name = "within " + where.From
	}
	switch {
	case worse.Delay > shaping.MaxDelay:
		e.add(field.Invalid(path.Child("delay"), network.Written(d.LinkEffect, "delay"), fmt.Sprintf(
			"the link %s, which is asked to have %v, would have %v%s; at most %v are possible", name, asked.Delay, worse.Delay, with, shaping.MaxDelay)))
	case worse.Jitter > worse.Delay:
		e.add(field.Invalid(path.Child("jitter"), network.Written(d.LinkEffect, "jitter"), fmt.Sprintf(
			"the link %s would have a jitter of %v%s, but a delay of %v only, and no packet can be quicker than at once; "+
				"add at least as much delay as jitter, or choose links with more delay", name, worse.Jitter, with, worse.Delay)))
	case worse.Delay+worse.Jitter > shaping.MaxDelay:
		e.add(field.Invalid(path.Child("jitter"), network.Written(d.LinkEffect, "jitter"), fmt.Sprintf(
			"the link %s would have a delay of %v and a jitter of %v%s; at most %v are possible together", name, worse.Delay, worse.Jitter, with, shaping.MaxDelay)))
	}
}

// sum adds the settings of a link and of a fault, possible or not.
func sum(asked, worse shaping.Link) shaping.Link {
	return shaping.Link{Delay: asked.Delay + worse.Delay, Jitter: asked.Jitter + worse.Jitter}
}

// together returns the settings of a link with all the faults that may be in force when fault i
// begins, and the names of the other faults. It is enough to look at beginnings: of intervals that
// all overlap, the last to begin begins within all others.
func together(trial *v1alpha1.TrialSpec, all []degraded, i int, d network.Direction, asked shaping.Link) (link shaping.Link, others []string) {
	begins, _ := span(trial.Faults[i])
	link = asked
	for j := range trial.Faults {
		if from, to := span(trial.Faults[j]); j != i && (begins < from || begins >= to || !sameOrigin(trial.Faults[i], trial.Faults[j])) {
			continue
		}
		if !slices.Contains(all[j].touched, d) {
			continue
		}
		link = sum(link, all[j].worse)
		if j != i {
			others = append(others, trial.Faults[j].Name)
		}
	}
	return link, others
}

// degraded is the effect of a fault on links, and the links that it may change. It is empty if the
// fault has no such effect, or if another check reports a mistake in it.
type degraded struct {
	worse   shaping.Link
	touched []network.Direction
}

func degradedBy(trial *v1alpha1.TrialSpec, f *v1alpha1.Fault) degraded {
	d := f.Degrade
	if d == nil || (d.Target != nil) == (d.From != nil || d.To != nil) {
		return degraded{}
	}
	worse, err := network.Effect(d.LinkEffect)
	if err != nil {
		return degraded{}
	}
	everyone := placement.Everyone(trial)
	chosen := func(t *v1alpha1.Target) placement.Ends {
		if t == nil {
			return everyone
		}
		return placement.EndsOf(placement.Targets(*t, trial.Topology), trial.Topology)
	}
	if d.Target != nil {
		pods := chosen(d.Target)
		return degraded{worse, slices.Concat(placement.Directions(pods, everyone), placement.Directions(everyone, pods))}
	}
	return degraded{worse, placement.Directions(chosen(d.From), chosen(d.To))}
}
