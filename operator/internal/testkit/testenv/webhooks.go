package testenv

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// webhooks are the registrations of the chart, for a server on this machine: envtest replaces the
// Service with the server's address.
func webhooks() []*admissionv1.ValidatingWebhookConfiguration {
	c := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "assay"}}
	for _, kind := range []string{"experiment", "system"} {
		c.Webhooks = append(c.Webhooks, admissionv1.ValidatingWebhook{
			Name:                    kind + ".assay.dev",
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             new(admissionv1.SideEffectClassNone),
			FailurePolicy:           new(admissionv1.Fail),
			TimeoutSeconds:          new(int32(30)), // the maximum: the machine may be busy
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{"assay.dev"}, APIVersions: []string{"v1alpha1"}, Resources: []string{kind + "s"}},
			}},
			MatchConditions: []admissionv1.MatchCondition{{Name: "lives", Expression: "!has(object.metadata.deletionTimestamp)"}},
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{
				Namespace: "default", Name: "assay-webhook", Path: new("validate-assay-dev-v1alpha1-" + kind)}},
		})
	}
	return []*admissionv1.ValidatingWebhookConfiguration{c}
}

// waitFor returns when the webhook server answers. It returns an error if it does not.
func waitFor(ctx context.Context, started healthz.Checker) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := started(nil)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the webhook server does not answer: %w", err)
		case <-tick.C:
		}
	}
}
