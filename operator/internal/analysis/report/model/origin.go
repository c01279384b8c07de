package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/results"
)

// partAgent is what Assay adds to the pods of every part, in the list of images.
const partAgent = "agent"

// originSum collects what trials ran on. The zero value is empty.
type originSum struct {
	images               map[string]map[string]bool // by part
	kernels, cpus, nodes map[string]bool
	machines             map[string]map[string]bool // nodes by how they are set
	// Versions of software.
	managers, agents, kubernetes, software map[string]bool
}

func (o *originSum) add(t results.Trial) {
	if o.images == nil {
		o.images, o.kernels, o.cpus, o.nodes = map[string]map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
		o.machines = map[string]map[string]bool{}
		o.managers, o.agents, o.kubernetes, o.software = map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	}
	if s := t.Software; s != nil {
		manager := s.Manager
		if s.ManagerImage != "" {
			manager += ", " + s.ManagerImage
		}
		o.managers[manager], o.kubernetes[s.Kubernetes] = true, true
	}
	for _, p := range t.Pods {
		if p.Agent != "" {
			o.agents[p.Agent] = true
		}
		if p.NodeSoftware != "" {
			o.software[p.NodeSoftware] = true
		}
		if o.images[p.Part] == nil {
			o.images[p.Part] = map[string]bool{}
		}
		for image := range strings.SplitSeq(p.Images, ",") {
			o.images[p.Part][strings.TrimSpace(image)] = true
		}
		if p.AgentImage != "" {
			if o.images[partAgent] == nil {
				o.images[partAgent] = map[string]bool{}
			}
			o.images[partAgent][p.AgentImage] = true
		}
		o.kernels[p.Kernel], o.nodes[p.Node] = true, true
		if p.CPUModel != "" {
			o.cpus[fmt.Sprintf("%d x %s", p.CPUs, p.CPUModel)] = true
		}
		if set := settings(p.Machine); set != "" {
			if o.machines[set] == nil {
				o.machines[set] = map[string]bool{}
			}
			o.machines[set][p.Node] = true
		}
	}
}

// provenance is nil when no pod was seen.
func (o *originSum) provenance() *results.Provenance {
	if len(o.images) == 0 {
		return nil
	}
	known := func(set map[string]bool) []string {
		return slices.DeleteFunc(slices.Sorted(maps.Keys(set)), func(s string) bool { return s == "" })
	}
	p := &results.Provenance{
		Images: map[string][]string{}, Kernels: known(o.kernels), CPUs: known(o.cpus), Nodes: known(o.nodes),
		Managers: known(o.managers), Agents: known(o.agents), Kubernetes: known(o.kubernetes), NodeSoftware: known(o.software),
	}
	for part, images := range o.images {
		p.Images[part] = known(images)
	}
	for _, set := range slices.Sorted(maps.Keys(o.machines)) {
		p.Machines = append(p.Machines, strings.Join(known(o.machines[set]), ", ")+": "+set)
	}
	return p
}

// SoftwareRows name versions of software, for people.
func SoftwareRows(p results.Provenance) [][2]string {
	return [][2]string{
		{"Assay's manager", strings.Join(p.Managers, "; ")}, {"Assay's agents", strings.Join(p.Agents, ", ")},
		{"Kubernetes", strings.Join(p.Kubernetes, ", ")}, {"nodes run", strings.Join(p.NodeSoftware, "; ")},
	}
}

// settings writes how a machine is set, in the order of the names.
func settings(machine map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(machine)) {
		all = append(all, name+"="+machine[name])
	}
	return strings.Join(all, ", ")
}
