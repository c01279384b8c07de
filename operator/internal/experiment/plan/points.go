package plan

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/experiment/placement"
)

// resolvePoints makes every point of the cross product. The last axis changes fastest. If one run
// of a script gives results for several points, these are the rows of one point.
func (e *expansion) resolvePoints() {
	total := 1
	for _, a := range e.axes {
		total *= len(a.choices)
	}
	runs, rows := map[string]int{}, [][]v1alpha1.Point{}
	for index := range total {
		chosen := make([]choice, len(e.axes))
		rest := index
		for i := len(e.axes) - 1; i >= 0; i-- {
			n := len(e.axes[i].choices)
			chosen[i] = e.axes[i].choices[rest%n]
			rest /= n
		}
		if !(scripts{e.axisBuilder}).any() {
			e.points = append(e.points, e.resolvePoint(int32(index), chosen))
			continue
		}
		row, run := v1alpha1.Point{Index: int32(index), Coordinates: map[string]string{}}, ""
		for i, c := range chosen {
			row.Coordinates[e.axes[i].name] = c.label
			if !e.axes[i].rows {
				run += c.label + "\x00"
			}
		}
		i, known := runs[run]
		if !known {
			i = len(rows)
			runs[run], rows = i, append(rows, nil)
			e.points = append(e.points, e.resolvePoint(int32(i), chosen))
		}
		rows[i] = append(rows[i], row)
	}
	for i := range rows {
		scriptOf(&e.points[i].Template, rows[i])
	}
}

// resolvePoint makes one point from the spec and one choice for each axis.
func (e *expansion) resolvePoint(index int32, chosen []choice) Point {
	which := 0
	trial := v1alpha1.TrialSpec{
		Experiment:    e.name,
		Point:         v1alpha1.Point{Index: index},
		Workload:      e.spec.Workload.Name,
		Topology:      *e.spec.Topology.DeepCopy(),
		Network:       *e.spec.Network.DeepCopy(),
		Placement:     *e.spec.Placement.DeepCopy(),
		Clients:       *e.spec.Clients.DeepCopy(),
		Schedule:      e.spec.Schedule,
		Tolerances:    e.spec.Tolerances,
		IdleWait:      e.spec.Disturbances.IdleWait,
		IdleThreshold: e.spec.Disturbances.IdleThreshold,
		KeepLogs:      e.spec.KeepLogs(),

		Measurements: e.spec.Measurements,
	}
	trial.Placement, trial.NodeSet = trial.Placement.On(0)
	clientsPath, networkPath := e.origin.nodes(), e.origin.network()
	for i, c := range chosen {
		if trial.Point.Coordinates == nil {
			trial.Point.Coordinates = map[string]string{}
		}
		if !e.axes[i].rows {
			trial.Point.Coordinates[e.axes[i].name] = c.label
		}
		c.size(&trial)
		if c.system != nil {
			which = *c.system
		}
		if c.clients != nil {
			clientsPath = c.path
		}
		if c.network != "" {
			trial.Network.Profile, networkPath = c.network, c.path
		}
		for _, link := range c.links {
			trial.Network.Links, networkPath = append(trial.Network.Links, *link.DeepCopy()), c.path
		}
	}
	if trial.Clients.Count < trial.Clients.Nodes {
		e.add(field.Invalid(clientsPath, trial.Clients.Count, fmt.Sprintf(
			"%d clients cannot be spread over %d client pods (clients.nodes); use at least as many clients as pods", trial.Clients.Count, trial.Clients.Nodes)))
	}
	s := e.systems[which]
	trial.System.Name = s.name
	e.checkLoad(s, trial.Clients)
	e.checkPeak(trial.Clients)
	trial.Parameters = e.resolveParameters(which, chosen)
	trial.MisbehavingClients = e.resolveMisbehaving(s, &trial)
	trial.Faults = e.resolveFaults(chosen)
	scripts{e.axisBuilder}.resolveMachines(s, &trial)
	replicas := e.resolveTopology(which, &trial)
	trial.Placement.Components = ownPools(s, trial.Placement.Components)
	if replicas > 0 {
		e.resolveNetwork(networkPath, &trial)
		e.resolveNodes(&trial)
		e.checkFaults(s, &trial)
	}
	return Point{Template: trial, Replicas: replicas}
}

// size sets the numbers of clients and replicas, and the rate, of a choice.
func (c choice) size(trial *v1alpha1.TrialSpec) {
	override(&trial.Clients.Count, c.clients)
	override(&trial.Topology.F, c.f)
	override(&trial.Topology.Shards, c.shards)
	if c.rate != nil {
		trial.Clients.Rate = ptr(*c.rate)
	}
}

func override[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// resolveTopology fills in the regions. It returns the number of replicas of a shard, 0 after an
// error.
func (e *expansion) resolveTopology(which int, trial *v1alpha1.TrialSpec) int32 {
	s, path, topology := e.systems[which], e.origin.topology(), &trial.Topology
	regionsPath := path.Child("regions")
	if own := e.spec.Systems[which].Regions; len(own) > 0 {
		topology.Regions, regionsPath = slices.Clone(own), field.NewPath("spec", "systems").Index(which).Child("regions")
	}
	n, err := s.count.replicas(topology.F, trial.Parameters)
	if err != nil {
		e.add(field.Invalid(path.Child("f"), topology.F, fmt.Sprintf("System %q: %v", s.name, err)))
		return 0
	}
	if len(topology.Regions) == 0 {
		topology.Regions = []v1alpha1.Region{{Name: "local", Replicas: n}}
	} else if placed := placement.Size(*topology, ""); placed != n {
		e.add(field.Invalid(regionsPath, fmt.Sprintf("%d replicas", placed), fmt.Sprintf(
			"System %q has %s = %d replicas in a shard for f = %d; the regions' replicas must add up to %d", s.name, s.count.text, n, topology.F, n)))
		return 0
	}
	if pods := int(n) * int(topology.Shards); pods > MaxReplicas {
		e.add(field.Invalid(path.Child("shards"), topology.Shards, fmt.Sprintf(
			"%d shards of %d replicas make %d replicas; at most %d are possible", topology.Shards, n, pods, MaxReplicas)))
		return 0
	}
	if !e.resolveComponents(s, path, topology, trial.Parameters) {
		return 0
	}
	return n
}

// resolveParameters gives every declared parameter its value.
func (e *expansion) resolveParameters(which int, chosen []choice) map[string]v1alpha1.Value {
	s := e.systems[which]
	set := map[string]v1alpha1.Value{}
	maps.Copy(set, e.spec.Parameters)
	maps.Copy(set, e.spec.Systems[which].Parameters)
	maps.Copy(set, e.spec.Workload.Parameters)
	for _, c := range chosen {
		maps.Copy(set, c.parameters)
	}
	resolved := map[string]v1alpha1.Value{}
	for _, name := range s.declared.names() {
		p := s.declared[name]
		value, ok := set[name]
		if !ok {
			if p.Default == nil {
				e.add(field.Required(field.NewPath("spec", "parameters").Key(name), fmt.Sprintf(
					"System %q has no default for it; %s", s.name, describeParameter(p))))
				continue
			}
			value = *p.Default
		}
		canonical, err := checkValue(p, value)
		if err != nil {
			// Only defaults can still be wrong here: other values were checked where they are set.
			e.add(field.Invalid(field.NewPath("spec", "parameters").Key(name), value.String(), fmt.Sprintf("the default of System %q %v", s.name, err)))
			continue
		}
		resolved[name] = canonical
	}
	if len(resolved) == 0 {
		return nil
	}
	return resolved
}

// resolveFaults returns the faults that act in a point, in the order of the spec.
func (e *expansion) resolveFaults(chosen []choice) []v1alpha1.Fault {
	var faults []v1alpha1.Fault
	for _, f := range e.spec.Faults {
		if !fault.DrawsFlameGraph(&f) && (f.EveryPoint || slices.ContainsFunc(chosen, func(c choice) bool { return slices.Contains(c.faults, f.Name) })) {
			faults = append(faults, *f.DeepCopy())
		}
	}
	return faults
}
