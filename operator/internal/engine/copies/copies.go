// Package copies reports the copies of data sets that a trial's pods began with.
package copies

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/node/dataset"
)

const (
	// slowestDisk is the least speed at which a node copies, in bytes per second.
	slowestDisk = 20 << 20
	// slowestFiles is the least speed in files per second.
	slowestFiles = 200
)

// Limit is how much more time to start the pods of a trial get for their data sets. A pod copies
// its data sets one after the other. All pods of a node copy at the same time.
func Limit(spec *v1alpha1.TrialSpec) (limit time.Duration) {
	for _, set := range spec.Datasets {
		limit += time.Duration(set.Bytes/slowestDisk+set.Files/slowestFiles) * time.Second
	}
	return limit * time.Duration(max(1, int(spec.Topology.Shards))*perShard(spec)+int(spec.Clients.Nodes))
}

func perShard(spec *v1alpha1.TrialSpec) (n int) {
	for _, region := range spec.Topology.Regions {
		n += int(region.Replicas)
	}
	return n
}

// Of returns the copies, from the reports of the init containers. The pods must run. Each container
// compared its copy with the digest that the trial's spec has for its node, and fails if they
// differ.
func Of(spec *v1alpha1.TrialSpec, pods map[string]*corev1.Pod) (all []v1alpha1.DatasetCopies) {
	for _, set := range spec.Datasets {
		c := v1alpha1.DatasetCopies{Name: set.Name}
		for _, p := range pods {
			for _, s := range p.Status.InitContainerStatuses {
				var copied dataset.Copied
				t := s.State.Terminated
				if s.Name != render.DatasetCopyPrefix+set.Name || t == nil || json.Unmarshal([]byte(t.Message), &copied) != nil || copied.Digest != set.DigestOn(p.Spec.NodeName) {
					continue
				}
				add(&c, &copied)
			}
		}
		if c.Copies > 0 {
			all = append(all, c)
		}
	}
	return all
}

// Refused returns the first pod, by name, that may not have its copy, and the message of its
// container.
func Refused(spec *v1alpha1.TrialSpec, pods map[string]*corev1.Pod) (pod, why string) {
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		p := pods[name]
		if p == nil {
			continue
		}
		for _, set := range spec.Datasets {
			for _, s := range p.Status.InitContainerStatuses {
				// The kubelet may have begun another attempt.
				for _, t := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
					if s.Name == render.DatasetCopyPrefix+set.Name && t != nil && t.ExitCode == dataset.ExitRefused {
						return name, strings.TrimPrefix(strings.TrimSpace(t.Message), "agent: ")
					}
				}
			}
		}
	}
	return "", ""
}

func add(c *v1alpha1.DatasetCopies, copied *dataset.Copied) {
	check := v1alpha1.DatasetCheckSizes
	if copied.Content {
		check = v1alpha1.DatasetCheckContent
	}
	switch {
	case c.Copies == 0:
		c.Method, c.Check, c.FastestMilliseconds = copied.Method, check, copied.Milliseconds
	case c.Method != copied.Method:
		c.Method = dataset.MethodMixed
	}
	c.Copies++
	c.Bytes = max(c.Bytes, copied.Bytes)
	c.FastestMilliseconds, c.SlowestMilliseconds = min(c.FastestMilliseconds, copied.Milliseconds), max(c.SlowestMilliseconds, copied.Milliseconds)
}
