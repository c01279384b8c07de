package render

import (
	"slices"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/podsecurity"
)

// Nodes pull the images of their pods, under the same names and users.
func TestNodesPullTheImagesOfTheirPods(t *testing.T) {
	system, spec := dataSystem(), withData(kvTrial())
	spec.Placement.Replicas, spec.Placement.Clients = "big", "small"
	env := Environment{AgentImage: "agent", ImageRegistry: "registry.example.org/mirror", AgentResources: DefaultAgentResources()}
	pulls, err := Pulls("ns", "exp-0a1b-3", spec, system, env)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, p := range pulls {
		for _, i := range p.Images {
			found[p.NodeSelector[v1alpha1.LabelPool]] = append(found[p.NodeSelector[v1alpha1.LabelPool]], i.Image)
		}
	}
	o, err := NewObjects(placement.NewLayout("ns", "exp-0a1b-3", spec, system), spec, system, env)
	if err != nil {
		t.Fatal(err)
	}
	for _, template := range o.Templates() {
		pool := template.Spec.NodeSelector[v1alpha1.LabelPool]
		for _, c := range template.Spec.Containers {
			if !slices.Contains(found[pool], c.Image) {
				t.Errorf("nodes of pool %q do not pull %s", pool, c.Image)
			}
		}
	}
	if len(found) != 2 || !slices.IsSorted(found["big"]) || len(slices.Compact(slices.Clone(found["big"]))) != len(found["big"]) {
		t.Errorf("the images are %v, want those of two pools, each once", found)
	}

	// A node of both pools pulls the images of both by one Job.
	both := Pull{}
	for _, p := range pulls {
		both.Join(p)
	}
	job := PullJob("ns", "exp", "node-1", both.Images, env, 60)
	pod := job.Spec.Template.Spec
	if len(pod.Containers) != len(both.Images) || pod.InitContainers[0].Image != "agent" {
		t.Errorf("the pod has %d containers for %d images, after %s", len(pod.Containers), len(both.Images), pod.InitContainers[0].Image)
	}
	refusal, err := podsecurity.Check(map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}, &pod)
	if err != nil || refusal != nil {
		t.Errorf("a restricted namespace refuses the pod: %v %v", refusal, err)
	}
	if len(job.Name) > 63 || job.Name == PullJobName("exp", "node-2", both.Images) || job.Name == PullJobName("exp", "node-1", pulls[0].Images) {
		t.Errorf("the Job is called %s: too long, or like the Job of another node or of other images", job.Name)
	}
}
