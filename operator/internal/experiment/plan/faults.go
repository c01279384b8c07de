package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/chaosmesh"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/text/suggest"
)

func faultPath(i int) *field.Path { return field.NewPath("spec", "faults").Index(i) }

// faultPath returns where the fault of an index was written: a profile may have replaced it.
func (e *draft) faultPath(i int) *field.Path {
	if i < 0 {
		return field.NewPath("spec", "faults")
	}
	if p := e.origin.profile; p != nil {
		for k, f := range p.Faults {
			if f.Name == e.spec.Faults[i].Name {
				return e.origin.path.Child("faults").Index(k)
			}
		}
	}
	return faultPath(i)
}

// checkFaultTimes checks that each fault has one kind, and happens while the trial runs.
func (e *fieldChecker) checkFaultTimes() { e.add(fault.CheckTimes(e.spec.Faults, e.faultTimes())...) }

func (e *draft) faultTimes() fault.Times {
	return fault.Times{Windows: e.windows, Lateness: e.spec.Tolerances.FaultLateness.OrZero(), Path: func(name string) *field.Path {
		return e.faultPath(slices.IndexFunc(e.spec.Faults, func(f v1alpha1.Fault) bool { return f.Name == name }))
	}}
}

// checkFaults checks the faults of one point against its system, topology and clients.
func (e *expansion) checkFaults(s system, trial *v1alpha1.TrialSpec) {
	e.add(fault.Check(fault.Point{
		Times: e.faultTimes(), Trial: trial, System: s.name, Spec: &s.spec, Count: s.count.text,
		Parameter: func(name string, value v1alpha1.Value) (v1alpha1.Value, error) {
			p, known := s.declared[name]
			if !known {
				return value, fmt.Errorf("System %q %s", s.name, suggest.Unknown("declares no parameter", name, s.declared.names()))
			}
			return checkValue(p, value)
		},
	})...)
}

// unusedFaults warns of faults that act in no point. With a profile there is no warning, since
// profiles leave points out on purpose.
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
		if !used[f.Name] && !fault.DrawsFlameGraph(&f) {
			warnings = append(warnings, fmt.Sprintf("%s: fault %q acts in no point; name it in a point of the sweep, or set everyPoint: true", e.faultPath(i), f.Name))
		}
	}
	return warnings
}

// checkChaosMeshInstalled asks whether the cluster has the kinds of Chaos Mesh that the faults
// need, each kind once.
func checkChaosMeshInstalled(p *Plan, checks Checks) (errs field.ErrorList) {
	if checks.ChaosMesh == nil {
		return nil
	}
	asked := map[string]bool{}
	for i := range p.Spec.Faults {
		for _, kind := range chaosmesh.Kinds(p.Spec.Faults[i : i+1]) {
			if asked[kind] {
				continue
			}
			asked[kind] = true
			if err := checks.ChaosMesh(kind); err != nil {
				errs = append(errs, field.Forbidden(faultPath(i).Child("chaosMesh"), err.Error()))
			}
		}
	}
	return errs
}
