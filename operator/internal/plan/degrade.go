package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/netem"
	"assay.dev/assay/operator/internal/network"
)

// checkDegrades refuses what no link can be made: a fault that is confirmed must have done what it says, not the part of it that is possible. Links are those that
// the point asks for, and those of other faults that may be in force at the same instant.
func (e *expansion) checkDegrades(trial *v1alpha1.TrialSpec) {
	var regions []string
	for _, region := range slices.Concat(populated(trial.Topology), trial.Clients.Regions) {
		if !slices.Contains(regions, region) {
			regions = append(regions, region)
		}
	}
	asked, err := network.Resolve(trial.Network, regions)
	if err != nil {
		return // told of where the network is resolved
	}
	all := make([]degraded, len(trial.Faults))
	for i := range trial.Faults {
		all[i] = degradedBy(trial, &trial.Faults[i])
	}
	for i, f := range all {
		if len(f.touched) == 0 {
			continue
		}
		index := slices.IndexFunc(e.spec.Faults, func(g v1alpha1.Fault) bool { return g.Name == trial.Faults[i].Name })
		path := e.faultPath(index).Child("degrade")
		for _, d := range f.touched {
			e.checkWorse(path, trial.Faults[i].Degrade, d, asked[d], sum(asked[d], f.worse), "")
			if link, others := together(trial, all, i, d, asked[d]); len(others) > 0 {
				e.checkWorse(path, trial.Faults[i].Degrade, d, asked[d], link, " together with fault "+strings.Join(others, ", "))
			}
		}
		slower := slices.ContainsFunc(f.touched, func(d network.Direction) bool { l := asked[d]; return f.worse.Rate < l.RateOrDefault() })
		if f.worse.Rate != 0 && !slower {
			e.add(field.Invalid(path.Child("rate"), trial.Faults[i].Degrade.Rate, fmt.Sprintf(
				"no link that it is for is faster than that, so that it changes nothing; a link that asks for no rate has %dMbit", netem.DefaultRate/1_000_000)))
		}
	}
}

// checkWorse checks what a link becomes.
func (e *expansion) checkWorse(path *field.Path, d *v1alpha1.Degrade, where network.Direction, asked, worse netem.Link, with string) {
	name := where.From + " to " + where.To
	if where.From == where.To {
		name = "within " + where.From
	}
	switch {
	case worse.Delay > netem.MaxDelay:
		e.add(field.Invalid(path.Child("delay"), effectText(d.LinkEffect, "delay"), fmt.Sprintf(
			"the link %s, which is asked to have %v, would have %v%s; at most %v are possible", name, asked.Delay, worse.Delay, with, netem.MaxDelay)))
	case worse.Jitter > worse.Delay:
		e.add(field.Invalid(path.Child("jitter"), effectText(d.LinkEffect, "jitter"), fmt.Sprintf(
			"the link %s would have a jitter of %v%s, but a delay of %v only, and no packet can be quicker than at once; "+
				"add at least as much delay as jitter, or choose links with more delay", name, worse.Jitter, with, worse.Delay)))
	case worse.Delay+worse.Jitter > netem.MaxDelay:
		e.add(field.Invalid(path.Child("jitter"), effectText(d.LinkEffect, "jitter"), fmt.Sprintf(
			"the link %s would have a delay of %v and a jitter of %v%s; at most %v are possible together", name, worse.Delay, worse.Jitter, with, netem.MaxDelay)))
	}
}

// sum is what a link would have to be, possible or not.
func sum(asked, worse netem.Link) netem.Link {
	return netem.Link{Delay: asked.Delay + worse.Delay, Jitter: asked.Jitter + worse.Jitter}
}

// together is what a link would have to be while all faults are in force that may be when fault i begins, and which those others are. Of intervals of which every two
// overlap, the one that begins last begins within all others: to look at beginnings is enough.
func together(trial *v1alpha1.TrialSpec, all []degraded, i int, d network.Direction, asked netem.Link) (link netem.Link, others []string) {
	begins, _ := span(trial.Faults[i])
	link = asked
	for j := range trial.Faults {
		if from, to := span(trial.Faults[j]); j != i && (begins < from || begins >= to) {
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

// degraded is what a fault adds to links, and which ones it may touch. None: it adds nothing, or what is wrong with it is told elsewhere.
type degraded struct {
	worse   netem.Link
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
	everyone := everyone(trial)
	chosen := func(t *v1alpha1.Target) ends {
		if t == nil {
			return everyone
		}
		return endsOf(targets(*t, trial.Topology), trial.Topology)
	}
	if d.Target != nil {
		pods := chosen(d.Target)
		return degraded{worse, slices.Concat(directions(pods, everyone), directions(everyone, pods))}
	}
	return degraded{worse, directions(chosen(d.From), chosen(d.To))}
}

// ends are pods by their region. A client's pod is in shard -1.
type ends map[string][]placed

func endsOf(replicas map[placed]bool, topology v1alpha1.Topology) ends {
	found := ends{}
	base := int32(0)
	for _, region := range topology.Regions {
		for p := range replicas {
			if p.replica >= base && p.replica < base+region.Replicas {
				found[region.Name] = append(found[region.Name], p)
			}
		}
		base += region.Replicas
	}
	return found
}

// everyone is every pod, placed as when the trial is laid out: client pods are in their regions in turn.
func everyone(trial *v1alpha1.TrialSpec) ends {
	all := endsOf(targets(v1alpha1.Target{}, trial.Topology), trial.Topology)
	for i := range min(trial.Clients.Nodes, trial.Clients.Count) {
		region := trial.Clients.Regions[int(i)%len(trial.Clients.Regions)]
		all[region] = append(all[region], placed{-1, i})
	}
	return all
}

// directions lists the links between two sets of pods: no pod has one with itself.
func directions(from, to ends) []network.Direction {
	var found []network.Direction
	for _, a := range slices.Sorted(maps.Keys(from)) {
		for _, b := range slices.Sorted(maps.Keys(to)) {
			if len(from[a]) > 1 || len(to[b]) > 1 || from[a][0] != to[b][0] {
				found = append(found, network.Direction{From: a, To: b})
			}
		}
	}
	return found
}
