package fidelity

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// changes lists the changes of the profile in use to the full evaluation, and returns the resulting
// size.
//
// A profile reduces the evaluation if it changes what the source measured: points, topology,
// network, load, parameters or faults. It also reduces it if it measures for less time or less
// often. Another placement does not: it changes the machines, not what runs on them. Tolerances and
// disturbances do not either. They are listed, since a verdict may rest on looser ones.
func changes(spec v1alpha1.ExperimentSpec) (all []string, size string) {
	full, applied := fullSpec(spec), plan.ApplyProfile(spec)
	all = sweepChanges(full.Sweep, applied.Sweep)
	add := func(name string, a, b any) { all = append(all, differences(name, a, b)...) }
	network := func(n v1alpha1.Network) v1alpha1.Network {
		n.Backend, n.Shaping = "", "" // how delays are made, not which
		return n
	}
	add("topology", full.Topology, applied.Topology)
	add("network", network(full.Network), network(applied.Network))
	add("clients.nodes", full.Clients.Nodes, applied.Clients.Nodes)
	add("clients.thinkTime", full.Clients.ThinkTime, applied.Clients.ThinkTime)
	add("clients.phases", full.Clients.Phases, applied.Clients.Phases)
	add("parameters", parameters(full), parameters(applied))
	add("faults", byName(full.Faults), byName(applied.Faults))
	all = append(all, shorter(full.Schedule, applied.Schedule)...)
	all = append(all, fewer(full.Repetitions, applied.Repetitions)...)
	size = Full
	if len(all) > 0 {
		size = Reduced
	}
	add("tolerances", full.Tolerances, applied.Tolerances)
	return all, size
}

// parameters of the experiment, its workload and its systems. Those of a profile override those of
// workload and systems.
func parameters(spec v1alpha1.ExperimentSpec) map[string]string {
	all := map[string]string{}
	for name, v := range spec.Parameters {
		all[name] = v.String()
	}
	for _, s := range spec.Systems {
		for name, v := range s.Parameters {
			all[s.Name+"."+name] = v.String()
		}
	}
	for name, v := range spec.Workload.Parameters {
		all["workload."+name] = v.String()
	}
	return all
}

func byName(faults []v1alpha1.Fault) map[string]v1alpha1.Fault {
	named := map[string]v1alpha1.Fault{}
	for _, f := range faults {
		named[f.Name] = f
	}
	return named
}

// sweepChanges lists the axes whose values differ. An axis that has all values of the full one, and
// more, takes nothing away.
func sweepChanges(full, applied []v1alpha1.Axis) (all []string) {
	for _, a := range applied {
		i := slices.IndexFunc(full, func(f v1alpha1.Axis) bool { return f.Axis == a.Axis })
		if i < 0 {
			all = append(all, "axis "+a.Axis+" is added")
			continue
		}
		if full[i].Search != nil || a.Search != nil {
			all = append(all, differences("axis "+a.Axis+", search", full[i].Search, a.Search)...)
			continue
		}
		want, have := valuesOf(full[i]), valuesOf(a)
		kept := 0
		for _, name := range want {
			if slices.Contains(have, name) {
				kept++
			}
		}
		switch {
		case kept == len(want):
		case kept < len(have):
			all = append(all, fmt.Sprintf("axis %s: %s in place of %s", a.Axis, strings.Join(have, ", "), strings.Join(want, ", ")))
		default:
			all = append(all, fmt.Sprintf("axis %s: %d of %d values (%s)", a.Axis, kept, len(want), strings.Join(have, ", ")))
		}
		for _, p := range a.Points { // a point of the same name may set something else
			if k := slices.IndexFunc(full[i].Points, func(f v1alpha1.AxisPoint) bool { return f.Name == p.Name }); k >= 0 {
				all = append(all, differences(fmt.Sprintf("axis %s, point %s", a.Axis, p.Name), full[i].Points[k], p)...)
			}
		}
	}
	return all
}

// valuesOf an axis, by their names.
func valuesOf(a v1alpha1.Axis) (names []string) {
	for _, v := range a.Values {
		names = append(names, v.String())
	}
	for _, p := range a.Points {
		names = append(names, p.Name)
	}
	return names
}

// shorter lists the parts of a schedule that take less time.
func shorter(full, applied v1alpha1.Schedule) (all []string) {
	for _, part := range []struct {
		name       string
		full, have v1alpha1.Duration
	}{{"warmUp", full.WarmUp, applied.WarmUp}, {"measure", full.Measure, applied.Measure}, {"coolDown", full.CoolDown, applied.CoolDown}, {"drain", full.Drain, applied.Drain}} {
		a, errA := time.ParseDuration(string(part.full))
		b, errB := time.ParseDuration(string(part.have))
		if errA != nil || errB != nil || b < a {
			if part.full != part.have {
				all = append(all, fmt.Sprintf("schedule.%s: %s in place of %s", part.name, part.have, part.full))
			}
		}
	}
	return all
}

// fewer says where trials are repeated less often, or less precisely.
func fewer(full, applied v1alpha1.Repetitions) (all []string) {
	most := func(r v1alpha1.Repetitions) int32 {
		if r.Max != nil {
			return max(*r.Max, r.Min)
		}
		return r.Min
	}
	if applied.Min < full.Min {
		all = append(all, fmt.Sprintf("repetitions: %d in place of %d", applied.Min, full.Min))
	}
	if most(applied) < most(full) && most(full) > full.Min {
		all = append(all, fmt.Sprintf("repetitions: at most %d in place of %d", most(applied), most(full)))
	}
	if full.Until != nil && encoded(full.Until) != encoded(applied.Until) && applied.Min < most(full) {
		all = append(all, "repetitions: until is another")
	}
	return all
}

// differences compares two parts of a spec leaf by leaf.
func differences(name string, full, applied any) (all []string) {
	was, is := map[string]string{}, map[string]string{}
	leaves(name, decoded(full), was)
	leaves(name, decoded(applied), is)
	keys := maps.Clone(was)
	maps.Copy(keys, is)
	none := func(m map[string]string, k string) string {
		if v, ok := m[k]; ok {
			return v
		}
		return "none"
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if was[k] != is[k] {
			all = append(all, fmt.Sprintf("%s: %s in place of %s", k, none(is, k), none(was, k)))
		}
	}
	return all
}

// leaves flattens what JSON decodes to.
func leaves(path string, v any, into map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			leaves(path+"."+k, x, into)
		}
	case []any:
		for i, x := range v {
			key := fmt.Sprint(i)
			if m, ok := x.(map[string]any); ok {
				if n, ok := m["name"].(string); ok {
					key = n
				}
			}
			leaves(path+"["+key+"]", x, into)
		}
	case nil:
	case string:
		into[path] = v
	default:
		into[path] = encoded(v)
	}
}

func decoded(v any) (out any) {
	if err := json.Unmarshal([]byte(encoded(v)), &out); err != nil {
		panic(fmt.Sprintf("fidelity: what was written as JSON cannot be read: %v", err))
	}
	return out
}

// encoded is a part of a spec as JSON.
func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fidelity: a spec that came as JSON cannot be written as JSON: %v", err))
	}
	return string(b)
}
