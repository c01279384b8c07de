package scripts

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// kubeadm refused hosts with names like 101 or 12e4: in its configuration they were numbers.
func TestNamesThatLookLikeNumbers(t *testing.T) {
	for script, function := range map[string]string{"init.sh": "node_configuration", "join.sh": "configuration"} {
		for _, name := range []string{"101", "12e4", "0x1f", "no", "r1"} {
			text, err := os.ReadFile(filepath.Join(root, "infra/modules/kubeadm-cluster/remote", script))
			if err != nil {
				t.Fatal(err)
			}
			// All of the script but that it runs.
			definitions, _, found := strings.Cut(string(text), "\nmain </dev/null")
			if !found {
				t.Fatalf("%s does not end as all scripts do", script)
			}
			cmd := exec.Command("bash", "-c", definitions+"\n"+function)
			cmd.Env = append(os.Environ(), "NAME="+name, "INTERNAL=192.0.2.11", "PREFLIGHT=NumCPU", "ENDPOINT=192.0.2.10:6443", "TOKEN=t", "CA=c", "TAINTS=[]")
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: %v", script, err)
			}
			document, _, _ := strings.Cut(string(out), "\n---")
			text, err = yaml.ToJSON([]byte(document))
			if err != nil {
				t.Fatalf("%s: %v:\n%s", script, err, document)
			}
			var got struct{ NodeRegistration struct{ Name any } }
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if got.NodeRegistration.Name != name {
				t.Errorf("%s: the node's name is %#v, want %q", script, got.NodeRegistration.Name, name)
			}
		}
	}
}

// A control plane without kubectl, with software = "present", was made and then not found to be
// ready.
func TestControlPlaneNeedsKubectl(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bash, filepath.Join(root, "infra/modules/kubeadm-cluster/remote/init.sh"))
	cmd.Env = []string{"PATH=" + t.TempDir(), "POD_CIDR=10.244.0.0/16", "CONFIGURATION=", "VERSION=1.36.3", "NAME=head", "INTERNAL=", "PREFLIGHT="}
	if out, err := cmd.CombinedOutput(); err == nil || !strings.HasPrefix(string(out), "refused: there is no program kubectl.") {
		t.Errorf("%v: %s", err, out)
	}
}
