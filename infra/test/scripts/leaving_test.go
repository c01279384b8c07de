package scripts

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sshToHosts stands for ssh: a host whose file in ssh/ has a reason gives it, any other one does what it is told.
const sshToHosts = `#!/bin/bash
dir=${0%/*/*}
host=${*: -2:1}
host=${host#*@}
if [[ -e $dir/ssh/$host ]]; then cat "$dir/ssh/$host" >&2; exit 255; fi
cat >/dev/null
echo "$host: ${*: -1}" >>"$dir/done"
`

// leave runs a script that Terraform runs here at destroy, for r1 and its control plane, and returns what it printed and its exit code.
func (m *machine) leave(t *testing.T, script string) (string, int) {
	t.Helper()
	m.program(t, "ssh", sshToHosts)
	cmd := exec.Command("bash", filepath.Join(root, "infra/modules", script))
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(m.dir, "stubs")+":"+os.Getenv("PATH"), "SSH_KEY_FILE=", "SSH_KNOWN_HOSTS=known", "SSH_JUMP=", "SSH_WAIT=0",
		"SSH_DEAD=0", "NODE_NAME=r1", "NODE_ADDRESS=192.0.2.11", "NODE_PORT=22", "NODE_USER=ops", "CP_NAME=head", "CP_ADDRESS=192.0.2.10", "CP_PORT=22", "CP_USER=ops", "DRAIN=5")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// With an empty SSH agent, destroy took every living machine for dead: it let them go as they were, said that all was well, and forgot them.
func TestOnlyTheDeadAreLetGo(t *testing.T) {
	const node, controlPlane = "ssh/192.0.2.11", "ssh/192.0.2.10"
	scripts := map[string]string{
		"ssh-nodes/scripts/release.sh": "is let go as it is", "kubeadm-cluster/scripts/end.sh": "is given up as it is", "kubeadm-cluster/scripts/leave.sh": "the machine is left as it is",
	}
	for name, tc := range map[string]struct {
		why  string
		want string // the sentence that ends it, or none for a dead machine
	}{
		"switched off":          {why: "ssh: connect to host 192.0.2.11 port 22: Connection timed out"},
		"another network":       {why: "ssh: connect to host 192.0.2.11 port 22: No route to host"},
		"nothing said":          {},
		"no key":                {why: "ops@192.0.2.11: Permission denied (publickey).", want: "error: host r1 (ops@192.0.2.11, port 22) refuses this user or key"},
		"too many keys":         {why: "Received disconnect from 192.0.2.11 port 22:2: Too many authentication failures", want: "refuses this user or key"},
		"another host key":      {why: "Host key verification failed.", want: "has another SSH host key than last time"},
		"sudo wants a password": {why: "sudo: a password is required", want: "may not become root without a password"},
	} {
		for script, warning := range scripts {
			t.Run(name+"/"+script, func(t *testing.T) {
				m := newMachine(t, map[string]string{node: tc.why}, "")
				out, code := m.leave(t, script)
				if tc.want == "" && (code != 0 || !strings.Contains(out, warning)) {
					t.Errorf("exit code %d; it is dead and should be let go with a warning: %s", code, out)
				}
				if tc.want != "" && (code != 1 || !strings.Contains(out, tc.want) || !strings.Contains(out, "terraform state rm")) {
					t.Errorf("exit code %d; want an error with %q and a way out: %s", code, tc.want, out)
				}
			})
		}
	}
	t.Run("the control plane has no key", func(t *testing.T) {
		m := newMachine(t, map[string]string{controlPlane: "ops@192.0.2.10: Permission denied (publickey)."}, "")
		if out, code := m.leave(t, "kubeadm-cluster/scripts/leave.sh"); code != 1 || !strings.Contains(out, "error: host head (ops@192.0.2.10, port 22) refuses this user or key") {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
	t.Run("the control plane is switched off", func(t *testing.T) {
		m := newMachine(t, map[string]string{controlPlane: "ssh: connect to host 192.0.2.10 port 22: Connection timed out"}, "")
		if out, code := m.leave(t, "kubeadm-cluster/scripts/leave.sh"); code != 0 || !strings.Contains(out, "r1 is not drained") || !strings.Contains(out, "r1: has left") {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
	t.Run("all live", func(t *testing.T) {
		m := newMachine(t, nil, "")
		for script := range scripts {
			if out, code := m.leave(t, script); code != 0 || strings.Contains(out, "warning") {
				t.Errorf("%s: exit code %d: %s", script, code, out)
			}
		}
	})
}
