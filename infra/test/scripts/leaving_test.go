package scripts

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sshToHosts stands for ssh: a host whose file in ssh/ has a reason gives it, any other one does
// what it is told.
const sshToHosts = `#!/bin/bash
dir=${0%/*/*}
for arg; do
	if [[ $arg = ProxyCommand=* ]]; then proxy=${arg#*=}; fi
	if [[ $arg = -W ]]; then printf '%s\n' "$@" >"$dir/jump"; exit; fi
done
if [[ -n ${proxy:-} ]]; then sh -c "$proxy"; fi
host=${*: -2:1}
host=${host#*@}
if [[ -e $dir/ssh/$host ]]; then cat "$dir/ssh/$host" >&2; exit 255; fi
cat >/dev/null
echo "$host: ${*: -1}" >>"$dir/done"
`

// leave runs a script that Terraform runs here at destroy, for r1 and its control plane, and
// returns what it printed and its exit code.
func (m *machine) leave(t *testing.T, script string, env ...string) (string, int) {
	t.Helper()
	m.program(t, "ssh", sshToHosts)
	cmd := exec.Command("bash", filepath.Join(root, "infra/modules", script))
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(m.dir, "stubs")+":"+os.Getenv("PATH"), "SSH_KEY_FILE=", "SSH_KNOWN_HOSTS=known", "SSH_JUMP=", "SSH_WAIT=0",
		"SSH_DEAD=0", "NODE_NAME=r1", "NODE_ADDRESS=192.0.2.11", "NODE_PORT=22", "NODE_USER=ops", "CP_NAME=head", "CP_ADDRESS=192.0.2.10", "CP_PORT=22", "CP_USER=ops", "DRAIN=5")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// With an empty SSH agent, destroy took every living machine for dead: it let them go as they were,
// said that all was well, and forgot them.
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

// The jump host got neither the key nor a place for its host key. So ssh.proxy_jump worked only for
// users with both in ~/.ssh.
func TestJumpHost(t *testing.T) {
	jump := []string{"SSH_JUMP=ops@jump.example.org:2222", "SSH_KEY_FILE=/keys/a key%", "SSH_KNOWN_HOSTS=/lab/known_hosts"}
	m := newMachine(t, nil, "")
	if out, code := m.leave(t, "ssh-nodes/scripts/release.sh", jump...); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	b, err := os.ReadFile(filepath.Join(m.dir, "jump"))
	if err != nil {
		t.Fatal(err)
	}
	// %% and the host's address and port are ssh's to replace.
	want := []string{"BatchMode=yes", "StrictHostKeyChecking=accept-new", "UserKnownHostsFile=/lab/known_hosts ~/.ssh/known_hosts", "-i", "/keys/a key%%", "-p", "2222", "-W", "%h:%p"}
	got := strings.Split(strings.TrimSpace(string(b)), "\n")
	for _, arg := range want {
		if !slices.Contains(got, arg) {
			t.Errorf("the jump host is not asked with %q: %q", arg, got)
		}
	}
	if slices.Contains(got, "IdentitiesOnly=yes") {
		t.Errorf("a key of the agent's is not good for the jump host: %q", got)
	}
	if last := got[len(got)-1]; last != "ops@jump.example.org" {
		t.Errorf("the jump host is %q", last)
	}

	const closed = "\nkex_exchange_identification: Connection closed by remote host"
	for why, want := range map[string]string{
		"ssh: connect to host jump.example.org port 2222: Connection timed out" + closed: "which does not let us through (ssh: connect to host jump.example.org port 2222: Connection timed out)",
		"ops@jump.example.org: Permission denied (publickey)." + closed:                  "which does not let us through (ops@jump.example.org: Permission denied (publickey).)",
		"Host key verification failed." + closed:                                         "which does not let us through (Host key verification failed.)",
		"ops@192.0.2.11: Permission denied (publickey).":                                 "refuses this user or key",
		"stdio forwarding failed" + closed:                                               "",
	} {
		m := newMachine(t, map[string]string{"ssh/192.0.2.11": why}, "")
		out, code := m.leave(t, "ssh-nodes/scripts/release.sh", jump...)
		if want == "" && (code != 0 || !strings.Contains(out, "is let go as it is")) || want != "" && (code != 1 || !strings.Contains(out, want)) {
			t.Errorf("%q: exit code %d, want a sentence with %q: %s", why, code, want, out)
		}
	}
}
