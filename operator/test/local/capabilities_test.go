package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A replica that listens on port 87 needs NET_BIND_SERVICE. It gets the capability if the user
// allows it. Otherwise the plan names it.
func TestAReplicaHasTheCapabilityThatTheUserAllows(t *testing.T) {
	dir := t.TempDir()
	args := []string{"--set", "repetitions.min=1", "-f", "testdata/crash.yaml", "-f", systemOnALowPort(t)}
	const refusal = "System basil: spec.replicas.containers[0] (basil).capabilities[0]: NET_BIND_SERVICE: allow it with --local-capabilities NET_BIND_SERVICE"
	for _, verb := range []string{"plan", "run"} {
		if out, said, code := run(t, dir, append([]string{verb}, args...)...); code == 0 || !strings.Contains(said+out, refusal) {
			t.Errorf("%s without the flag: exit code %d, want an error with %q:\n%s\n%s", verb, code, refusal, said, out)
		}
	}
	out, said, code := run(t, dir, append([]string{"run", "--wait", "--local-capabilities", "NET_BIND_SERVICE"}, args...)...)
	if !judged(code) || !strings.Contains(out, "2 of 2 planned trials valid") {
		t.Fatalf("exit code %d\n%s\n%s", code, said, out)
	}
}

// systemOnALowPort is a file with Basil, whose replicas listen on port 87 as root with one
// capability.
func systemOnALowPort(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../experiments/systems/basil.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer(
		"{name: peer, port: 7087}", "{name: peer, port: 87}",
		"      command:\n      - /basil\n      - replica\n", "      runAsUser: 0\n      capabilities: [NET_BIND_SERVICE]\n      command:\n      - /basil\n      - replica\n",
	).Replace(string(text))
	file := filepath.Join(t.TempDir(), "basil.yaml")
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
