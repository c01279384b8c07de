package webhook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/chaosmesh"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/render"
)

// chaosPatience bounds the time of all questions to Chaos Mesh about one experiment. The API server
// waits ten seconds for our own answer.
const chaosPatience = 6 * time.Second

// checkChaosMesh sends the first object of each Chaos Mesh fault to the API server, as a dry run.
// So the schemas and webhooks of Chaos Mesh refuse a wrong spec now, and not in the middle of a
// trial.
func (v *experiments) checkChaosMesh(ctx context.Context, exp *v1alpha1.Experiment, p *plan.Plan, systems map[string]v1alpha1.SystemSpec) field.ErrorList {
	ctx, cancel := context.WithTimeout(ctx, chaosPatience)
	defer cancel()
	var errs field.ErrorList
	for i := range p.Spec.Faults {
		f := &p.Spec.Faults[i]
		trial := actsIn(p, f)
		kinds := chaosmesh.Kinds(p.Spec.Faults[i : i+1])
		if len(kinds) == 0 || trial == nil {
			continue
		}
		system := systems[trial.System.Name]
		var u *unstructured.Unstructured
		o, err := render.Chaos(placement.NewLayout(exp.Namespace, "assay-check", trial, &system), trial, &system, f)
		if err == nil {
			u, err = o.Object()
		}
		if err != nil {
			return append(errs, field.Invalid(field.NewPath("spec", "faults").Index(i).Child("chaosMesh"), f.Name, err.Error()))
		}
		path := field.NewPath("spec", "faults").Index(i).Child("chaosMesh", "spec")
		strict := &client.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
		err = v.client.Create(ctx, u, client.DryRunAll, strict)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			errs = append(errs, chaosErrors(path, kinds[0], err)...)
		}
	}
	return errs
}

// actsIn returns the first trial of the plan that has the fault, or nil.
func actsIn(p *plan.Plan, f *v1alpha1.Fault) *v1alpha1.TrialSpec {
	for i := range p.Points {
		for k := range p.Points[i].Template.Faults {
			if p.Points[i].Template.Faults[k].Name == f.Name {
				return &p.Points[i].Template
			}
		}
	}
	return nil
}

// chaosErrors turns an error of Chaos Mesh into errors about our fields: the fields of its object's
// spec are those of the fault's spec.
func chaosErrors(path *field.Path, kind string, err error) field.ErrorList {
	what := "Chaos Mesh refuses this " + kind + ": "
	if errors.Is(err, context.DeadlineExceeded) {
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("Chaos Mesh did not say within %v whether it takes this %s; try again, or see whether its webhooks answer", chaosPatience, kind))}
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return field.ErrorList{field.Forbidden(path, what+err.Error())}
	}
	var errs field.ErrorList
	for _, cause := range status.Status().Details.Causes {
		at := path
		if rest, found := strings.CutPrefix(cause.Field, "spec."); found {
			at = path.Child(rest)
		}
		if cause.Message != "" {
			errs = append(errs, field.Forbidden(at, what+cause.Message))
		}
	}
	if len(errs) == 0 {
		errs = append(errs, field.Forbidden(path, what+err.Error()))
	}
	return errs
}
