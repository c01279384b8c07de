package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary run as basil itself.
func TestMain(m *testing.M) {
	if os.Getenv("BASIL_TEST_MAIN") == "1" {
		main()
		return
	}
	os.Exit(m.Run())
}

func basil(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), "BASIL_TEST_MAIN=1")
	return c
}

// cluster starts six replicas as processes. It returns them with the flags for the clients of the
// cluster.
func cluster(t *testing.T) (replicas []*exec.Cmd, flags []string) {
	t.Helper()
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys")
	if out, err := basil("keygen", "--replicas", "6", "--out", keys).CombinedOutput(); err != nil {
		t.Fatalf("keygen: %v: %s", err, out)
	}
	var addresses []string
	for _, address := range freeAddresses(t, 6) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, fmt.Sprintf(`{"host":"localhost","port":%s}`, port))
	}
	config := filepath.Join(dir, "cluster.json")
	content := fmt.Sprintf(`{"f":1,"shards":[{"replicas":[%s]}]}`, strings.Join(addresses, ","))
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	flags = []string{"--config", config, "--keys", keys}
	for i := range 6 {
		c := basil(append([]string{"replica", "--index", fmt.Sprint(i)}, flags...)...)
		c.Stderr = os.Stderr
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
		line, err := bufio.NewReader(out).ReadString('\n')
		if want := fmt.Sprintf("basil: replica %d ready\n", i); line != want {
			t.Fatalf("got %q, %v; want %q", line, err, want)
		}
		replicas = append(replicas, c)
	}
	return replicas, flags
}

func TestProcesses(t *testing.T) {
	replicas, flags := cluster(t)
	d := basil(append([]string{"driver", "--keys-per-table", "1000", "--tables", "2"}, flags...)...)
	in, _ := d.StdinPipe()
	out, _ := d.StdoutPipe()
	d.Stderr = os.Stderr
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	next := func() (m struct {
		Type, Outcome, Message string
		Counters               map[string]uint64
	}) {
		t.Helper()
		if !lines.Scan() {
			t.Fatal("the driver ended")
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	fmt.Fprintln(in, `{"type":"hello","version":1,"firstClient":0,"clients":1,"seed":1,"requestTimeoutMicros":10000000}`)
	if m := next(); m.Type != "ready" {
		t.Fatalf("got %+v", m)
	}
	commits := uint64(0)
	for id := range 30 {
		if id == 15 {
			replicas[5].Process.Signal(syscall.SIGSTOP) // the replica is silent, but its connections stay
			t.Cleanup(func() { replicas[5].Process.Signal(syscall.SIGCONT) })
		}
		fmt.Fprintf(in, `{"type":"begin","id":%d,"client":0,"sequence":%d,"attempt":1}`+"\n", id, id)
		if m := next(); m.Outcome == "commit" {
			commits++
		} else if m.Outcome != "abort" {
			t.Fatalf("transaction %d: %+v", id, m)
		}
	}
	fmt.Fprintln(in, `{"type":"bye"}`)
	m := next()
	if m.Type != "stats" || m.Counters["fastPathCommits"] == 0 || m.Counters["slowPathCommits"] == 0 ||
		m.Counters["fastPathCommits"]+m.Counters["slowPathCommits"] != commits {
		t.Errorf("got %+v, want %d commits by both paths", m, commits)
	}
	if err := d.Wait(); err != nil {
		t.Errorf("driver: %v", err)
	}
	var took []time.Duration
	for i, c := range replicas[:5] {
		begun := time.Now()
		c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			t.Errorf("replica %d: %v", i, err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	if took[2] > time.Second { // the machine may stand still once
		t.Errorf("replicas took %v to end; want most within a second", took)
	}
}

func TestLocal(t *testing.T) {
	for name, args := range map[string][]string{
		"one replica":   {"--f", "0", "--crypto=false"},
		"two shards":    {"--shards", "2", "--clients", "2"},
		"read-only":     {"--workload", "read-only", "--range-size", "24"},
		"rw":            {"--workload", "rw", "--range-size", "2"},
		"rw-read-only":  {"--workload", "rw-read-only", "--range-size", "24"},
		"one is silent": {"--kill-replica", "3", "--distribution", "zipfian", "--batch-size", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := basil(append([]string{"local", "--duration", "1500ms", "--warm-up", "200ms"}, args...)...).CombinedOutput()
			if err != nil || !regexp.MustCompile(`throughput  [1-9]`).Match(out) || !bytes.Contains(out, []byte("0 timeouts")) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestBadFlagsAreNamed(t *testing.T) {
	_, keys := t.TempDir(), t.TempDir()
	config := filepath.Join(keys, "cluster.json")
	one := `{"f":0,"shards":[{"replicas":[{"host":"localhost","port":1}]}]}`
	if err := os.WriteFile(config, []byte(one), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster := []string{"--config", config, "--crypto=false"}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"keygen", "--replicas", "0", "--out", "x"}, "--replicas"},
		{[]string{"keygen", "--replicas", "1"}, "out"},
		{[]string{"replica", "--config", "missing.json", "--index", "0"}, "--config"},
		{[]string{"replica", "--config", config, "--index", "0"}, "--keys"},
		{append([]string{"replica", "--index", "1"}, cluster...), "--index"},
		{append([]string{"replica", "--index", "0", "--batch-size", "65"}, cluster...), "--batch-size"},
		{append([]string{"replica", "--index", "0", "--retain", "1ms"}, cluster...), "--retain"},
		{append([]string{"replica", "--index", "0", "--listen", "nowhere:1"}, cluster...), "--listen"},
		{append([]string{"driver", "--workload", "tpcc"}, cluster...), "--workload"},
		{append([]string{"driver", "--distribution", "normal"}, cluster...), "--distribution"},
		{append([]string{"driver", "--read-quorum", "all"}, cluster...), "--read-quorum"},
		{append([]string{"driver", "--fast-path-timeout", "-1ms"}, cluster...), "--fast-path-timeout"},
		{append([]string{"driver", "--range-size", "0"}, cluster...), "--range-size"},
		{append([]string{"driver", "--misbehavior", "lie"}, cluster...), "--misbehavior"},
		{append([]string{"driver", "--misbehavior-frequency", "0"}, cluster...), "--misbehavior-frequency"},
		{[]string{"local", "--kill-replica", "6"}, "--kill-replica"},
		{[]string{"local", "--clients", "0"}, "--clients"},
		{[]string{"local", "extra"}, "extra"},
	} {
		var stderr bytes.Buffer
		c := basil(tc.args...)
		c.Stderr, c.Stdin, c.Stdout = &stderr, strings.NewReader(""), io.Discard
		if err := c.Run(); err == nil || !strings.Contains(stderr.String(), tc.want) {
			t.Errorf("%v: got %v, %q; want %q", tc.args, err, stderr.String(), tc.want)
		}
	}
}
