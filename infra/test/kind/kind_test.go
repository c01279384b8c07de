// Package kind applies infra/kind for real: a cluster of containers with pools and regions, changed
// and destroyed. It needs docker.
package kind

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/infra/test/terraform"
)

const (
	name = "assay-infra-kind"
	// timeout of one command. A cluster takes half a minute on an idle machine; an image that must
	// be built first, twenty.
	timeout = 20 * time.Minute
)

type object = map[string]any

func variables(second string) object {
	return object{
		"name":    name,
		"pools":   object{"servers": object{}, second: object{"taint": false}},
		"regions": []string{"us-east-1", "eu-west-1"},
		"workers": []object{{"pool": "servers", "region": "us-east-1"}, {"pool": second, "region": "eu-west-1", "zone": "b"}},
	}
}

func TestKind(t *testing.T) {
	if err := exec.CommandContext(t.Context(), "docker", "version").Run(); err != nil {
		t.Skipf("docker does not answer: %v", err)
	}
	d := terraform.Copy(t, "kind")
	d.Timeout = timeout
	d.Init(t)
	vars := d.Variables(t, variables("clients"))
	t.Cleanup(func() {
		// Also what a failed apply left; nothing to do after a good destroy.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), timeout)
		defer cancel()
		if out, err := d.RunContext(ctx, t, "destroy", "-auto-approve", "-no-color", vars); err != nil {
			t.Errorf("destroy: %v\n%s", err, out)
		}
		if left := containers(ctx, t); left != "" {
			t.Errorf("containers are left: %s", left)
		}
	})
	d.Must(t, "apply", "-auto-approve", "-no-color", vars)

	want := map[string]string{
		name + "-control-plane": "  us-east-1 us-east-1 node-role.kubernetes.io/control-plane=:NoSchedule",
		name + "-worker":        "servers us-east-1 us-east-1 assay.dev/pool=servers:NoSchedule",
		name + "-worker2":       "clients eu-west-1 b",
	}
	if diff := cmp.Diff(trimmed(want), nodes(t, d)); diff != "" {
		t.Errorf("nodes, each with pool, region, zone, taint (-want +got):\n%s", diff)
	}
	var pools map[string]struct{ Nodes []string }
	if err := json.Unmarshal(d.Outputs(t)["pools"], &pools); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{name + "-worker2"}, pools["clients"].Nodes); diff != "" {
		t.Errorf("output pools (-want +got):\n%s", diff)
	}
	if out := d.Must(t, "plan", "-no-color", vars); !strings.Contains(out, "No changes.") {
		t.Errorf("a second apply would change something:\n%s", out)
	}

	// Another pool for one node is a matter of its labels.
	vars = d.Variables(t, variables("observers"))
	if out := d.Must(t, "apply", "-auto-approve", "-no-color", vars); !strings.Contains(out, "1 added, 0 changed, 1 destroyed") {
		t.Errorf("another pool changed more than one node:\n%s", out)
	}
	want[name+"-worker2"] = "observers eu-west-1 b"
	if diff := cmp.Diff(trimmed(want), nodes(t, d)); diff != "" {
		t.Errorf("nodes with another pool (-want +got):\n%s", diff)
	}
}

// nodes are the cluster's, by name: pool, region, zone and taints.
func nodes(t *testing.T, d *terraform.Dir) map[string]string {
	t.Helper()
	var kubeconfig string
	if err := json.Unmarshal(d.Outputs(t)["kubeconfig"], &kubeconfig); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	const format = `{range .items[*]}{.metadata.name}{"\t"}{.metadata.labels.assay\.dev/pool} {.metadata.labels.topology\.kubernetes\.io/region} {.metadata.labels.topology\.kubernetes\.io/zone}` +
		`{range .spec.taints[*]} {.key}={.value}:{.effect}{end}{"\n"}{end}`
	kubectl := filepath.Join(filepath.Dir(kubeconfig), "bin", "kubectl")
	out, err := exec.CommandContext(ctx, kubectl, "--kubeconfig", kubeconfig, "--request-timeout=30s", "get", "nodes", "-o", "jsonpath="+format).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl get nodes: %v\n%s", err, out)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(out)) {
		node, rest, _ := strings.Cut(line, "\t")
		all[node] = rest
	}
	return trimmed(all)
}

func trimmed(values map[string]string) map[string]string {
	clean := map[string]string{}
	for k, v := range values {
		clean[k] = strings.Join(strings.Fields(v), " ")
	}
	return clean
}

func containers(ctx context.Context, t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(ctx, "docker", "ps", "-a", "--filter", "label=io.x-k8s.kind.cluster="+name, "--format", "{{.Names}}").CombinedOutput()
	if err != nil {
		t.Errorf("docker ps: %v\n%s", err, out)
	}
	return strings.Join(strings.Fields(string(out)), ", ")
}
