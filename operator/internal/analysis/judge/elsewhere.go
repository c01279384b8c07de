package judge

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/imported"
	"assay.dev/assay/operator/internal/text/buildinfo"
)

// Elsewhere judges results that were measured elsewhere by today's claims, and returns them with
// their trials. LeftOut has what was not read, and points without a result.
func Elsewhere(set *imported.Set, today Today, systems map[string]v1alpha1.SystemSpec, now time.Time) (results.Experiment, []results.Trial, error) {
	exp := today.Experiment
	p, errs := plan.Expand(exp, known(exp.Spec, systems))
	if len(errs) > 0 {
		return results.Experiment{}, nil, fmt.Errorf("%s: %w", today.File, errs.ToAggregate())
	}
	if err := checkClaims(p); err != nil {
		return results.Experiment{}, nil, fmt.Errorf("%s: %w", today.File, err)
	}
	if p.Search != nil {
		return results.Experiment{}, nil, fmt.Errorf("%s: axis %s is searched, so its points are those that a search tries; give it values", today.File, p.Search.Axis)
	}
	trials, notes, err := set.Trials(exp.Name, p.Axes)
	if err != nil {
		return results.Experiment{}, nil, err
	}
	lines := make([]results.TrialLine, len(trials))
	for i, t := range trials {
		lines[i] = model.LineOf(t)
	}
	e := model.Build(exp, systems, p.Axes, lines, now)
	done := now.UTC()
	e.Planned, e.Completed = len(lines), &done // no author will add to them
	e.LeftOut = slices.Concat(e.LeftOut, set.Skipped, notes)
	e.Judged = &results.Judged{At: now.UTC(), By: buildinfo.Version(), File: today.File, SpecSHA256: e.SpecSHA256}
	return e, trials, nil
}

// checkClaims refuses claims that no results could decide.
func checkClaims(p *plan.Plan) error {
	var faults, measurements []string
	for _, f := range p.Spec.Faults {
		faults = append(faults, f.Name)
	}
	for _, m := range p.Spec.Measurements {
		measurements = append(measurements, m.Name)
	}
	for _, c := range p.Spec.Claims {
		if err := claims.Check(c, p.Axes, faults, measurements...); err != nil {
			return fmt.Errorf("claim %s: %w", c.Name, err)
		}
	}
	return nil
}

// known adds Systems that have no file, as far as the spec describes them. Results that were
// measured elsewhere need no System, and points need only names of parameters.
func known(spec v1alpha1.ExperimentSpec, systems map[string]v1alpha1.SystemSpec) map[string]v1alpha1.SystemSpec {
	spec = plan.ApplyProfile(spec)
	all := map[string]v1alpha1.SystemSpec{}
	maps.Copy(all, systems)
	for _, ref := range spec.Systems {
		if _, ok := all[ref.Name]; ok {
			continue
		}
		names := map[string]bool{}
		for _, values := range []map[string]v1alpha1.Value{spec.Parameters, spec.Workload.Parameters, ref.Parameters} {
			for name := range values {
				names[name] = true
			}
		}
		for _, axis := range spec.Sweep {
			if len(axis.Values) > 0 && !slices.Contains(plan.BuiltinAxes(), axis.Axis) {
				names[axis.Axis] = true
			}
			for _, point := range axis.Points {
				for name := range point.Parameters {
					names[name] = true
				}
			}
		}
		replicas := int32(0)
		for _, region := range spec.Topology.Regions {
			replicas += region.Replicas
		}
		system := v1alpha1.SystemSpec{
			Replicas: v1alpha1.ReplicasSpec{Count: fmt.Sprint(max(1, replicas))}, Workloads: []v1alpha1.Workload{{Name: spec.Workload.Name}},
		}
		nobody := []v1alpha1.Container{{Name: "not-run-here"}} // what ran elsewhere needs none
		system.Replicas.Containers, system.Clients.Containers = nobody, nobody
		for _, name := range slices.Sorted(maps.Keys(names)) {
			system.Parameters = append(system.Parameters, v1alpha1.Parameter{Name: name, Type: v1alpha1.ParameterString})
		}
		all[ref.Name] = system
	}
	return all
}
