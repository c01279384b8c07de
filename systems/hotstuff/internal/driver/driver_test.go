package driver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// cluster starts n servers of relab/hotstuff on loopback, and returns their client addresses and
// processes.
func cluster(t *testing.T, n int) ([]string, []*exec.Cmd) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"hotstuffserver", "hotstuffkeygen"} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, name), "github.com/relab/hotstuff/cmd/"+name)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", name, err, out)
		}
	}
	keygen := exec.Command(filepath.Join(dir, "hotstuffkeygen"), "--pattern", "r*", "--num", fmt.Sprint(n), filepath.Join(dir, "keys"))
	if out, err := keygen.CombinedOutput(); err != nil {
		t.Fatalf("make keys: %v\n%s", err, out)
	}
	ports := freePorts(t, 2*n)
	var config strings.Builder
	config.WriteString("pacemaker = \"fixed\"\nleader-id = 1\n")
	var addresses []string
	for i := range n {
		addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", ports[n+i]))
		fmt.Fprintf(&config, "[[replicas]]\nid = %d\npeer-address = \"127.0.0.1:%d\"\nclient-address = %q\npubkey = \"keys/r%d.key.pub\"\n", i+1, ports[i], addresses[i], i+1)
	}
	if err := os.WriteFile(filepath.Join(dir, "hotstuff.toml"), []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var servers []*exec.Cmd
	for i := range n {
		server := exec.Command(filepath.Join(dir, "hotstuffserver"), "--self-id", fmt.Sprint(i+1), "--privkey", fmt.Sprintf("keys/r%d.key", i+1))
		server.Dir, server.Stderr = dir, os.Stderr
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = server.Process.Kill() // it may be dead already
			_ = server.Wait()
		})
		servers = append(servers, server)
	}
	return addresses, servers
}

func freePorts(t *testing.T, n int) []int {
	t.Helper()
	var ports []int
	var open []net.Listener // until all are chosen, so that no two are the same
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, l)
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	for _, l := range open {
		l.Close()
	}
	return ports
}

// session is a driver and its pipes.
type session struct {
	t    *testing.T
	in   io.WriteCloser
	out  *bufio.Scanner
	done chan error
}

func start(t *testing.T, replicas []string) *session {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	s := &session{t: t, in: inW, out: bufio.NewScanner(outR), done: make(chan error, 1)}
	d := &Driver{Replicas: replicas, PayloadSize: 10, In: inR, Out: outW}
	go func() {
		s.done <- d.Run(context.Background())
		outW.Close()
	}()
	return s
}

func (s *session) send(format string, args ...any) {
	s.t.Helper()
	if _, err := fmt.Fprintf(s.in, format+"\n", args...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *session) next() map[string]any {
	s.t.Helper()
	if !s.out.Scan() {
		return nil
	}
	var m map[string]any
	if err := json.Unmarshal(s.out.Bytes(), &m); err != nil {
		s.t.Fatalf("%q: %v", s.out.Text(), err)
	}
	return m
}

// greet waits until the servers take clients, which is after their first view timeout.
func (s *session) greet(timeout time.Duration) {
	s.t.Helper()
	s.send(`{"type":"hello","version":1,"firstClient":40,"clients":2,"seed":9,"requestTimeoutMicros":%d}`, timeout.Microseconds())
	if m := s.next(); m["type"] != "ready" {
		s.t.Fatalf("got %v, want ready", m)
	}
}

// A follower that dies is not missed; without the leader a command gets no answer, and the driver
// says so in time.
func TestSession(t *testing.T) {
	replicas, servers := cluster(t, 4)
	s := start(t, replicas)
	s.greet(3 * time.Second)
	execute := func(from, to int, want string) {
		t.Helper()
		for id := from; id < to; id++ {
			s.send(`{"type":"begin","id":%d,"client":%d,"sequence":%d,"attempt":1}`, id, 40+id%2, id/2)
			if m := s.next(); m["type"] != "end" || m["id"] != float64(id) || m["outcome"] != want {
				t.Fatalf("got %v, want %d to end with %s", m, id, want)
			}
		}
	}
	execute(0, 10, "commit")
	if err := servers[3].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	execute(10, 20, "commit")
	if err := servers[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	execute(20, 21, "timeout")
	s.send(`{"type":"bye"}`)
	m := s.next()
	counters, _ := m["counters"].(map[string]any)
	if m["type"] != "stats" || counters["executed"] != float64(20) || counters["commands"] != float64(21) || counters["timedOut"] != float64(1) {
		t.Errorf("got %v, want 21 commands, 20 executed, 1 timed out", m)
	}
	if s.next() != nil {
		t.Error("something follows the stats")
	}
	if err := <-s.done; err != nil {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct{ line, want string }{
		"not JSON":        {`hello`, "malformed line"},
		"another version": {`{"type":"hello","version":2,"clients":1,"requestTimeoutMicros":5000}`, "version 2"},
		"no clients":      {`{"type":"hello","version":1,"clients":0,"requestTimeoutMicros":5000}`, "0 clients"},
		"no timeout":      {`{"type":"hello","version":1,"clients":1}`, "requestTimeoutMicros is 0"},
		"begin first":     {`{"type":"begin","id":1}`, `unexpected message of type "begin"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, []string{"127.0.0.1:1"})
			s.send("%s", tc.line)
			if m := s.next(); m["type"] != "error" || !strings.Contains(fmt.Sprint(m["message"]), tc.want) {
				t.Errorf("got %v, want an error that says %q", m, tc.want)
			}
			if err := <-s.done; err == nil {
				t.Error("the session ended without an error")
			}
		})
	}
}
