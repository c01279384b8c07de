package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/manifest"
	"assay.dev/assay/operator/internal/experiment/placement"
	planner "assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/queue"
	"assay.dev/assay/operator/internal/experiment/render"
)

// group is a number of pods that are alike.
type group struct {
	what        string
	where       map[string]string // labels of the nodes
	apart       bool              // each pod needs a node without other pods that are apart
	pods        int
	cpu, memory resource.Quantity // requests of one pod
}

// demand is what the largest trial of an experiment needs at one time. It leaves the prepare step
// out, which ends before other pods start.
type demand struct {
	point  string
	set    string // set of nodes; empty: there are no sets
	groups []group
}

// demandsOf renders every point's objects on each set of nodes, as the controller does. It returns
// the demands of all points, and the largest demand on each set. Images and addresses are made up,
// since they do not change the demand. Agents count with their default requests.
func demandsOf(p *planner.Plan, set *manifest.Set) (largest, all []demand, err error) {
	for on := range p.AtOnce() {
		there, err := demandsOn(p, set, on)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, there...)
		most := there[0]
		for _, d := range there[1:] {
			if d.exceeds(most) {
				most = d
			}
		}
		largest = append(largest, most)
	}
	return largest, all, nil
}

func demandsOn(p *planner.Plan, set *manifest.Set, on int) (all []demand, err error) {
	for i := range p.Points {
		trial := p.On(i, on)
		system := set.Systems[trial.System.Name]
		layout := placement.NewLayout(set.Experiment.Namespace, set.Experiment.Name, &trial, &system)
		objects, err := render.NewObjects(layout, &trial, &system, render.Environment{
			AgentImage: "agent", AgentResources: render.DefaultAgentResources(), CoordinatorAddress: "manager:8443",
		})
		if err != nil {
			return nil, fmt.Errorf("render the objects of point %s: %w", coordinates(p, int32(i)), err)
		}
		d := demandOf(objects)
		d.point, d.set = coordinates(p, int32(i)), trial.NodeSet
		all = append(all, d)
	}
	return all, nil
}

func demandOf(objects *render.Objects) demand {
	var d demand
	add := func(what string, pods int32, spec corev1.PodSpec) {
		cpu, memory := queue.Requests(&spec)
		d.groups = append(d.groups, group{what: what, where: spec.NodeSelector, apart: isApart(spec.Affinity), pods: int(pods), cpu: cpu, memory: memory})
	}
	for _, set := range objects.Servers {
		add(render.WhatOf(set.Labels), orOne(set.Spec.Replicas), set.Spec.Template.Spec)
	}
	for _, job := range objects.Clients {
		add("client", orOne(job.Spec.Parallelism), job.Spec.Template.Spec)
	}
	return d.merged()
}

// isApart reports whether a pod needs a node without other such pods. It looks for the label of the
// pod's type. Clients that keep away from machines which a fault resets have a rule of another
// kind.
func isApart(a *corev1.Affinity) bool {
	if a == nil || a.PodAntiAffinity == nil {
		return false
	}
	return slices.ContainsFunc(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, func(t corev1.PodAffinityTerm) bool {
		return slices.ContainsFunc(t.LabelSelector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == v1alpha1.LabelPodType })
	})
}

func orOne(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// merged joins groups that are alike: those of several shards and regions.
func (d demand) merged() demand {
	var out []group
	for _, g := range d.groups {
		i := slices.IndexFunc(out, func(o group) bool {
			return o.what == g.what && maps.Equal(o.where, g.where) && o.apart == g.apart && o.cpu.Cmp(g.cpu) == 0 && o.memory.Cmp(g.memory) == 0
		})
		if i < 0 {
			out = append(out, g)
			continue
		}
		out[i].pods += g.pods
	}
	d.groups = out
	return d
}

func (d demand) total() (pods int, cpu, memory resource.Quantity) {
	for _, g := range d.groups {
		pods += g.pods
		for range g.pods {
			cpu.Add(g.cpu)
			memory.Add(g.memory)
		}
	}
	return pods, cpu, memory
}

// exceeds compares two demands by CPU, then memory, then pods.
func (d demand) exceeds(e demand) bool {
	pods, cpu, memory := d.total()
	otherPods, otherCPU, otherMemory := e.total()
	return cmp.Or(cpu.Cmp(otherCPU), memory.Cmp(otherMemory), pods-otherPods) > 0
}

func (d demand) write(b *strings.Builder, atOnce int) {
	run := "trials run one at a time"
	if atOnce > 1 {
		run = fmt.Sprintf("%d trials run at once, each on its own set of nodes", atOnce)
	}
	fmt.Fprintf(b, "\nPods of the largest trial (%s)\n\n", d.point)
	for _, g := range d.groups {
		fmt.Fprintf(b, "  %-16s each asks for CPU %s, memory %s\n", count(g.pods, g.what+" pod")+onNodes(g.where)+alone(g.apart), asked(g.cpu), asked(g.memory))
	}
	_, cpu, memory := d.total()
	fmt.Fprintf(b, "  together: CPU %s, memory %s (%s)\n", asked(cpu), asked(memory), run)
	if cpu.IsZero() {
		b.WriteString("  No container asks for CPU, so nothing keeps pods from sharing cores with each other and with other work.\n")
	}
}

func asked(q resource.Quantity) string {
	if q.IsZero() {
		return "nothing"
	}
	return q.String()
}
