package baremetal

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// One machine is dead. The others are given back as they were, and nothing hangs.
func (s *site) destroyed(t *testing.T, before map[string][]string) {
	s.powerOff(t, "r2")
	state, err := os.ReadFile(filepath.Join(s.Path, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	s.state = state
	start := time.Now()
	out := s.Must(t, "destroy", "-auto-approve", "-no-color")
	t.Logf("destroyed in %.0f s: %s", time.Since(start).Seconds(), summary(out))
	if !strings.Contains(out, "warning: host r2 ("+s.addresses["r2"]+") does not let us in") {
		t.Errorf("nothing is said about r2, which is dead:\n%s", out)
	}
	for _, name := range []string{"head", "r1", "c1", "c2"} {
		s.clean(t, name, before[name])
	}
	if _, err := os.Stat(filepath.Join(s.Path, "kubeconfig")); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig is left: %v", err)
	}
	if state := s.Must(t, "state", "list"); strings.TrimSpace(state) != "" {
		t.Errorf("the state still has\n%s", state)
	}
	s.nothingLeaks(t, "what Terraform printed, from the first apply to destroy", s.printed.String())
}

// The control plane is dead, too, so that Assay cannot be uninstalled. The steps that modules/assay
// names give the others back. This is done with the state from before the destroy above: to make a
// cluster once more takes minutes. Files on the machines tell that a cluster was there.
func (s *site) destroyedWithoutControlPlane(t *testing.T, before map[string][]string) {
	// Two dead machines are asked four times, one after the other: half as long will do.
	patience, less := []byte(`"SSH_DEAD": "30"`), []byte(`"SSH_DEAD": "15"`)
	if !bytes.Contains(s.state, patience) {
		t.Fatalf("the state does not say for how long a dead host is waited, %s", patience)
	}
	if err := os.WriteFile(filepath.Join(s.Path, "terraform.tfstate"), bytes.ReplaceAll(s.state, patience, less), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"r1", "c1"} {
		s.on(t, name, "mkdir -p /etc/assay /var/lib/assay; echo "+name+" >/var/lib/assay/host; touch /etc/assay/machine.env")
	}
	s.powerOff(t, "head")
	start := time.Now()
	s.Must(t, "state", "rm", "module.assay.helm_release.assay")
	out := s.Must(t, "destroy", "-refresh=false", "-auto-approve", "-no-color")
	t.Logf("destroyed in %.0f s: %s", time.Since(start).Seconds(), summary(out))
	for _, want := range []string{
		"warning: host head (" + s.addresses["head"] + ") does not let us in",
		"warning: the control plane head (" + s.addresses["head"] + ") does not let us in",
		"c1: released", "r1: released",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("this is not said: %s\n%s", want, out)
		}
	}
	for _, name := range []string{"r1", "c1"} {
		s.clean(t, name, before[name])
	}
	if state := s.Must(t, "state", "list"); strings.TrimSpace(state) != "" {
		t.Errorf("the state still has\n%s", state)
	}
}
