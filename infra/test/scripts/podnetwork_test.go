package scripts

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The manifest of the CNI plugin was applied as cluster-admin, whatever its URL gave.
func TestThePodNetworkIsTheOneOfItsChecksum(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	const manifest = "net-conf: 10.244.0.0/16\n"
	sum := sha256.Sum256([]byte(manifest))
	right, wrong := hex.EncodeToString(sum[:]), strings.Repeat("0", 64)
	for name, tc := range map[string]struct {
		manifest, url string
		applied, want string
	}{
		"a file":                  {manifest: strings.TrimSpace(manifest), url: "flannel.yml", applied: "net-conf: 10.9.0.0/16\n"},
		"a URL":                   {url: "https://example.org/flannel.yml", applied: "net-conf: 10.9.0.0/16\n"},
		"a URL with its checksum": {url: "https://example.org/flannel.yml#sha256=" + right, applied: "net-conf: 10.9.0.0/16\n"},
		"another checksum":        {url: "https://example.org/flannel.yml#sha256=" + wrong, want: "has the SHA-256 checksum " + right + ", and pod_network names " + wrong},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for program, text := range map[string]string{
				"curl": `[ "$6" = https://example.org/flannel.yml ] && cat "$ROOT/served"`, "kubectl": `cat >"$ROOT/applied"`,
			} {
				if err := os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, "served"), []byte(manifest), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(bash, filepath.Join(root, "infra/modules/kubeadm-cluster/remote/pod-network.sh"))
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "ROOT="+dir, "MANIFEST="+tc.manifest, "URL="+tc.url, "POD_CIDR=10.9.0.0/16")
			out, err := cmd.CombinedOutput()
			if (err != nil) != (tc.want != "") || !strings.Contains(string(out), tc.want) {
				t.Errorf("%v: %q, want %q", err, out, tc.want)
			}
			applied, err := os.ReadFile(filepath.Join(dir, "applied"))
			if string(applied) != tc.applied {
				t.Errorf("applied %q (%v), want %q", applied, err, tc.applied)
			}
		})
	}
}
