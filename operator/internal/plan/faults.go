package plan

import (
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
)

func faultPath(i int) *field.Path { return field.NewPath("spec", "faults").Index(i) }

// checkFaultTimes checks that each fault does something, at a time at which the trial runs.
func (e *expansion) checkFaultTimes() {
	w := e.windows
	for i, f := range e.spec.Faults {
		path := faultPath(i)
		if f.NodeKill == nil {
			e.add(field.Required(path.Child("nodeKill"), fmt.Sprintf("fault %q does nothing: set nodeKill", f.Name)))
		}
		at, err := f.At.Parse()
		if err != nil || f.At == "" || at < -w.warmUp || at >= w.lastRequest() {
			e.add(field.Invalid(path.Child("at"), string(f.At), fmt.Sprintf(
				"must be a time at which clients send: from -%s (start of the warm-up) to before %s (end of the cool-down)", w.warmUp, w.lastRequest())))
			continue
		}
		if f.For == nil {
			continue
		}
		length, err := f.For.Parse()
		if err != nil || length <= 0 || at+length > w.end() {
			e.add(field.Invalid(path.Child("for"), string(*f.For), fmt.Sprintf(
				"must be more than 0 and at most %s, so that the fault is over before the trial is; leave it out for a fault that lasts to the end", w.end()-at)))
		}
	}
}

// placed is one replica.
type placed struct{ shard, replica int32 }

// checkFaults checks the faults of one point against its topology.
func (e *expansion) checkFaults(s system, trial v1alpha1.TrialSpec) {
	hit := make([]map[placed]bool, len(trial.Faults))
	for i, f := range trial.Faults {
		index := slices.IndexFunc(e.spec.Faults, func(g v1alpha1.Fault) bool { return g.Name == f.Name })
		if f.NodeKill == nil {
			continue
		}
		path := faultPath(index).Child("nodeKill", "target")
		if !e.checkTarget(path, s, f.NodeKill.Target, trial.Topology) {
			continue
		}
		hit[i] = targets(f.NodeKill.Target, trial.Topology)
		if len(hit[i]) == 0 {
			e.add(field.Invalid(path, describeTarget(f.NodeKill.Target), "chooses no replica: no replica of these indexes is in these regions; "+describeRegions(trial.Topology)))
		}
		for j := range i {
			if overlap(trial.Faults[j], f) && intersect(hit[j], hit[i]) {
				e.add(field.Invalid(faultPath(index), f.Name, fmt.Sprintf(
					"kills a replica that fault %q of the same point has killed; let the first be over before, or choose another replica", trial.Faults[j].Name)))
			}
		}
	}
}

// checkTarget checks that everything that the target names exists.
func (e *expansion) checkTarget(path *field.Path, s system, t v1alpha1.Target, topology v1alpha1.Topology) bool {
	n := shardReplicas(topology)
	ok := true
	for j, r := range t.Replicas {
		if r < 0 || r >= n {
			ok = false
			e.add(field.Invalid(path.Child("replicas").Index(j), r, fmt.Sprintf(
				"System %q has %s = %d replicas in a shard for f = %d: 0 to %d", s.name, s.count.text, n, topology.F, n-1)))
		}
	}
	for j, shard := range t.Shards {
		if shard < 0 || shard >= topology.Shards {
			ok = false
			e.add(field.Invalid(path.Child("shards").Index(j), shard, fmt.Sprintf("there are %d shards: 0 to %d", topology.Shards, topology.Shards-1)))
		}
	}
	names := make([]string, len(topology.Regions))
	for i, r := range topology.Regions {
		names[i] = r.Name
	}
	for j, region := range t.Regions {
		if !slices.Contains(names, region) {
			ok = false
			e.add(field.Invalid(path.Child("regions").Index(j), region, unknownName("the topology has no region", region, names)))
		}
	}
	return ok
}

// targets lists the replicas that a target chooses.
func targets(t v1alpha1.Target, topology v1alpha1.Topology) map[placed]bool {
	chosen := map[placed]bool{}
	for shard := range topology.Shards {
		if len(t.Shards) > 0 && !slices.Contains(t.Shards, shard) {
			continue
		}
		base := int32(0)
		for _, region := range topology.Regions {
			for replica := base; replica < base+region.Replicas; replica++ {
				if (len(t.Replicas) == 0 || slices.Contains(t.Replicas, replica)) && (len(t.Regions) == 0 || slices.Contains(t.Regions, region.Name)) {
					chosen[placed{shard, replica}] = true
				}
			}
			base += region.Replicas
		}
	}
	return chosen
}

func shardReplicas(topology v1alpha1.Topology) int32 {
	n := int32(0)
	for _, r := range topology.Regions {
		n += r.Replicas
	}
	return n
}

func intersect(a, b map[placed]bool) bool {
	for p := range a {
		if b[p] {
			return true
		}
	}
	return false
}

// overlap reports whether two faults act at the same time at some instant.
func overlap(a, b v1alpha1.Fault) bool {
	return a.At.OrZero() < over(b) && b.At.OrZero() < over(a)
}

func over(f v1alpha1.Fault) time.Duration {
	if f.For == nil {
		return math.MaxInt64
	}
	return f.At.OrZero() + f.For.OrZero()
}

func describeTarget(t v1alpha1.Target) string {
	return fmt.Sprintf("replicas %v, regions %v", t.Replicas, t.Regions)
}

func describeRegions(topology v1alpha1.Topology) string {
	text, base := "", int32(0)
	for _, r := range topology.Regions {
		if r.Replicas == 0 {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%s has %d to %d", r.Name, base, base+r.Replicas-1)
		base += r.Replicas
	}
	return text
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
			warnings = append(warnings, fmt.Sprintf("%s: fault %q acts in no point; name it in a point of the sweep, or set everyPoint: true", faultPath(i), f.Name))
		}
	}
	return warnings
}
