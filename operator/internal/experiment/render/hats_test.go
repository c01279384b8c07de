package render

import (
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// HATS finds the replicas of a record by a server's place in all_hosts, which must be its place in
// the ring. Its scheduler starts only if a server's seeds for the run differ from its seeds at
// boot, its own address aside. In a ring with one server more than seeds, a list of all servers
// would not change for the last one: it would never get a policy.
func TestServersOfHATSKnowTheRingAndGetOtherSeeds(t *testing.T) {
	for _, f := range []int32{2, 3, 9} {
		for _, scheme := range []string{"hats", "mlsm"} {
			t.Run(fmt.Sprintf("%s on %d servers", scheme, f+1), func(t *testing.T) {
				pods, hosts := hatsServers(t, f, scheme)
				for i, pod := range pods {
					node := struct {
						InitialToken string `json:"initial_token"`
						TokenRanges  string `json:"token_ranges"`
						AllHosts     string `json:"all_hosts"`
						Enabled      bool   `json:"enable_hats"`
					}{}
					text := hatsFile(t, pod, "node.yaml")
					// A token has more digits than the YAML reader keeps.
					text = strings.ReplaceAll(text, "initial_token: ", "initial_token: !!str ")
					if err := yaml.Unmarshal([]byte(text), &node); err != nil {
						t.Fatalf("%v in\n%s", err, text)
					}
					if node.AllHosts != strings.Join(hosts, ",") || node.Enabled != (scheme == "hats") {
						t.Errorf("server %d has all_hosts %q, enable_hats %v", i, node.AllHosts, node.Enabled)
					}
					tokens := strings.Split(node.TokenRanges, ",")
					if len(tokens) != len(hosts) || tokens[i] != node.InitialToken {
						t.Errorf("server %d has the token %s of %s", i, node.InitialToken, node.TokenRanges)
					}
					// The script computes 2^64/n*i - 2^63 in floating point, and rounds it. A ring
					// needs no exact numbers.
					want := new(big.Int).Lsh(big.NewInt(int64(i)), 64)
					want.Div(want, big.NewInt(int64(len(hosts)))).Sub(want, new(big.Int).Lsh(big.NewInt(1), 63))
					got, ok := new(big.Int).SetString(node.InitialToken, 10)
					if !ok || new(big.Int).Abs(want.Sub(want, got)).Cmp(big.NewInt(64)) > 0 {
						t.Errorf("server %d has the token %s", i, node.InitialToken)
					}
					before, after := hatsSeeds(t, pod, "boot.yaml"), hatsSeeds(t, pod, "run.yaml")
					delete(before, hosts[i])
					delete(after, hosts[i])
					if len(after) == 0 || fmt.Sprint(before) == fmt.Sprint(after) {
						t.Errorf("server %d boots with the seeds %v and runs with %v", i, before, after)
					}
				}
			})
		}
	}
}

// hatsServers renders the servers of a trial of experiments/hats/originals.yaml.
func hatsServers(t *testing.T, f int32, scheme string) (pods []*Pod, hosts []string) {
	t.Helper()
	experiments := filepath.Join("..", "..", "..", "..", "experiments")
	system, exp := v1alpha1.System{}, v1alpha1.Experiment{}
	for path, into := range map[string]any{"systems/hats.yaml": &system, "hats/originals.yaml": &exp} {
		text, err := os.ReadFile(filepath.Join(experiments, path))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Fatal(err)
		}
	}
	exp.Spec.Topology.F = f
	exp.Spec.Sweep[0].Values = []v1alpha1.Value{v1alpha1.NewValue(scheme)}
	exp.Spec.Claims, exp.Spec.Profiles, exp.Spec.Reported = nil, nil, nil
	p, errs := plan.Expand(&exp, map[string]v1alpha1.SystemSpec{"hats": system.Spec})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	spec := p.Points[0].Template
	l := placement.NewLayout("ns", "trial", &spec, &system.Spec)
	for i := range l.Servers {
		l.Servers[i].IP = fmt.Sprintf("192.0.2.%d", 200-i) // not in the order of the ring
		hosts = append(hosts, l.Servers[i].IP)
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
		pods = append(pods, pod)
	}
	return pods, hosts
}

func hatsFile(t *testing.T, pod *Pod, name string) string {
	t.Helper()
	for _, f := range pod.Files {
		if f.Path == "/config/"+name {
			return string(f.Content)
		}
	}
	t.Fatalf("the server has no %s", name)
	return ""
}

func hatsSeeds(t *testing.T, pod *Pod, name string) map[string]bool {
	t.Helper()
	file := struct {
		Provider []struct {
			Parameters []struct {
				Seeds string `json:"seeds"`
			} `json:"parameters"`
		} `json:"seed_provider"`
	}{}
	if err := yaml.Unmarshal([]byte(hatsFile(t, pod, name)), &file); err != nil || len(file.Provider) != 1 || len(file.Provider[0].Parameters) != 1 {
		t.Fatalf("%s: %v, %+v", name, err, file)
	}
	seeds := map[string]bool{}
	for _, seed := range strings.Split(file.Provider[0].Parameters[0].Seeds, ",") {
		seeds[seed] = true
	}
	return seeds
}
