package driver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay.dev/assay/systems/postgres/internal/node"
	"assay.dev/assay/systems/postgres/internal/workload"
)

const programs = "/usr/lib/postgresql/15/bin"

// nobody is who runs PostgreSQL, which refuses root.
const nobody = 65534

// pair starts a primary and its standby, and returns their addresses, status ports and processes.
func pair(t *testing.T) (replicas []string, status []int, nodes []*exec.Cmd) {
	t.Helper()
	if _, err := os.Stat(programs); err != nil {
		t.Skipf("PostgreSQL 15 is not installed: %v", err)
	}
	dir, err := os.MkdirTemp("", "postgres-test-") // t.TempDir's parent is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := filepath.Join(dir, "postgres-node")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/postgres-node").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	process := &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 {
		process.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	ports := freePorts(t, 4)
	replicas, status = []string{fmt.Sprint("127.0.0.1:", ports[0]), fmt.Sprint("127.0.0.1:", ports[1])}, ports[2:]
	for i := range replicas {
		cmd := exec.Command(program, "--index", fmt.Sprint(i), "--replicas", strings.Join(replicas, ","), "--data", filepath.Join(dir, fmt.Sprint("data", i)),
			"--status-port", fmt.Sprint(status[i]), "--failover-timeout", "2s", "--fsync=false")
		cmd.SysProcAttr, cmd.Stderr, cmd.Dir = process, t.Output(), "/"
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			kill(cmd)
			_ = cmd.Wait() // killed
		})
		nodes = append(nodes, cmd)
	}
	for i := range replicas {
		eventually(t, fmt.Sprintf("replica %d is ready", i), func() bool { return answers(status[i], "/ready") })
	}
	return replicas, status, nodes
}

// kill ends a supervisor and its server; the server's other processes notice that at once.
func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

func answers(port int, path string) bool {
	r, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
	if err != nil {
		return false
	}
	r.Body.Close()
	return r.StatusCode == http.StatusOK
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
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
	d    *Driver
	in   io.WriteCloser
	out  *bufio.Scanner
	done chan error
}

func start(t *testing.T, replicas []string, w workload.Workload) *session {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	s := &session{t: t, in: inW, out: bufio.NewScanner(outR), done: make(chan error, 1)}
	s.d = &Driver{Replicas: replicas, Workload: w, Attempt: 2 * time.Second, In: inR, Out: outW}
	go func() {
		s.done <- s.d.Run(context.Background())
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

// transact runs n transactions of client 7 and returns how many committed.
func (s *session) transact(from, n int) (committed int) {
	s.t.Helper()
	for id := from; id < from+n; id++ {
		s.send(`{"type":"begin","id":%d,"client":7,"sequence":%d,"attempt":1}`, id, id)
		m := s.next()
		if m["type"] != "end" || m["id"] != float64(id) {
			s.t.Fatalf("got %v, want the end of %d", m, id)
		}
		if m["outcome"] == "commit" {
			committed++
		}
	}
	return committed
}

func smallbank(t *testing.T) workload.Workload {
	t.Helper()
	w, err := workload.New("smallbank", workload.Options{Records: 500, ValueSize: 1, Hotspot: 0.25})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// What was acknowledged survives the primary, and the audit finds what has been taken away.
func TestPrimaryDies(t *testing.T) {
	replicas, status, nodes := pair(t)
	w := smallbank(t)
	fill(t, replicas, w)
	s := start(t, replicas, w)
	m := s.crash(status, nodes)
	if m["centsMissing"] != 0.0 || m["sendPaymentCommitted"] == 0.0 {
		t.Errorf("got %v, want no cents missing and payments", m)
	}
	spoil(t, s.d, replicas)
}

func fill(t *testing.T, replicas []string, w workload.Workload) {
	t.Helper()
	ctx := t.Context()
	conn, err := node.Connect(ctx, replicas)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := w.Load(ctx, conn); err != nil {
		t.Fatal(err)
	}
}

// crash kills the primary between 100 transactions and 50 more, and returns the counters, which
// have nothing lost or done twice.
func (s *session) crash(status []int, nodes []*exec.Cmd) map[string]any {
	t := s.t
	t.Helper()
	s.send(`{"type":"hello","version":1,"firstClient":7,"clients":1,"seed":9,"requestTimeoutMicros":5000000}`)
	if m := s.next(); m["type"] != "ready" {
		t.Fatalf("got %v, want ready", m)
	}
	if n := s.transact(0, 100); n != 100 {
		t.Errorf("%d of 100 transactions committed before the crash", n)
	}
	kill(nodes[0])
	eventually(t, "the standby is the primary", func() bool { return answers(status[1], "/primary") })
	after := 0
	for from := 100; after < 50 && from < 300; from += 10 {
		after += s.transact(from, 10)
	}
	if after < 50 {
		t.Errorf("%d transactions committed after the crash, want 50", after)
	}
	s.send(`{"type":"bye"}`)
	m := s.next()
	counters, _ := m["counters"].(map[string]any)
	if counters["committed"] != float64(100+after) || counters["lost"] != 0.0 || counters["duplicated"] != 0.0 || counters["notChecked"] != nil {
		t.Errorf("got %v, want %d committed and nothing wrong", m, 100+after)
	}
	if err := <-s.done; err != nil {
		t.Error(err)
	}
	return counters
}

// spoil takes two transactions out of the ledger and puts 5 cents into an account: the audit must
// say so.
func spoil(t *testing.T, d *Driver, replicas []string) {
	t.Helper()
	ctx := t.Context()
	conn, err := node.Connect(ctx, replicas)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	unknown := d.clients[0].unknown()
	w := d.Workload.(workload.Auditor)
	for statement, want := range map[string]func(map[string]int64) bool{
		fmt.Sprintf("UPDATE ledger SET transactions = %d", d.clients[0].recorded-2):         func(f map[string]int64) bool { return f["lost"] == 2 },
		fmt.Sprintf("UPDATE ledger SET transactions = %d", d.clients[0].recorded+unknown+3): func(f map[string]int64) bool { return f["duplicated"] == 3 },
		"UPDATE savings SET balance = balance + 5 WHERE id = 0":                             func(f map[string]int64) bool { return f["centsMissing"]%5 == 0 && f["centsMissing"] > 0 },
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
		if f, err := d.audit(ctx, w); err != nil || !want(f) {
			t.Errorf("%s: the audit found %+v, %v", statement, f, err)
		}
	}
}

// A machine that died answers nothing at all: clients once spent each attempt on it and never got
// to the new primary.
func TestSilentReplicaIsPassedOver(t *testing.T) {
	replicas, _, _ := pair(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	conn, err := node.Connect(ctx, []string{silent.Addr().String(), replicas[0]})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if ctx.Err() != nil {
		t.Error("the connection took all of the time")
	}
	if _, err := conn.Exec(ctx, "SELECT 1"); err != nil {
		t.Errorf("the connection does not work: %v", err)
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
			s := start(t, []string{"127.0.0.1:1"}, smallbank(t))
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
