package render

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
)

var update = flag.Bool("update", false, "write testdata/pods anew")

// The files show what pods of trials need from a node and from its policy engines. Tests of
// hack/policies compare them with the rules of policy engines, which this module does not import.
func TestPodsAreAsInTheirFiles(t *testing.T) {
	of := types.NamespacedName{Namespace: "papers", Name: "exp-0a1b-3"}
	settings := PodSettings{
		Tolerations: []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}, PriorityClassName: "batch", RuntimeClassName: "crun",
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}}, TopologyKey: corev1.LabelTopologyZone,
	}
	for name, pods := range map[string]map[string]*corev1.PodSpec{
		"shaping-none":          owned(t, v1alpha1.ShapingNone, PodSettings{}),
		"shaping-none-settings": owned(t, v1alpha1.ShapingNone, settings),
		"users-of-namespace":    owned(t, v1alpha1.ShapingNone, PodSettings{Users: UsersOfNamespace}),
		"shaped":                owned(t, v1alpha1.ShapingAllowed, PodSettings{}),
		"ssh-machines":          machines(t),
		"resets-a-node":         {"machine": &MachinePod(of, "uid", "node-a", Environment{AgentImage: "agent:1", Namespace: "assay-system"}).Spec},
	} {
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			for _, what := range slices.Sorted(maps.Keys(pods)) {
				pod, err := yaml.Marshal(corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: what}, Spec: *pods[what]})
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&text, "---\n%s", pod)
			}
			file := filepath.Join("testdata", "pods", name+".yaml")
			if *update {
				if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), text.String()); diff != "" {
				t.Errorf("pods are not as in %s, which -update writes anew (-want +got):\n%s", file, diff)
			}
		})
	}
}

// machines returns the pods of the artifact systems/sweep, which a script drives over SSH.
func machines(t *testing.T) map[string]*corev1.PodSpec {
	t.Helper()
	system, spec := sweep(t)
	spec.Network.Shaping = v1alpha1.ShapingNone
	o, err := NewObjects(placement.NewLayout("papers", "exp-0a1b-3", spec, system), spec, system, Environment{AgentImage: "agent:1"})
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]*corev1.PodSpec{}
	for _, template := range o.Templates() {
		pods[template.What] = template.Spec
	}
	return pods
}
