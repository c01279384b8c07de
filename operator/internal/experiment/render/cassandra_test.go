package render

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
)

// A node finds its records by its token. So the tokens are those of the loaded ring, as a test of
// systems/cassandra has them. Each node copies its own directory.
func TestNodesOfCassandraHaveTheTokensOfTheirFiles(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "experiments", "systems", "cassandra-ycsb.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	system := v1alpha1.System{}
	if err := yaml.UnmarshalStrict(text, &system); err != nil {
		t.Fatal(err)
	}
	spec := &v1alpha1.TrialSpec{Workload: "ycsb", Topology: v1alpha1.Topology{Shards: 1, Regions: []v1alpha1.Region{{Name: "local", Replicas: 3}}},
		Clients: v1alpha1.Clients{Loop: v1alpha1.LoopClosed, Nodes: 1, Count: 1}, Parameters: map[string]v1alpha1.Value{"nodes": v1alpha1.NewValue("3")}}
	for _, p := range append(system.Spec.Parameters, system.Spec.Workloads[0].Parameters...) {
		if spec.Parameters[p.Name] == (v1alpha1.Value{}) {
			spec.Parameters[p.Name] = *p.Default
		}
	}
	l := placement.NewLayout("ns", "trial", spec, &system.Spec)
	o, err := NewObjects(l, spec, &system.Spec, Environment{AgentImage: "agent"})
	if err != nil {
		t.Fatal(err)
	}
	trial, err := NewTrial(spec, &system.Spec, l)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"-9223372036854775806", "-3074457345618258602", "3074457345618258602"} {
		pod, err := trial.Server(l.Servers[i])
		if err != nil {
			t.Fatal(err)
		}
		if settings := string(pod.Files[0].Content); !strings.Contains(settings, "\nnum_tokens: 1\ninitial_token: "+want+"\npartitioner") {
			t.Errorf("node %d has the settings\n%s\nwant the token %s", i, settings, want)
		}
	}
	made := strings.Join(o.Servers[0].Spec.Template.Spec.InitContainers[0].Command, " ")
	if !strings.Contains(made, " --sub-path trial-s0-local-0=node-0 --sub-path trial-s0-local-1=node-1 --sub-path trial-s0-local-2=node-2") {
		t.Errorf("the files are copied by %q", made)
	}
}
