package main

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// chaosMesh is the API of Chaos Mesh.
const chaosMesh = "chaos-mesh.org/v1alpha1"

// measurePodChaos makes Chaos Mesh kill the pods. It does nothing if Chaos Mesh is not installed.
func (b *bench) measurePodChaos(ctx context.Context) ([]shot, error) {
	if _, err := b.clientset.Discovery().ServerResourcesForGroupVersion(chaosMesh); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("ask for the kinds of Chaos Mesh: %w", err)
	}
	return b.measureDeletes(ctx, "chaos", b.byPodChaos)
}

// byPodChaos kills all pods of a round by one object, and waits until the object is gone again.
func (b *bench) byPodChaos(ctx context.Context, round string, all []*victim) error {
	chaos := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": chaosMesh, "kind": "PodChaos",
		"metadata": map[string]any{"namespace": namespace, "name": round},
		"spec": map[string]any{
			"action": "pod-kill", "mode": "all", "gracePeriod": int64(0),
			"selector": map[string]any{"namespaces": []any{namespace}, "labelSelectors": map[string]any{v1alpha1.LabelPodType: "victim", roundLabel: round}},
		},
	}}
	asked := monotonic()
	if err := b.cluster.Create(ctx, chaos); err != nil {
		return fmt.Errorf("create PodChaos: %w", err)
	}
	for _, v := range all {
		v.asked = asked
	}
	err := eventually(ctx, time.Minute, "the PodChaos has killed", func(ctx context.Context) (bool, error) {
		if err := b.cluster.Get(ctx, client.ObjectKeyFromObject(chaos), chaos); err != nil {
			return false, err
		}
		return allInjected(chaos), nil
	})
	if err != nil {
		return err
	}
	if err := b.cluster.Delete(ctx, chaos); err != nil {
		return fmt.Errorf("delete PodChaos: %w", err)
	}
	return eventually(ctx, time.Minute, "the PodChaos is gone", func(ctx context.Context) (bool, error) {
		err := b.cluster.Get(ctx, client.ObjectKeyFromObject(chaos), chaos)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

func allInjected(chaos *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(chaos.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "AllInjected" {
			return m["status"] == "True"
		}
	}
	return false
}
