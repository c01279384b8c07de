package render

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Template is a group of pods of a trial that are alike.
type Template struct {
	// Kind of the pods: replica, client, prepare, or the name of a component.
	What string
	// Pods has an entry for each pod: its name, if the name is known before the pod exists.
	Pods   []string
	Labels map[string]string
	Spec   *corev1.PodSpec
}

// Templates lists all pods that the objects will make.
func (o *Objects) Templates() []Template {
	var out []Template
	for _, set := range o.Servers {
		t := Template{What: WhatOf(set.Labels), Labels: set.Spec.Template.Labels, Spec: &set.Spec.Template.Spec}
		for i := range *set.Spec.Replicas {
			t.Pods = append(t.Pods, fmt.Sprintf("%s-%d", set.Name, i))
		}
		out = append(out, t)
	}
	if o.Prepare != nil {
		out = append(out, Template{What: "prepare", Pods: []string{o.Prepare.Name}, Labels: o.Prepare.Spec.Template.Labels, Spec: &o.Prepare.Spec.Template.Spec})
	}
	for _, job := range o.Clients {
		clients := Template{What: "client", Labels: job.Spec.Template.Labels, Spec: &job.Spec.Template.Spec}
		for i := range *job.Spec.Parallelism {
			clients.Pods = append(clients.Pods, fmt.Sprintf("%s-%d", job.Name, i))
		}
		out = append(out, clients)
	}
	return out
}
