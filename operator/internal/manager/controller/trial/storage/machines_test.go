package storage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/testcluster"
)

func TestResultsSayHowMachinesAreSet(t *testing.T) {
	env := testcluster.InProcess(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "prepared",
		Labels: map[string]string{
			"assay.dev/pool": "servers", "topology.kubernetes.io/region": "us-east-1", "machine.assay.dev/smt": "off", "kubernetes.io/arch": "amd64",
		},
		Annotations: map[string]string{"machine.assay.dev/not-set": "turbo: no such file", "other": "x"},
	}}
	if err := env.Client.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	trial := &results.Trial{Pods: []results.Pod{{Name: "a", Node: "prepared"}, {Name: "b", Node: "gone"}, {Name: "c"}, {Name: "d", Node: "prepared"}}}
	Results{Reader: env.Client}.nameMachines(t.Context(), trial)
	set := map[string]string{"pool": "servers", "region": "us-east-1", "smt": "off", "not-set": "turbo: no such file"}
	want := []results.Pod{{Name: "a", Node: "prepared", Machine: set}, {Name: "b", Node: "gone"}, {Name: "c"}, {Name: "d", Node: "prepared", Machine: set}}
	if diff := cmp.Diff(want, trial.Pods); diff != "" {
		t.Errorf("pods differ (-want +got):\n%s", diff)
	}
}
