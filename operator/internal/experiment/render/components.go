package render

import (
	"cmp"
	"fmt"
	"strconv"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
)

// Component is one component of the System, in the form that templates use.
type Component struct {
	Name  string
	Count int // number of its pods
	// Pods in order of their index.
	Pods []placement.Replica
	// Hosts and IPs of the pods, in the same order.
	Hosts, IPs []string
	Ports      map[string]int // by name
}

// componentsOf returns the components of a System, by name. A template that uses another name
// fails.
func componentsOf(system *v1alpha1.SystemSpec, l *placement.Layout) map[string]Component {
	all := map[string]Component{}
	for _, c := range system.Components {
		pods := l.Group(c.Name)
		component := Component{Name: c.Name, Count: len(pods), Pods: pods, Ports: map[string]int{}}
		for _, p := range pods {
			component.Hosts, component.IPs = append(component.Hosts, p.Host), append(component.IPs, p.IP)
		}
		for _, p := range c.Ports {
			component.Ports[p.Name] = int(p.Port)
		}
		all[c.Name] = component
	}
	return all
}

// groupField is the path in the System's spec of the replicas, or of a component.
func groupField(system *v1alpha1.SystemSpec, component string) string {
	for i, c := range system.Components {
		if c.Name == component {
			return fmt.Sprintf("spec.components[%d]", i)
		}
	}
	return "spec.replicas"
}

// partOf returns the value of LabelPodType for a group's pods.
func partOf(component string) string {
	if component == "" {
		return v1alpha1.PodTypeReplica
	}
	return v1alpha1.PodTypeComponent
}

// ownLabels returns the labels of the pods of a set: names and values in turn, the part first. No
// pod of another set has all of them.
func ownLabels(set placement.Set) []string {
	if set.Component != "" {
		return []string{v1alpha1.LabelPodType, v1alpha1.PodTypeComponent, v1alpha1.LabelComponent, set.Component, v1alpha1.LabelRegion, set.Region}
	}
	return []string{v1alpha1.LabelPodType, v1alpha1.PodTypeReplica, v1alpha1.LabelShard, strconv.Itoa(set.Shard), v1alpha1.LabelRegion, set.Region}
}

// WhatOf names the kind of pods with these labels for people: the part, or the name of the
// component.
func WhatOf(labels map[string]string) string {
	return cmp.Or(labels[v1alpha1.LabelComponent], labels[v1alpha1.LabelPodType])
}
