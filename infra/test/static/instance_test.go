package static

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/infra/test/terraform"
)

// obedient stands for ssh to machines that do everything they are told, and prints the expected
// text.
const obedient = "#!/bin/sh\ncat >/dev/null\necho client-key-data\n"

// A change of a key or a volume makes a new machine behind the same address. Nothing noticed: apply
// was complete, and the cluster was gone.
func TestAnotherMachineBehindAnAddressIsTakenInAgain(t *testing.T) {
	stubs := t.TempDir()
	if err := os.WriteFile(filepath.Join(stubs, "ssh"), []byte(obedient), 0o700); err != nil {
		t.Fatal(err)
	}
	host := func(address, role string) object {
		return object{"address": address, "user": "root", "port": 22, "role": role, "region": "a", "zone": "a", "node_labels": object{"a": "b"}, "node_taints": []object{}, "instance": nil}
	}
	hosts := func(head, r1 any) object {
		all := object{"head": host("192.0.2.10", "control-plane"), "r1": host("192.0.2.11", "worker"), "r2": host("192.0.2.12", "worker")}
		all["head"].(object)["instance"], all["r1"].(object)["instance"] = head, r1
		return all
	}
	for module, tc := range map[string]struct {
		variables  object
		worker, cp []string // what is replaced with a new worker, and with a new control plane
	}{
		"modules/ssh-nodes": {
			variables: object{"kubernetes_version": "1.36.3", "ssh": object{"known_hosts_file": filepath.Join(stubs, "known")}},
			worker:    []string{`machine["r1"]`, `prepared["r1"]`}, cp: []string{`machine["head"]`, `prepared["head"]`},
		},
		"modules/kubeadm-cluster": {
			variables: object{
				"kubernetes_version": "1.36.3", "kubeconfig_file": filepath.Join(stubs, "kubeconfig"), "pod_network": filepath.Join(stubs, "ssh"),
				"ssh": object{"known_hosts_file": filepath.Join(stubs, "known")},
			},
			worker: []string{`labels["r1"]`, `node["r1"]`},
			cp:     []string{"control_plane", "kubeconfig", `labels["head"]`, `labels["r1"]`, `labels["r2"]`, `node["r1"]`, `node["r2"]`, "pod_network"},
		},
	} {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			d := terraform.Initialised(t, module)
			d.Env("PATH=" + stubs + ":" + os.Getenv("PATH"))
			with := func(head, r1 any) string {
				vars := maps.Clone(tc.variables)
				vars["hosts"] = hosts(head, r1)
				return d.Variables(t, vars)
			}
			replaced := func(vars string) []string {
				var all []string
				for _, m := range regexp.MustCompile(`(?m)^  # terraform_data\.(\S+) must be replaced`).FindAllStringSubmatch(d.Must(t, "plan", "-no-color", vars), -1) {
					all = append(all, m[1])
				}
				slices.Sort(all)
				return all
			}
			// Those who name no instance have states without one.
			d.Must(t, "apply", "-auto-approve", "-no-color", with(nil, nil))
			state, err := os.ReadFile(filepath.Join(d.Path, "terraform.tfstate"))
			if triggers := regexp.MustCompile(`"triggers_replace": \{\s*"value": \{[^}]*"address": [^}]*\}`).FindAllString(string(state), -1); err != nil || len(triggers) < 3 ||
				strings.Contains(strings.Join(triggers, " "), `"instance"`) {
				t.Errorf("the state of hosts without an instance (%v): %q", err, triggers)
			}
			d.Must(t, "apply", "-auto-approve", "-no-color", with("i-0", "i-1"))
			for name, c := range map[string]struct {
				vars string
				want []string
			}{
				"the same":              {with("i-0", "i-1"), nil},
				"another worker":        {with("i-0", "i-2"), tc.worker},
				"another control plane": {with("i-3", "i-1"), tc.cp},
			} {
				if diff := cmp.Diff(c.want, replaced(c.vars)); diff != "" {
					t.Errorf("%s: what is replaced (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}
