package render

import (
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// The Systems of Eiger once rendered "initial_token:0", without the space that YAML needs, so that
// none of their servers started on a cluster. Tokens must equal those of the artifact's script:
// n*2^127/N + d for server n of N in data centre d.
func TestEigersServersHaveTheirPlaceInTheRing(t *testing.T) {
	experiments := filepath.Join("..", "..", "..", "..", "experiments")
	text, err := os.ReadFile(filepath.Join(experiments, "eiger-port", "threads.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"eiger-port", "eiger"} {
		raw, err := os.ReadFile(filepath.Join(experiments, "systems", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		system := v1alpha1.System{}
		if err := yaml.UnmarshalStrict(raw, &system); err != nil {
			t.Fatal(err)
		}
		for _, shards := range []int32{1, 2, 4, 8} {
			exp := v1alpha1.Experiment{}
			if err := yaml.UnmarshalStrict(text, &exp); err != nil {
				t.Fatal(err)
			}
			exp.Spec.Systems, exp.Spec.Claims, exp.Spec.Profiles, exp.Spec.Reported = []v1alpha1.SystemReference{{Name: name}}, nil, nil, nil
			exp.Spec.Topology.Shards = shards
			p, errs := plan.Expand(&exp, map[string]v1alpha1.SystemSpec{name: system.Spec})
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			spec := p.Points[0].Template
			l := placement.NewLayout("ns", "trial", &spec, &system.Spec)
			for i := range l.Servers {
				l.Servers[i].IP = "192.0.2.1"
			}
			trial, err := NewTrial(&spec, &system.Spec, l)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range l.Servers {
				pod, err := trial.Server(r)
				if err != nil {
					t.Fatal(err)
				}
				want := new(big.Int).Lsh(big.NewInt(int64(r.Shard)), 127)
				want.Div(want, big.NewInt(int64(shards))).Add(want, big.NewInt(int64(r.Index)))
				if got := tokenOf(t, pod); got.Cmp(want) != 0 {
					t.Errorf("%s, %d shards: shard %d in data centre %d has the token %v, want %v", name, shards, r.Shard, r.Index, got, want)
				}
			}
		}
	}
}

var tokenLine = regexp.MustCompile(`(?m)^initial_token: ([0-9]+)$`)

// tokenOf reads a server's cassandra.yaml. A token has more digits than the YAML reader keeps.
func tokenOf(t *testing.T, pod *Pod) *big.Int {
	t.Helper()
	for _, f := range pod.Files {
		if f.Path != "/config/cassandra.yaml" {
			continue
		}
		config := map[string]any{}
		if err := yaml.Unmarshal(f.Content, &config); err != nil || config["initial_token"] == nil {
			t.Fatalf("%v: no token in\n%s", err, f.Content)
		}
		token, ok := new(big.Int), false
		if m := tokenLine.FindSubmatch(f.Content); m != nil {
			token, ok = token.SetString(string(m[1]), 10)
		}
		if !ok {
			t.Fatalf("no token in\n%s", f.Content)
		}
		return token
	}
	t.Fatal("the server has no cassandra.yaml")
	return nil
}
