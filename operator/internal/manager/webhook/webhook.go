// Package webhook refuses Experiments and Systems that cannot work, when they are applied.
//
// It makes the checks that the schemas of the CRDs cannot make, because they need two objects, a
// parser, or arithmetic. The checks themselves are in package plan. So the controller, for a System
// that comes after its Experiment, and kubectl-assay, without a cluster, make the same ones. The
// webhooks never change anything. Trials have no webhook: RBAC allows only the manager to create
// them.
package webhook

import (
	"fmt"
	"text/template"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get

// Setup registers the webhooks at the manager's webhook server, at
// /validate-assay-dev-v1alpha1-experiment and -system. The reader must bypass the cache, to see a
// System that was applied just before its Experiment. The function parse parses one template of a
// System.
func Setup(mgr ctrl.Manager, reader client.Reader, checks plan.Checks, parse func(name, text string) (*template.Template, error)) error {
	err := ctrl.NewWebhookManagedBy(mgr, &v1alpha1.Experiment{}).
		WithValidator(&experiments{reader: reader, client: mgr.GetClient(), checks: checks}).
		Complete()
	if err != nil {
		return fmt.Errorf("register the webhook of Experiments: %w", err)
	}
	err = ctrl.NewWebhookManagedBy(mgr, &v1alpha1.System{}).
		WithValidator(&systems{parse: func(name, text string) error { _, err := parse(name, text); return err }}).
		Complete()
	if err != nil {
		return fmt.Errorf("register the webhook of Systems: %w", err)
	}
	return nil
}
