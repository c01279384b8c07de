// Package static checks infra/ without a machine: format, validity, plans of the examples,
// refusals, rendered files, and modules against mocks of their providers' real schemas.
package static

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/infra/test/terraform"
)

var update = flag.Bool("update", false, "write the golden files")

// folders with Terraform files, relative to infra/.
func folders(t *testing.T, pattern string) []string {
	t.Helper()
	infra := terraform.Infra(t)
	files, err := filepath.Glob(filepath.Join(infra, pattern, "versions.tf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no folder like %s: %v", pattern, err)
	}
	var dirs []string
	for _, f := range files {
		dir, err := filepath.Rel(infra, filepath.Dir(f))
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

func roots(t *testing.T) []string   { return folders(t, "*") }
func modules(t *testing.T) []string { return folders(t, "modules/*") }

func TestMain(m *testing.M) { os.Exit(terraform.Main(m)) }

func TestFormat(t *testing.T) {
	t.Parallel()
	d := terraform.Copy(t, ".")
	if out, err := d.Run(t, "fmt", "-check", "-recursive", "-diff"); err != nil {
		t.Errorf("terraform fmt -recursive infra would change:\n%s", out)
	}
}

func TestValidate(t *testing.T) {
	for _, dir := range slices.Concat(roots(t), modules(t)) {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			d := terraform.Initialised(t, dir)
			d.Must(t, "validate", "-no-color")
		})
	}
}

// Every module has an example that stands alone, is valid, and is named in the module's README.
func TestExamples(t *testing.T) {
	for _, module := range modules(t) {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			const example = "examples/basic"
			readme, err := os.ReadFile(filepath.Join(terraform.Infra(t), module, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(readme), "("+example+"/main.tf)") {
				t.Errorf("its README does not lead to %s/main.tf", example)
			}
			d := terraform.Initialised(t, filepath.Join(module, example))
			d.Must(t, "validate", "-no-color")
		})
	}
}

// tflint with all rules that it brings, see infra/.tflint.hcl.
func TestLint(t *testing.T) {
	program, err := exec.LookPath("tflint")
	if err != nil {
		t.Skip("tflint is not installed (hack/infra/tflint.sh builds it)")
	}
	d := terraform.Copy(t, ".")
	lint := func(more ...string) {
		t.Helper()
		cmd := exec.Command(program, append([]string{"--recursive", "--format=compact", "--config=" + filepath.Join(d.Path, ".tflint.hcl")}, more...)...)
		cmd.Dir = d.Path
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	lint("--disable-rule=terraform_standard_module_structure") // an example is one file
	examples, err := filepath.Glob(filepath.Join(d.Path, "modules", "*", "examples"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range examples {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	lint()
}

// Every root and module has what a reader expects, and every root the same outputs.
func TestShape(t *testing.T) {
	infra := terraform.Infra(t)
	configures := regexp.MustCompile(`(?m)^provider "`)
	for _, dir := range slices.Concat(roots(t), modules(t)) {
		for _, name := range []string{"main.tf", "variables.tf", "outputs.tf", "versions.tf", "README.md"} {
			if _, err := os.Stat(filepath.Join(infra, dir, name)); err != nil {
				t.Errorf("infra/%s: %v", dir, err)
			}
		}
		files, err := filepath.Glob(filepath.Join(infra, dir, "*.tf"))
		if err != nil || len(files) < 4 {
			t.Fatalf("infra/%s has the files %v (%v)", dir, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if configures.Match(text) && strings.HasPrefix(dir, "modules/") {
				t.Errorf("%s: a module configures a provider", file)
			}
		}
	}
	output := regexp.MustCompile(`(?m)^output "(\w+)"`)
	want := []string{"api_server", "kubeconfig", "nodes", "pools", "regions"}
	for _, root := range roots(t) {
		text, err := os.ReadFile(filepath.Join(infra, root, "outputs.tf"))
		if err != nil {
			t.Error(err)
			continue
		}
		var got []string
		for _, m := range output.FindAllStringSubmatch(string(text), -1) {
			got = append(got, m[1])
		}
		slices.Sort(got)
		for _, name := range want {
			if !slices.Contains(got, name) {
				t.Errorf("infra/%s has no output %s; it has %v", root, name, got)
			}
		}
		if _, err := os.Stat(filepath.Join(infra, root, "example.tfvars")); err != nil {
			t.Errorf("infra/%s: %v", root, err)
		}
	}
}

// A lock file names the tested versions. It has no hashes (see infra/README.md), so that it also
// fits the registry's builds.
func TestLockFiles(t *testing.T) {
	for _, root := range roots(t) {
		t.Run(root, func(t *testing.T) {
			t.Parallel()
			const lock = ".terraform.lock.hcl"
			before, err := os.ReadFile(filepath.Join(terraform.Infra(t), root, lock))
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			after, err := os.ReadFile(filepath.Join(terraform.Initialised(t, root).Path, lock))
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(versions(before), versions(after)); diff != "" {
				t.Errorf("infra/%s/.terraform.lock.hcl is not what init writes, without its hashes (-committed +init):\n%s", root, diff)
			}
			if regexp.MustCompile(`(?m)^\s*hashes\s*=`).Match(before) {
				t.Errorf("infra/%s/.terraform.lock.hcl has hashes: of whose builds?", root)
			}
		})
	}
}

// versions are the lines of a lock file that name providers and their versions.
func versions(lock []byte) []string {
	var lines []string
	for line := range strings.Lines(string(lock)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "provider ") || strings.HasPrefix(line, "version ") {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
	}
	return lines
}

// Roots whose providers need no server at the other end are planned as a user plans them, with
// their example.
func TestPlanOfExamples(t *testing.T) {
	for _, root := range roots(t) {
		t.Run(root, func(t *testing.T) {
			t.Parallel()
			d := terraform.Initialised(t, root)
			if _, err := os.Stat(filepath.Join(d.Path, "tests")); err == nil {
				// libvirt and OpenStack want a server even for a plan: with mocks of the real
				// schemas instead.
				out := d.Must(t, "test", "-no-color", "-var-file=example.tfvars")
				if !strings.Contains(out, "Success!") {
					t.Errorf("terraform test:\n%s", out)
				}
				return
			}
			wantPlan(t, d.Must(t, "plan", "-no-color", "-var-file=example.tfvars"))
		})
	}
}

// The machines of a CloudLab experiment are planned as bare-metal/cloudlab.md says.
func TestPlanOfCloudLab(t *testing.T) {
	d := terraform.Initialised(t, "bare-metal")
	wantPlan(t, d.Must(t, "plan", "-no-color", "-var-file=cloudlab.tfvars", "-var-file="+cloudlabHosts(t)))
}

// wantPlan wants what terraform plan printed to add resources only.
func wantPlan(t *testing.T, out string) {
	t.Helper()
	if !regexp.MustCompile(`Plan: [1-9]\d* to add, 0 to change, 0 to destroy`).MatchString(out) {
		t.Errorf("the plan of an empty state:\n%s", out)
	}
}

// cloudlabHosts is what kubectl assay hosts writes, kept as a golden file by that command's tests.
func cloudlabHosts(t *testing.T) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(terraform.Infra(t), "../operator/internal/cli/cloudlab/testdata/named-regions.golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	// Terraform wants to see from the name that it is JSON: .golden.json is not .tfvars.json.
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "hosts.tfvars.json")
	if err := os.WriteFile(copied, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return copied
}

// The modules' own tests, with mocks of the providers' real schemas.
func TestModules(t *testing.T) {
	for _, dir := range modules(t) {
		if files, _ := filepath.Glob(filepath.Join(terraform.Infra(t), dir, "tests", "*.tftest.hcl")); len(files) == 0 {
			continue
		}
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			d := terraform.Initialised(t, dir)
			out := d.Must(t, "test", "-no-color")
			if !regexp.MustCompile(`Success! [1-9]\d* passed, 0 failed\.`).MatchString(out) {
				t.Errorf("terraform test:\n%s", out)
			}
		})
	}
}

// Modules without providers are applied, and their outputs are compared with golden files.
func TestOutputsOfModulesWithoutProviders(t *testing.T) {
	for name, tc := range map[string]struct {
		module    string
		variables any
		outputs   map[string]string // output -> golden file
	}{
		"cloud-init": {module: "modules/cloud-init", variables: map[string]any{
			"name": "us-east-1-0", "ssh_authorized_keys": []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample you@there\n"},
			"network": map[string]any{"mac": "52:54:00:0A:0B:0C", "address": "10.17.3.11/24", "gateway": "10.17.3.1", "dns": []string{"192.0.2.53"}},
		}, outputs: map[string]string{"user_data": "user-data.yaml", "network_config": "network-config.yaml"}},
		"cloud-init with DHCP": {module: "modules/cloud-init", variables: map[string]any{
			"name": "client-0", "user": "ops", "ssh_authorized_keys": []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample \"quoted\": {x}"},
		}, outputs: map[string]string{"user_data": "user-data-dhcp.yaml", "network_config": "network-config-dhcp.yaml"}},
		"inventory": {module: "modules/inventory", variables: inventory(),
			outputs: map[string]string{"hosts": "hosts.json", "pools": "pools.json", "regions": "regions.json", "nodes": "nodes.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := terraform.Initialised(t, tc.module)
			d.Must(t, "apply", "-auto-approve", "-no-color", d.Variables(t, tc.variables))
			outputs := d.Outputs(t)
			for output, golden := range tc.outputs {
				compare(t, filepath.Join("testdata", golden), text(t, outputs[output]))
			}
		})
	}
}

// kubeadm gets the module's own rendering, of the inventory's hosts.
func TestKubeadmConfiguration(t *testing.T) {
	t.Parallel()
	in := terraform.Initialised(t, "modules/inventory")
	in.Must(t, "apply", "-auto-approve", "-no-color", in.Variables(t, inventory()))
	d := terraform.Initialised(t, "modules/kubeadm-cluster")
	got := d.Evaluate(t, "local.cluster_configuration", d.Variables(t, map[string]any{
		"hosts": in.Outputs(t)["hosts"], "kubernetes_version": "1.36.3", "kubeconfig_file": "kubeconfig",
		"kubelet_configuration": map[string]any{"failCgroupV1": false}, "kube_proxy_configuration": map[string]any{"mode": "nftables"},
	}))
	compare(t, filepath.Join("testdata", "kubeadm.yaml"), got)
}

// text is a string as it is and everything else as indented JSON.
func text(t *testing.T, value json.RawMessage) string {
	t.Helper()
	var s string
	if json.Unmarshal(value, &s) == nil && len(value) > 0 && value[0] == '"' {
		return s
	}
	var v any
	if len(value) > 0 {
		if err := json.Unmarshal(value, &v); err != nil {
			t.Fatal(err)
		}
	}
	indented, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(indented) + "\n"
}

func compare(t *testing.T, golden, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", golden, diff)
	}
}
