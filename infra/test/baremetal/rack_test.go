package baremetal

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// rack is a set of containers that stand for machines (hack/infra/rack.sh). Terraform reaches them
// by SSH; the test itself uses docker, to play with them and to look at what is left.
type rack struct {
	name      string
	key       string // private key file
	addresses map[string]string
}

func newRack(t *testing.T, names ...string) *rack {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("machines are privileged containers: needs root")
	}
	r := &rack{name: "assay-rack-test", key: filepath.Join(t.TempDir(), "key"), addresses: map[string]string{}}
	command(t, time.Minute, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "rack", "-f", r.key)
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 4*time.Minute)
		defer stop()
		if out, err := r.script(ctx, "down").CombinedOutput(); err != nil {
			t.Errorf("machines are left: %v\n%s", err, out)
		}
	})
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Minute) // the image may have to be built
	defer stop()
	cmd := r.script(ctx, append([]string{"up", r.key + ".pub"}, names...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("rack.sh up: %v\n%s", err, stderr.Bytes())
	}
	for line := range strings.Lines(string(out)) {
		name, address, _ := strings.Cut(strings.TrimSpace(line), " ")
		r.addresses[name] = address
	}
	return r
}

func (r *rack) script(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(root, "hack", "infra", "rack.sh"), args...)
	cmd.Env = append(os.Environ(), "RACK="+r.name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return cmd
}

// on runs a script on a machine, as a user at its console would.
func (r *rack) on(t *testing.T, machine, script string) string {
	t.Helper()
	return command(t, 3*time.Minute, "docker", "exec", r.name+"-"+machine, "bash", "-c", script)
}

func (r *rack) powerOff(t *testing.T, machine string) {
	t.Helper()
	command(t, 2*time.Minute, "docker", "kill", r.name+"-"+machine)
}

// powerOn returns when sshd answers.
func (r *rack) powerOn(t *testing.T, machine string) {
	t.Helper()
	command(t, 2*time.Minute, "docker", "start", r.name+"-"+machine)
	command(t, 3*time.Minute, "timeout", "150", "bash", "-c",
		fmt.Sprintf("until read -r -t 2 line </dev/tcp/%s/22 && [[ $line = SSH-* ]]; do sleep 0.3; done 2>/dev/null", r.addresses[machine]))
}

// traces lists, line by line, all that a cluster could leave on a machine: files with their sums,
// packet filter rules, routes, interfaces, images, services, kernel settings. Not what is new at
// each boot of a container: its machine-id, the ports of docker's name server.
func (r *rack) traces(t *testing.T, machine string) []string {
	t.Helper()
	out := r.on(t, machine, `
		find /etc /usr/local /opt /root/.ssh -xdev -type f ! -path /etc/machine-id -exec sha256sum {} + | sed 's/^/file /'
		find /etc/kubernetes /etc/cni /var/lib/kubelet /var/lib/etcd /var/lib/cni /var/lib/assay /run/assay /run/flannel -mindepth 1 -not -type d 2>/dev/null | sed 's/^/left /'
		iptables-save | grep -E '^-A' | grep -v 'DOCKER_OUTPUT\|DOCKER_POSTROUTING' | sed 's/^/iptables /'
		nft list tables | grep -vE 'ip6? (filter|nat|mangle|raw)$' | sed 's/^/nft /'
		ip -4 route show table all | grep -v '^local\|^broadcast' | sed 's/^/route /'
		ip -o link show | awk -F '[ @:]+' '{ print "link " $2 }'
		ctr -n k8s.io images ls -q 2>/dev/null | sed 's/^/image /'
		ctr -n k8s.io containers ls -q 2>/dev/null | sed 's/^/container /'
		for u in kubelet assay-machine; do echo "service $u $(systemctl is-active $u)"; done
		echo "containerd nofile $(awk '/^Max open files/ { print $4, $5 }' /proc/$(systemctl show -p MainPID --value containerd)/limits)"
		for f in net/ipv4/ip_forward net/bridge/bridge-nf-call-iptables fs/inotify/max_user_instances; do echo "sysctl $f $(cat /proc/sys/$f 2>/dev/null)"; done
		for p in kubelet kube-proxy kindnetd kube-apiserver etcd; do pgrep -x $p | sed "s/.*/process $p/"; done; true`)
	all := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(all)
	return all
}

// command wants success and returns what was printed.
func command(t *testing.T, within time.Duration, name string, args ...string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), within) // also of cleanups
	defer stop()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
