package plan

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// maxRenderedPods bounds how many pods' templates one validation renders. Points beyond it are sampled evenly; a trial whose templates
// fail all the same ends with the reason RenderFailed.
const maxRenderedPods = 4000

// Checks are what packages above this one can tell about a plan. A nil check is not made.
type Checks struct {
	// Templates renders every template of the System for a trial.
	Templates func(v1alpha1.SystemSpec, v1alpha1.TrialSpec) error
	// Claim parses a claim and looks up the axes and values that it names.
	Claim func(v1alpha1.Claim, []results.Axis) error
}

// Validate expands the experiment and makes the checks on the plan. It is what admission, the controller and kubectl-assay call.
func Validate(exp *v1alpha1.Experiment, systems map[string]v1alpha1.SystemSpec, checks Checks) (*Plan, field.ErrorList) {
	p, errs := Expand(exp, systems)
	if len(errs) > 0 {
		return nil, errs
	}
	errs = append(checkClaims(p, checks), checkTemplates(p, systems, checks)...)
	if len(errs) > 0 {
		return nil, errs
	}
	return p, nil
}

func checkClaims(p *Plan, checks Checks) (errs field.ErrorList) {
	if checks.Claim == nil {
		return nil
	}
	skipped := SkippedClaims(p.Spec)
	for i, c := range p.Spec.Claims {
		if _, skip := skipped[c.Name]; skip {
			continue
		}
		if err := checks.Claim(c, p.Axes); err != nil {
			errs = append(errs, claimError(field.NewPath("spec", "claims").Index(i), c, err))
		}
	}
	return errs
}

// claimError gives the error the field that its text begins with: a claim's check says "expr:", "reported:" or "within:".
func claimError(path *field.Path, c v1alpha1.Claim, err error) *field.Error {
	part, detail, found := strings.Cut(err.Error(), ":")
	switch {
	case found && part == "reported" && c.Reported != nil:
		return field.Invalid(path.Child(part), c.Reported.String(), strings.TrimSpace(detail))
	case found && part == "within":
		return field.Invalid(path.Child(part), c.Within, strings.TrimSpace(detail))
	}
	return field.Invalid(path.Child("expr"), c.Expr, strings.TrimPrefix(err.Error(), "expr: "))
}

// checkTemplates renders the trials of the plan and reports the first that fails for each system: the others mostly fail alike.
func checkTemplates(p *Plan, systems map[string]v1alpha1.SystemSpec, checks Checks) (errs field.ErrorList) {
	if checks.Templates == nil {
		return nil
	}
	pods := 0
	for _, point := range p.Points {
		pods += podsOf(point)
	}
	stride := 1 + pods/maxRenderedPods
	failed := map[string]bool{}
	for i := 0; i < len(p.Points); i += stride {
		trial := p.Points[i].Template
		name := trial.System.Name
		if failed[name] {
			continue
		}
		if err := checks.Templates(systems[name], trial); err != nil {
			failed[name] = true
			errs = append(errs, field.Invalid(systemPath(p, name), name,
				"a template of the System cannot be rendered for this experiment; change the System or the parameters it is given: "+err.Error()))
		}
	}
	return errs
}

func podsOf(p Point) int {
	return int(p.Replicas)*int(p.Template.Topology.Shards) + int(p.Template.Clients.Nodes)
}

func systemPath(p *Plan, name string) *field.Path {
	for i, s := range p.Spec.Systems {
		if s.Name == name {
			return field.NewPath("spec", "systems").Index(i).Child("name")
		}
	}
	return field.NewPath("spec", "systems")
}
