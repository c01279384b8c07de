package render

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

func TestProcessorsOfContainers(t *testing.T) {
	for text, want := range map[string]int{"": 0, "0": 0, "3": 3, "{{add 1 .Parameters.batch}}": 2, "{{if false}}1{{end}}": 0} {
		system, spec := kvSystem(), kvTrial()
		system.Parameters = append(system.Parameters, v1alpha1.Parameter{Name: "batch", Type: v1alpha1.ParameterInteger})
		spec.Parameters["batch"] = v1alpha1.NewValue("1")
		system.Replicas.Containers[0].Processors = text
		trial := resolved(t, spec, system)
		pod, err := trial.Server(trial.Layout.Servers[0])
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		if p := pod.Directive.Containers[0].Processors; p != nil {
			got = p.Count
		}
		if got != want {
			t.Errorf("%q gives %d processors, want %d", text, got, want)
		}
	}
	for _, text := range []string{"two", "-1", "4097", "1.5"} {
		system := kvSystem()
		system.Replicas.Containers[0].Processors = text
		trial := resolved(t, kvTrial(), system)
		if _, err := trial.Server(trial.Layout.Servers[0]); err == nil || !strings.Contains(err.Error(), "spec.replicas.containers[0].processors") || !strings.Contains(err.Error(), "a whole number from 0 to 4096") {
			t.Errorf("%q gives the error %v", text, err)
		}
	}
}

// No two containers on a node share a processor, if it has enough. Containers on other nodes do not
// matter.
func TestProcessorsAreAssignedByNode(t *testing.T) {
	pod := func(counts ...int) *Pod {
		p := &Pod{}
		for _, n := range counts {
			c := protocol.Container{}
			if n > 0 {
				c.Processors = &protocol.Processors{Count: n}
			}
			p.Directive.Containers = append(p.Directive.Containers, c)
		}
		return p
	}
	pods := map[string]*Pod{"r-0": pod(4, 0, 1), "r-1": pod(4), "r-2": pod(2), "c-0": pod(3)}
	there := map[string]*corev1.Pod{}
	for name, node := range map[string]string{"r-0": "a", "r-1": "b", "r-2": "a", "c-0": "a"} {
		there[name] = &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}}
	}
	AssignProcessors(pods, there)
	for name, want := range map[string]int{"c-0": 0, "r-0": 3, "r-1": 0, "r-2": 8} {
		if got := pods[name].Directive.Containers[0].Processors.After; got != want {
			t.Errorf("the first container of %s has processors after %d, want %d", name, got, want)
		}
	}
	if got := pods["r-0"].Directive.Containers[2].Processors.After; got != 7 {
		t.Errorf("the third container of r-0 has processors after %d, want 7", got)
	}
}
