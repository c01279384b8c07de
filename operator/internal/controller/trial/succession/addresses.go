package succession

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/controller/trial/objects"
	"assay.dev/assay/operator/internal/fault"
)

// addressesKey of a trial's addresses ConfigMap holds the pods' addresses as JSON.
const addressesKey = "addresses.json"

// KeepAddresses writes down what the trial was rendered with: a pod whose machine was reset, or
// that replaces another, has another address, and no file of a pod that lives on may change for
// that. A manager that takes over then must know the old ones, and who had them.
func (k Keeper) KeepAddresses(ctx context.Context, r *Run) error {
	if !fault.MovesPods(r.Trial.Spec.Faults) {
		return nil
	}
	addresses := map[string]string{}
	for name, p := range r.Pods {
		addresses[name] = p.Status.PodIP
	}
	content, err := json.Marshal(addresses)
	if err != nil {
		return fmt.Errorf("encode the pods' addresses: %w", err)
	}
	lines, err := encodeLines(r.firstLines())
	if err != nil {
		return err
	}
	return objects.Maker{Client: k.Client, Reader: k.Reader}.Create(ctx, r.Trial, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: r.Layout.AddressesConfigMap(), Namespace: r.Trial.Namespace,
		Labels: map[string]string{v1alpha1.LabelTrial: r.Trial.Name, v1alpha1.LabelExperiment: r.Trial.Spec.Experiment},
	}, Data: map[string]string{addressesKey: string(content), linesKey: lines}})
}

// Addresses that the trial is rendered with, by pod: those of now, or, once a run that resets
// machines or replaces pods is released, those of then.
func (k Keeper) Addresses(ctx context.Context, r *Run) (map[string]string, error) {
	addresses := map[string]string{}
	if r.Trial.Status.ZeroUnixNanos == 0 || !fault.MovesPods(r.Trial.Spec.Faults) {
		for name, p := range r.Pods {
			addresses[name] = p.Status.PodIP
		}
		return addresses, nil
	}
	kept, err := k.keptAddresses(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(kept.Data[addressesKey]), &addresses); err != nil {
		return nil, fmt.Errorf("read the addresses that the trial was released with: %w", err)
	}
	return addresses, nil
}
