package baremetal

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
)

const namespace = "evaluation"

// One trial of the evaluation that the README promises, at smoke size: replicas and clients each on
// the pool that is theirs. Its measurements are for the end-to-end tests.
func (s *site) experiment(t *testing.T) {
	text := oneTrial(t)
	s.kubectl(t, "create", "namespace", namespace)
	s.kubectl(t, "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=privileged")
	basil, err := filepath.Abs(filepath.Join(root, "experiments", "systems", "basil.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s.kubectl(t, "-n", namespace, "apply", "-f", basil)
	s.create(t, text)

	ran := map[string]map[string]bool{} // type of pod -> pools of the nodes that such pods were on
	pools := map[string]string{}
	for name, n := range s.nodes(t) {
		pools[name] = n.Metadata.Labels["assay.dev/pool"]
	}
	deadline := time.Now().Add(8 * time.Minute) // one on two idle cores
	for !s.complete(t) {
		if time.Now().After(deadline) {
			t.Fatalf("the experiment does not end:\n%s", s.kubectl(t, "-n", namespace, "get", "experiments,trials,pods", "-o", "wide"))
		}
		for part, nodes := range s.placed(t) {
			for _, n := range nodes {
				if ran[part] == nil {
					ran[part] = map[string]bool{}
				}
				ran[part][pools[n]] = true
			}
		}
		time.Sleep(2 * time.Second) // between looks at pods that live for half a minute
	}
	want := map[string]map[string]bool{"replica": {"replicas": true}, "client": {"clients": true}, "prepare": {"clients": true}}
	if ran["prepare"] == nil { // lives for seconds
		delete(want, "prepare")
	}
	if diff := cmp.Diff(want, ran); diff != "" {
		t.Errorf("pools of the pods' nodes by type of pod (-want +got):\n%s", diff)
	}
	s.measured(t)
	s.kubectl(t, "delete", "namespace", namespace, "--timeout=3m")
}

// oneTrial is experiments/failure-fp.yaml with its first variant alone, placed on pools, and
// without claims.
func oneTrial(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "experiments", "failure-fp.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var experiment v1alpha1.Experiment
	if err := yaml.UnmarshalStrict(text, &experiment); err != nil {
		t.Fatal(err)
	}
	spec := &experiment.Spec
	spec.Placement = v1alpha1.Placement{Replicas: "replicas", Clients: "clients"}
	spec.Profile, spec.Claims, spec.Reported = "smoke", nil, nil
	smoke := &spec.Profiles[0]
	smoke.Disturbances = &v1alpha1.Disturbances{RetryFor: "3m", IdleWait: "0s"}
	smoke.Claims, smoke.Repetitions = nil, &v1alpha1.Repetitions{Min: 1}
	// Machines that are containers share two processors with everything else.
	bears := smoke.Tolerances
	bears.Contention = "100%"
	bears.Steal, bears.FaultLateness, bears.StartSpread, bears.ClockError, bears.LinkDelay = "100%", "1s", "1s", "500ms", "20ms"
	spec.Faults, spec.Sweep[1].Points = nil, spec.Sweep[1].Points[:1]
	if name := spec.Sweep[1].Points[0].Name; name != "ideal" {
		t.Fatalf("experiments/failure-fp.yaml has changed: its first variant is %q", name)
	}
	if text, err = yaml.Marshal(&experiment); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// create creates objects from YAML text.
func (s *site) create(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "object.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.kubectl(t, "-n", namespace, "create", "-f", file)
}

func (s *site) complete(t *testing.T) bool {
	t.Helper()
	return s.kubectl(t, "-n", namespace, "get", "experiment", "failure-fp", "-o", `jsonpath={.status.conditions[?(@.type=="Complete")].status}`) == "True"
}

// placed says on which nodes the pods of trials are, by type of pod.
func (s *site) placed(t *testing.T) map[string][]string {
	t.Helper()
	nodes := map[string][]string{}
	for line := range strings.Lines(s.kubectl(t, "-n", namespace, "get", "pods", "-l", "assay.dev/pod-type",
		"-o", `jsonpath={range .items[*]}{.metadata.labels.assay\.dev/pod-type} {.spec.nodeName}{"\n"}{end}`)) {
		if f := strings.Fields(line); len(f) == 2 {
			nodes[f[0]] = append(nodes[f[0]], f[1])
		}
	}
	return nodes
}

// measured checks that the evaluation ended with a valid trial.
func (s *site) measured(t *testing.T) {
	t.Helper()
	var experiment v1alpha1.Experiment
	if err := json.Unmarshal([]byte(s.kubectl(t, "-n", namespace, "get", "experiment", "failure-fp", "-o", "json")), &experiment); err != nil {
		t.Fatal(err)
	}
	if n := experiment.Status.Trials; n.Succeeded != 1 || n.Failed != 0 {
		t.Errorf("trials are %+v, want one that succeeded", n)
	}
}
