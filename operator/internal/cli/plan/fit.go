package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/experiment/queue"
)

// reachTimeout is how long a cluster may take to list its nodes.
const reachTimeout = 5 * time.Second

// node has the free resources of a node.
type node struct {
	name        string
	cpu, memory resource.Quantity
	pods        int
	// labels of the node. dedicated: a taint keeps pods without a pool away. imagined: the node is
	// one of --nodes, which may be in any pool and region.
	labels              map[string]string
	dedicated, imagined bool
	// apart: the node has a pod that needs a node without other such pods.
	apart bool
}

// takes reports whether a pod that wants these labels may run on the node.
func (n *node) takes(where map[string]string) bool {
	if where[v1alpha1.LabelPool] == "" && n.dedicated {
		return false
	}
	return n.imagined || labels.SelectorFromSet(where).Matches(labels.Set(n.labels))
}

// fit has the nodes to which the plan compares the demand.
type fit struct {
	nodes []node
	note  string // about them
	err   error  // why no nodes are known
}

// nodesToFit returns the nodes of --nodes, or those of the cluster.
func nodesToFit(ctx context.Context, s *session.Session, o Options) fit {
	switch {
	case len(o.Nodes) > 0:
		nodes, err := parseNodes(o.Nodes)
		return fit{nodes: nodes, err: err}
	case o.Offline:
		return fit{err: errors.New("--offline, and no --nodes")}
	}
	nodes, note, err := clusterNodes(ctx, s)
	if err != nil {
		err = fmt.Errorf("no cluster answers (%w); say what it has with --nodes, as in --nodes 6x8x32Gi", err)
	}
	return fit{nodes, note, err}
}

// write places the pods of the largest trial of each set of nodes on the nodes, and prints whether
// they fit.
func (f fit) write(b *strings.Builder, largest []demand) {
	b.WriteString("\nWhat fits\n\n")
	if f.err != nil {
		fmt.Fprintf(b, "  not checked: %v\n", f.err)
		return
	}
	nodes, note := f.nodes, f.note
	if len(nodes) == 0 {
		b.WriteString("  no node takes pods: all are unschedulable or tainted\n")
		return
	}
	for _, d := range largest {
		trial := "the largest trial"
		if d.set != "" {
			trial += " on " + d.set
		}
		if left := place(d, nodes); len(left) > 0 {
			fmt.Fprintf(b, "  %s does not fit on %s%s: no room for %s\n", trial, count(len(nodes), "node"), note, strings.Join(left, " and "))
			continue
		}
		fmt.Fprintf(b, "  %s fits on %s%s\n", trial, count(len(nodes), "node"), note)
	}
}

// place puts the pods with the greatest requests first, each onto the first node with room. It
// returns the pods that found no room.
func place(d demand, nodes []node) (left []string) {
	groups := slices.Clone(d.groups)
	slices.SortStableFunc(groups, func(a, b group) int {
		if c := b.cpu.Cmp(a.cpu); c != 0 {
			return c
		}
		return b.memory.Cmp(a.memory)
	})
	for _, g := range groups {
		missing := 0
		for range g.pods {
			i := slices.IndexFunc(nodes, func(n node) bool {
				return n.takes(g.where) && !(g.apart && n.apart) && n.pods > 0 && n.cpu.Cmp(g.cpu) >= 0 && n.memory.Cmp(g.memory) >= 0
			})
			if i < 0 {
				missing++
				continue
			}
			nodes[i].pods--
			nodes[i].apart = nodes[i].apart || g.apart
			nodes[i].cpu.Sub(g.cpu)
			nodes[i].memory.Sub(g.memory)
		}
		if missing > 0 {
			left = append(left, fmt.Sprintf("%d of %s", missing, count(g.pods, g.what+" pod"))+onNodes(g.where)+alone(g.apart))
		}
	}
	return left
}

// onNodes describes the nodes for pods that want these labels.
func onNodes(where map[string]string) string {
	text := ""
	if pool := where[v1alpha1.LabelPool]; pool != "" {
		text = " in pool " + pool
	}
	for _, label := range slices.Sorted(maps.Keys(where)) {
		if label != v1alpha1.LabelPool {
			text += fmt.Sprintf(" on nodes with %s=%s", label, where[label])
		}
	}
	return text
}

func alone(apart bool) string {
	if !apart {
		return ""
	}
	return ", one on each node"
}

// podsPerNode is the default of the kubelet.
const podsPerNode = 110

// parseNodes reads COUNTxCPUxMEMORY.
func parseNodes(texts []string) ([]node, error) {
	var nodes []node
	for _, text := range texts {
		parts := strings.SplitN(text, "x", 3)
		bad := fmt.Errorf("--nodes %s is not COUNTxCPUxMEMORY, such as 6x8x32Gi", text)
		if len(parts) != 3 {
			return nil, bad
		}
		n, errN := strconv.Atoi(parts[0])
		cpu, errCPU := resource.ParseQuantity(parts[1])
		memory, errMemory := resource.ParseQuantity(parts[2])
		if errN != nil || errCPU != nil || errMemory != nil || n < 1 || n > 10000 {
			return nil, bad
		}
		for range n {
			nodes = append(nodes, node{name: text, cpu: cpu.DeepCopy(), memory: memory.DeepCopy(), pods: podsPerNode, imagined: true})
		}
	}
	return nodes, nil
}

// clusterNodes returns the free resources of the nodes: the allocatable resources less the requests
// of the pods there. If the user may not list all pods, it returns the allocatable resources and a
// note.
func clusterNodes(ctx context.Context, s *session.Session) (nodes []node, note string, err error) {
	cluster, err := s.Connect()
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	var list corev1.NodeList
	if err := cluster.Client.List(ctx, &list); err != nil {
		return nil, "", fmt.Errorf("list nodes: %w", err)
	}
	for _, n := range list.Items {
		pool := n.Labels[v1alpha1.LabelPool]
		own := func(t corev1.Taint) bool { return t.Key == v1alpha1.LabelPool && t.Value == pool && pool != "" }
		if n.Spec.Unschedulable || slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule && !own(t) }) {
			continue
		}
		nodes = append(nodes, node{name: n.Name, cpu: n.Status.Allocatable.Cpu().DeepCopy(), memory: n.Status.Allocatable.Memory().DeepCopy(), pods: int(n.Status.Allocatable.Pods().Value()),
			labels: n.Labels, dedicated: slices.ContainsFunc(n.Spec.Taints, own)})
	}
	var pods corev1.PodList
	if err := cluster.Client.List(ctx, &pods); err != nil {
		return nodes, " if nothing else runs there (their pods could not be listed)", nil
	}
	for _, p := range pods.Items {
		i := slices.IndexFunc(nodes, func(n node) bool { return n.name == p.Spec.NodeName })
		if i < 0 || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		cpu, memory := queue.Requests(&p.Spec)
		nodes[i].cpu.Sub(cpu)
		nodes[i].memory.Sub(memory)
		nodes[i].pods--
	}
	return nodes, " of the cluster, beside what runs there now", nil
}
