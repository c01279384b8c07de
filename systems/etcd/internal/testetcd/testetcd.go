// Package testetcd starts real etcd clusters on loopback, for tests.
package testetcd

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The timing of a cluster's elections: shorter than etcd's defaults, but long enough for a busy
// machine.
const (
	Heartbeat = 50 * time.Millisecond
	Election  = 500 * time.Millisecond
)

// patience is how long a cluster may take to be healthy.
const patience = 2 * time.Minute

// Cluster runs until its test ends.
type Cluster struct {
	Addresses []string // of clients, HOST:PORT, by index
	cmds      []*exec.Cmd
}

// Binary returns the etcd server that hack/without-registry/node-image builds, and skips the test
// when it is not built yet.
func Binary(t testing.TB) string {
	t.Helper()
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		if file := filepath.Join(assets, "etcd"); exists(file) {
			return file
		}
	}
	script := filepath.Join(root(t), "hack", "images", "program.sh")
	out, err := exec.Command(script, "--path", "hack/without-registry/node-image:etcd").Output()
	if err != nil {
		t.Skipf("no etcd: %s does not say where it is: %v", script, err)
	}
	file := strings.TrimSpace(string(out))
	if !exists(file) {
		t.Skip("no etcd: make envtest-assets builds it")
	}
	return file
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// root is the directory of go.mod.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for ; err == nil && dir != "/"; dir = filepath.Dir(dir) {
		if exists(filepath.Join(dir, "go.mod")) {
			return dir
		}
	}
	t.Fatalf("no go.mod above the test (%v)", err)
	return ""
}

// Start starts a cluster of this size and waits until all its members are healthy.
func Start(t testing.TB, size int) *Cluster {
	t.Helper()
	binary := Binary(t)
	addresses := freeAddresses(t, 2*size)
	clients, peers := addresses[:size], addresses[size:]
	var initial []string
	for i, p := range peers {
		initial = append(initial, fmt.Sprintf("etcd-%d=http://%s", i, p))
	}
	c := &Cluster{}
	dir := t.TempDir()
	for i := range size {
		url, peer := "http://"+clients[i], "http://"+peers[i]
		c.start(t, filepath.Join(dir, fmt.Sprintf("etcd-%d.log", i)), exec.Command(binary,
			fmt.Sprintf("--name=etcd-%d", i), fmt.Sprintf("--data-dir=%s/etcd-%d", dir, i), "--unsafe-no-fsync",
			"--listen-client-urls="+url, "--advertise-client-urls="+url, "--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer,
			"--initial-cluster="+strings.Join(initial, ","),
			fmt.Sprintf("--heartbeat-interval=%d", Heartbeat.Milliseconds()), fmt.Sprintf("--election-timeout=%d", Election.Milliseconds())))
		c.Addresses = append(c.Addresses, clients[i])
	}
	for i := range size {
		c.await(t, i)
	}
	return c
}

func (c *Cluster) start(t testing.TB, log string, cmd *exec.Cmd) {
	t.Helper()
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		out.Close()
		if text, err := os.ReadFile(log); t.Failed() && err == nil {
			t.Logf("%s ended so:\n%s", filepath.Base(log), text[max(0, len(text)-2000):])
		}
	})
	c.cmds = append(c.cmds, cmd)
}

// await waits until a member is healthy: it knows a leader and carries out a read.
func (c *Cluster) await(t testing.TB, i int) {
	t.Helper()
	client := http.Client{Timeout: 2 * time.Second}
	defer client.CloseIdleConnections()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		resp, err := client.Get("http://" + c.Addresses[i] + "/health")
		if err != nil {
			continue
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
	}
	t.Fatalf("etcd-%d is not healthy within %v", i, patience) // the log of etcd is printed after this
}

// Freeze stops a member for good. For its peers and clients it is like a machine without power: it
// gives no answer, and resets no connection.
func (c *Cluster) Freeze(t testing.TB, i int) {
	t.Helper()
	if err := c.cmds[i].Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

// freeAddresses are addresses on loopback that were free a moment ago.
func freeAddresses(t testing.TB, n int) []string {
	t.Helper()
	var all []string
	var listeners []net.Listener
	defer func() { // closes all at the end, so that no port is returned twice
		for _, l := range listeners {
			_ = l.Close()
		}
	}()
	for range n {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
		all = append(all, l.Addr().String())
	}
	return all
}
