package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay.dev/assay/systems/etcd/internal/role"
	"assay.dev/assay/systems/etcd/internal/testetcd"
)

// TestMain lets the test binary be the program, so that the tests get exit codes of real processes.
func TestMain(m *testing.M) {
	if os.Getenv("BE_ETCD_DRIVER") != "" {
		main()
	}
	os.Exit(m.Run())
}

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), "BE_ETCD_DRIVER=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// code runs the program and returns its exit code and its output.
func code(t *testing.T, args ...string) (int, string) {
	t.Helper()
	cmd := command(t, args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("%v did not run: %v", args, err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// leader waits until one of these members leads, and returns which.
func leader(t *testing.T, addresses []string) int {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		for i, address := range addresses {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			leads, _ := role.Leads(ctx, address) // a frozen member does not answer
			cancel()
			if leads {
				return i
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("nobody leads")
	return -1
}

// session is a driver process.
type session struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func open(t *testing.T, args ...string) *session {
	t.Helper()
	s := &session{t: t, cmd: command(t, args...)}
	s.cmd.Stderr = os.Stderr
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.out = bufio.NewScanner(out)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *session) send(format string, args ...any) {
	s.t.Helper()
	if _, err := fmt.Fprintf(s.in, format+"\n", args...); err != nil {
		s.t.Fatal(err)
	}
}

type line struct {
	Type, Outcome, Detail, Message string
	ID                             int
	Counters                       map[string]int
}

func (s *session) next() line {
	s.t.Helper()
	var l line
	if !s.out.Scan() {
		s.t.Fatalf("the driver's output ends: %v", s.out.Err())
	}
	if err := json.Unmarshal(s.out.Bytes(), &l); err != nil {
		s.t.Fatalf("%q: %v", s.out.Text(), err)
	}
	return l
}

// A cluster of three loses its leader under load. Every operation is answered once, and another
// member becomes the leader.
func TestLeaderLost(t *testing.T) {
	cluster := testetcd.Start(t, 3)
	members := "--members=" + strings.Join(cluster.Addresses, ",")
	first := leader(t, cluster.Addresses)
	if c, out := code(t, "load", members, "--keys=300"); c != 0 {
		t.Fatalf("load: exit code %d: %s", c, out)
	}

	const clients, rounds = 6, 40
	s := open(t, "run", members, "--keys=300", "--read-share=0.25", "--attempt-timeout=300ms")
	s.send(`{"type":"hello","version":1,"firstClient":0,"clients":%d,"seed":1,"requestTimeoutMicros":20000000}`, clients)
	if l := s.next(); l.Type != "ready" {
		t.Fatalf("got %+v", l)
	}
	begin := func(id int) {
		s.send(`{"type":"begin","id":%d,"client":%d,"sequence":%d,"attempt":1}`, id, id%clients, id/clients)
	}
	for id := range clients {
		begin(id)
	}
	ended := map[int]bool{}
	for len(ended) < clients*rounds {
		l := s.next()
		if l.Type != "end" || l.Outcome != "commit" || ended[l.ID] {
			t.Fatalf("got %+v; it had ended before: %v", l, ended[l.ID])
		}
		ended[l.ID] = true
		if len(ended) == clients*rounds/2 {
			cluster.Freeze(t, first)
		}
		if next := l.ID + clients; next < clients*rounds {
			begin(next)
		}
	}
	s.send(`{"type":"bye"}`)
	l := s.next()
	if got := l.Counters["puts"] + l.Counters["gets"]; l.Type != "stats" || got != clients*rounds || l.Counters["gets"] == 0 || l.Counters["attemptsTimedOut"] == 0 {
		t.Errorf("got %+v; want %d puts and gets, and attempts that timed out", l, clients*rounds)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("the driver: %v", err)
	}

	if now := leader(t, cluster.Addresses); now == first {
		t.Errorf("%d leads, which does nothing", now)
	}
}

// A learner is a member without a vote. The cluster goes on though no process answers at the
// learner's address, and it rejects a second learner with the same address.
func TestAddLearner(t *testing.T) {
	cluster := testetcd.Start(t, 1)
	leader(t, cluster.Addresses)
	add := []string{"add-learner", "--member=" + cluster.Addresses[0], "--peer-url=http://127.0.0.1:1"}
	if c, out := code(t, add...); c != 0 {
		t.Fatalf("exit code %d: %s", c, out)
	}
	if c, out := code(t, add...); c != 1 || !strings.Contains(out, "already exist") {
		t.Errorf("a second time: exit code %d: %s", c, out)
	}
	if c, out := code(t, "load", "--members="+cluster.Addresses[0], "--keys=10"); c != 0 {
		t.Errorf("load afterwards: exit code %d: %s", c, out)
	}
}

func TestUsage(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"nothing":           {nil, 2, "run, load or add-learner"},
		"unknown":           {[]string{"lead"}, 2, `"lead" is none of`},
		"help":              {[]string{"run", "--help"}, 0, "-attempt-timeout"},
		"no members":        {[]string{"run"}, 2, "--members is needed"},
		"shards":            {[]string{"run", "--members=a:1", "--shards=2"}, 2, "one log for all keys"},
		"attempt":           {[]string{"run", "--members=a:1", "--attempt-timeout=1us"}, 2, "want 1ms to 1m"},
		"value size":        {[]string{"load", "--members=a:1", "--value-size=0"}, 2, "value size is 0"},
		"unknown flag":      {[]string{"load", "--member=x"}, 2, "-member"},
		"argument":          {[]string{"load", "now"}, 2, `"now": there are no arguments`},
		"wrong address":     {[]string{"load", "--members=http://a:1"}, 1, "want HOST:PORT"},
		"no server listens": {[]string{"load", "--members=127.0.0.1:1", "--timeout=100ms"}, 1, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			if c, out := code(t, tc.args...); c != tc.code || !strings.Contains(out, tc.want) {
				t.Errorf("exit code %d, %q; want %d and %q", c, out, tc.code, tc.want)
			}
		})
	}
}
