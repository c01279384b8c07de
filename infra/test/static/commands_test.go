package static

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"assay.dev/assay/infra/test/terraform"
)

// The command that writes a lost kubeconfig again lost Assay's release: the helm provider, without
// a cluster, believed that it was gone.
func TestALostKubeconfigIsWrittenWithoutAssay(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(terraform.Infra(t), "modules/kubeadm-cluster/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile("terraform apply ([^`\n]*-replace=[^`\n]*)").FindAllStringSubmatch(string(text), -1)
	if len(commands) != 1 {
		t.Fatalf("the README has %d commands that replace something: %q", len(commands), commands)
	}
	d := terraform.Initialised(t, "bare-metal")
	plan := d.Must(t, append([]string{"plan", "-no-color", "-var-file=example.tfvars"}, strings.Fields(commands[0][1])...)...)
	if !strings.Contains(plan, "# module.cluster.terraform_data.kubeconfig will be created") {
		t.Errorf("terraform apply %s does not write the kubeconfig:\n%s", commands[0][1], plan)
	}
	if strings.Contains(plan, "module.assay") {
		t.Errorf("terraform apply %s asks about Assay:\n%s", commands[0][1], plan)
	}
}
