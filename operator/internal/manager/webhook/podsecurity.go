package webhook

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/podsecurity"
	"assay.dev/assay/operator/internal/experiment/render"
)

// checkPodSecurity refuses an experiment if the namespace would refuse its pods. The user then
// learns it now, and not from a trial without pods. This check is not the guard: the API server
// checks every pod. A trial checks again when it starts, since labels change.
func (v *experiments) checkPodSecurity(ctx context.Context, exp *v1alpha1.Experiment, p *plan.Plan, systems map[string]v1alpha1.SystemSpec) (field.ErrorList, error) {
	ns := &corev1.Namespace{}
	if err := v.reader.Get(ctx, client.ObjectKey{Name: exp.Namespace}, ns); err != nil {
		return nil, fmt.Errorf("read Namespace %s: %w", exp.Namespace, err)
	}
	told := map[string]bool{} // Systems already reported: the points of one System mostly fail alike
	var errs field.ErrorList
	for i := range p.Points {
		trial := p.Points[i].Template
		name := trial.System.Name
		if told[name] {
			continue
		}
		refusal, err := refused(ns, systems[name], &trial)
		if err != nil {
			return nil, err
		}
		if refusal == nil {
			continue
		}
		told[name] = true
		errs = append(errs, securityError(ns, p, name, &trial, refusal))
	}
	return errs, nil
}

// refused renders the pods of a point, and checks each against the namespace's profile.
func refused(ns *corev1.Namespace, system v1alpha1.SystemSpec, trial *v1alpha1.TrialSpec) (*podsecurity.Refusal, error) {
	layout := placement.NewLayout(ns.Name, "experiment-0000-0", trial, &system)
	objects, err := render.NewObjects(layout, trial, &system, render.Environment{AgentImage: "agent"})
	if err != nil {
		return nil, fmt.Errorf("render the pods of System %s: %w", trial.System.Name, err)
	}
	for _, t := range objects.Templates() {
		if refusal, err := podsecurity.Check(ns.Labels, t.Spec); refusal != nil || err != nil {
			return refusal, err
		}
	}
	return nil, nil
}

func securityError(ns *corev1.Namespace, p *plan.Plan, system string, trial *v1alpha1.TrialSpec, r *podsecurity.Refusal) *field.Error {
	what := fmt.Sprintf("namespace %s enforces the Pod Security profile %s, which does not admit pods of this experiment: %s", ns.Name, r.Profile, r.Why)
	const owner = "the namespace's owner can label it pod-security.kubernetes.io/enforce: privileged"
	if trial.Network.Shaping == v1alpha1.ShapingNone {
		for i, ref := range p.Spec.Systems {
			if ref.Name == system {
				return field.Forbidden(field.NewPath("spec", "systems").Index(i).Child("name"), fmt.Sprintf("%s; change System %s, or %s", what, system, owner))
			}
		}
	}
	return field.Forbidden(field.NewPath("spec", "network", "shaping"),
		what+"; set network.shaping: None, with which pods need nothing (and kills are not silent), or "+owner)
}
