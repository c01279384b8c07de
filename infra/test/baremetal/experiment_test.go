package baremetal

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const namespace = "evaluation"

// The evaluation that the README promises, at smoke size: replicas and clients each on the pool that is theirs.
func (s *site) experiment(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "experiments", "failure-fp.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const clients = "  clients: {loop: Closed, nodes: 2}\n"
	text := strings.Replace(string(b), clients, clients+"  placement: {replicas: replicas, clients: clients}\n  profile: smoke\n", 1)
	if text == string(b) {
		t.Fatal("experiments/failure-fp.yaml has changed: where does placement go?")
	}
	// Once is enough to see where it runs.
	if strings.Count(text, "repetitions: {min: 3}") != 2 {
		t.Fatal("experiments/failure-fp.yaml has changed: how often is each point run?")
	}
	text = strings.ReplaceAll(text, "repetitions: {min: 3}", "repetitions: {min: 1}")
	// Nor does it matter here what others get of the processors.
	if !strings.Contains(text, "steal: 10%") {
		t.Fatal("experiments/failure-fp.yaml has changed: what may be stolen?")
	}
	text = strings.ReplaceAll(text, "steal: 10%", "steal: 100%")
	s.kubectl(t, "create", "namespace", namespace)
	s.kubectl(t, "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=privileged")
	basil, err := filepath.Abs(filepath.Join(root, "experiments", "systems", "basil.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s.kubectl(t, "-n", namespace, "apply", "-f", basil)
	s.create(t, text)

	ran := map[string]map[string]bool{} // part -> pools of the nodes that such pods were on
	pools := map[string]string{}
	for name, n := range s.nodes(t) {
		pools[name] = n.Metadata.Labels["assay.dev/pool"]
	}
	deadline := time.Now().Add(15 * time.Minute) // four minutes on two idle cores
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
		time.Sleep(3 * time.Second) // between looks at pods that live for half a minute
	}
	want := map[string]map[string]bool{"replica": {"replicas": true}, "client": {"clients": true}, "prepare": {"clients": true}}
	if ran["prepare"] == nil { // lives for seconds
		delete(want, "prepare")
	}
	if diff := cmp.Diff(want, ran); diff != "" {
		t.Errorf("pools of the pods' nodes by part (-want +got):\n%s", diff)
	}
	s.verdicts(t)
	s.kubectl(t, "delete", "namespace", namespace, "--timeout=3m")
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

// placed says on which nodes the pods of trials are, by part.
func (s *site) placed(t *testing.T) map[string][]string {
	t.Helper()
	nodes := map[string][]string{}
	for line := range strings.Lines(s.kubectl(t, "-n", namespace, "get", "pods", "-l", "assay.dev/part",
		"-o", `jsonpath={range .items[*]}{.metadata.labels.assay\.dev/part} {.spec.nodeName}{"\n"}{end}`)) {
		if f := strings.Fields(line); len(f) == 2 {
			nodes[f[0]] = append(nodes[f[0]], f[1])
		}
	}
	return nodes
}

// verdicts checks that the evaluation ended with measurements. What they are worth on two shared cores is for the end-to-end tests to say.
func (s *site) verdicts(t *testing.T) {
	t.Helper()
	var experiment struct {
		Status struct {
			Claims []struct{ Name, Verdict, Message string }
		}
	}
	if err := json.Unmarshal([]byte(s.kubectl(t, "-n", namespace, "get", "experiment", "failure-fp", "-o", "json")), &experiment); err != nil {
		t.Fatal(err)
	}
	judged := 0
	for _, c := range experiment.Status.Claims {
		t.Logf("%s: %s: %s", c.Name, c.Verdict, c.Message)
		if slices.Contains([]string{"Reproduced", "NotReproduced", "Inconclusive"}, c.Verdict) {
			judged++
		}
	}
	if judged < 3 {
		t.Errorf("%d claims have been judged, want the three of the smoke profile", judged)
	}
}
