package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/network"
)

// checkFaults checks the faults of one point against its system, topology and clients.
func (e *expansion) checkFaults(s system, trial *v1alpha1.TrialSpec) {
	stopped := make([]map[placed]bool, len(trial.Faults)) // whose processes a fault stops
	behaviors := 0
	e.checkDegrades(trial)
	for i := range trial.Faults {
		f := &trial.Faults[i]
		index := slices.IndexFunc(e.spec.Faults, func(g v1alpha1.Fault) bool { return g.Name == f.Name })
		path := e.faultPath(index)
		c := targetCheck{system: s, topology: trial.Topology}
		e.checkUnshapedFault(path, trial, f)
		e.checkReplaced(path, trial, f)
		switch {
		case f.NodeKill != nil:
			c.path, c.roles = path.Child("nodeKill", "target"), true
			stopped[i], _ = e.checkTarget(c, f.NodeKill.Target)
			e.checkMachine(path, trial, f)
		case f.Pause != nil:
			c.path, c.roles = path.Child("pause", "target"), true
			stopped[i], _ = e.checkTarget(c, f.Pause.Target)
		case f.Partition != nil:
			e.checkPartition(path.Child("partition"), c, *f.Partition)
		case f.Degrade != nil:
			e.checkDegrade(path.Child("degrade"), c, *f.Degrade)
		case f.ChaosMesh != nil:
			stopped[i] = e.checkChaosMesh(path, c, trial, f)
		case f.ClientBehavior != nil:
			if behaviors++; behaviors > 1 {
				e.add(field.Invalid(path, f.Name, "another fault of the same point changes the clients' behavior already; one can"))
			}
			e.checkClientBehavior(path.Child("clientBehavior"), s, trial, f.ClientBehavior)
		}
		for j := range i {
			if overlap(trial.Faults[j], *f) && !hasRole(trial.Faults[j]) && !hasRole(*f) && intersect(stopped[j], stopped[i]) {
				e.add(field.Invalid(path, f.Name, fmt.Sprintf("stops a replica that fault %q of the same point has stopped, or may have; "+
					"let the first be over before, or choose another replica", trial.Faults[j].Name)))
			}
		}
	}
}

func hasRole(f v1alpha1.Fault) bool {
	return f.NodeKill != nil && f.NodeKill.Target.Role != "" || f.Pause != nil && f.Pause.Target.Role != ""
}

func (e *expansion) checkPartition(path *field.Path, c targetCheck, p v1alpha1.Partition) {
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
func (e *expansion) checkGroups(path *field.Path, c targetCheck, groups []v1alpha1.Target) {
	c.taken, c.picks = map[placed]bool{}, map[int32]int{}
	for i, g := range groups {
		c.path = path.Index(i)
		candidates, ok := e.checkTarget(c, g)
		if !ok {
			return
		}
		if g.Pick != nil {
			for shard := range c.topology.Shards {
				if len(g.Shards) == 0 || slices.Contains(g.Shards, shard) {
					c.picks[shard] += g.PickCount(int(c.topology.F), int(shardReplicas(c.topology)))
				}
			}
			continue
		}
		if intersect(candidates, c.taken) {
			e.add(field.Invalid(c.path, describeTarget(g), "a replica of an earlier group is in this one, too; it can be on one side only"))
			return
		}
		if len(c.picks) > 0 {
			e.add(field.Invalid(c.path, describeTarget(g), "groups that pick come last: what an earlier group picks may be in this one"))
			return
		}
		for p := range candidates {
			c.taken[p] = true
		}
	}
}

func (e *expansion) checkDegrade(path *field.Path, c targetCheck, d v1alpha1.Degrade) {
	if (d.Target != nil) == (d.From != nil || d.To != nil) {
		e.add(field.Invalid(path, "", "set either target (all links of these replicas, both ways), or from or to or both (one direction)"))
		return
	}
	link, err := network.Effect(d.LinkEffect)
	if err != nil {
		part, detail, _ := strings.Cut(err.Error(), ": ")
		e.add(field.Invalid(path.Child(part), effectText(d.LinkEffect, part), detail))
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

// effectText is what was written in a field of a link.
func effectText(e v1alpha1.LinkEffect, part string) string {
	text := func(d *v1alpha1.Duration) string {
		if d == nil {
			return ""
		}
		return string(*d)
	}
	switch part {
	case "delay":
		return text(e.Delay)
	case "jitter":
		return text(e.Jitter)
	case "loss":
		return e.Loss
	default:
		return e.Rate
	}
}

// checkClientBehavior checks the clients that behave otherwise, and puts their parameters into canonical form.
func (e *expansion) checkClientBehavior(path *field.Path, s system, trial *v1alpha1.TrialSpec, b *v1alpha1.ClientBehavior) {
	if d := s.spec.Clients.Driver; d == nil || d.Protocol == "Echo" {
		e.add(field.Invalid(path, b.Share, fmt.Sprintf(
			"System %q has clients without a driver process: what some of them do cannot be told from what the others do, nor left out of the results", s.name)))
		return
	}
	share, err := network.Share(b.Share)
	if err != nil {
		e.add(field.Invalid(path.Child("share"), b.Share, "must be more than 0% and less than 100%"))
		return
	}
	if n := int32(math.Floor(share * float64(trial.Clients.Count))); n < 1 || n >= trial.Clients.Count {
		e.add(field.Invalid(path.Child("share"), b.Share, fmt.Sprintf(
			"is %d of %d clients; at least one must behave so, and at least one must not, since only that is measured", n, trial.Clients.Count)))
	}
	for _, name := range sortedKeys(b.Parameters) {
		at := path.Child("parameters").Key(name)
		p, known := s.declared[name]
		if !known {
			e.add(field.Invalid(at, b.Parameters[name].String(), fmt.Sprintf("System %q ", s.name)+unknownName("declares no parameter", name, s.declared.names())))
			continue
		}
		canonical, err := checkValue(p, b.Parameters[name])
		if err != nil {
			e.add(field.Invalid(at, b.Parameters[name].String(), err.Error()))
			continue
		}
		b.Parameters[name] = canonical
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

// unusedFaults warns of faults that act nowhere. A profile leaves points out on purpose, so there is no warning then.
func (e *expansion) unusedFaults() []string {
	if e.origin.profile != nil {
		return nil
	}
	used := map[string]bool{}
	for _, p := range e.points {
		for _, f := range p.Template.Faults {
			used[f.Name] = true
		}
	}
	var warnings []string
	for i, f := range e.spec.Faults {
		if !used[f.Name] {
			warnings = append(warnings, fmt.Sprintf("%s: fault %q acts in no point; name it in a point of the sweep, or set everyPoint: true", e.faultPath(i), f.Name))
		}
	}
	return warnings
}
