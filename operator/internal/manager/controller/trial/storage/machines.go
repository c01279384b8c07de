package storage

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// machinePrefix begins the labels and annotations of a machine's settings. The program that
// prepared the machine writes them (infra/modules/ssh-nodes).
const machinePrefix = "machine.assay.dev/"

// nameMachines adds to each pod the description of its node. Results do not wait for that: a
// manager may lack the right to read nodes, and a node may be gone.
func (r Results) nameMachines(ctx context.Context, t *results.Trial) {
	known := map[string]*corev1.Node{"": {}}
	for i := range t.Pods {
		name := t.Pods[i].Node
		node, asked := known[name]
		if !asked {
			node = &corev1.Node{}
			if err := r.Reader.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
				logf.FromContext(ctx).V(1).Info("The results do not say how a machine is set", "node", name, "error", err.Error())
			}
			known[name] = node
		}
		t.Pods[i].Machine, t.Pods[i].NodeSoftware = machineOf(node), softwareOf(node)
	}
}

// softwareOf returns the versions of the node's software, as its kubelet reports them.
func softwareOf(node *corev1.Node) string {
	info := node.Status.NodeInfo
	var known []string
	for _, s := range []struct{ what, version string }{{"kubelet ", info.KubeletVersion}, {"", info.ContainerRuntimeVersion}, {"", info.OSImage}} {
		if s.version != "" {
			known = append(known, s.what+s.version)
		}
	}
	return strings.Join(known, ", ")
}

// machineOf returns a node's settings and its location. The names are those of the node's labels
// without their prefix.
func machineOf(node *corev1.Node) map[string]string {
	machine := map[string]string{}
	for _, all := range []map[string]string{node.Annotations, node.Labels} {
		for name, value := range all {
			if short, ok := strings.CutPrefix(name, machinePrefix); ok {
				machine[short] = value
			}
		}
	}
	for short, name := range map[string]string{"pool": v1alpha1.LabelPool, "region": corev1.LabelTopologyRegion, "zone": corev1.LabelTopologyZone} {
		if value := node.Labels[name]; value != "" {
			machine[short] = value
		}
	}
	if len(machine) == 0 {
		return nil
	}
	return machine
}
