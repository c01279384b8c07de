package driver

import (
	"context"
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

	protocol "assay.dev/assay/systems/driver"
	"assay.dev/assay/systems/driver/drivertest"
	"assay.dev/assay/systems/postgres/internal/node"
	"assay.dev/assay/systems/postgres/internal/workload"
)

const programs = "/usr/lib/postgresql/15/bin"

// unprivileged is the user who runs PostgreSQL, since it does not run as root.
const unprivileged = 65534

const (
	// failover is long enough for a primary on a busy machine. A standby that is promoted too early
	// leaves a primary behind whose commits wait for it for ever.
	failover = 6 * time.Second
	// fillLimit bounds such waits.
	fillLimit = 2 * time.Minute
)

// pair starts a primary and its standby, and returns their addresses, status ports and processes.
func pair(t *testing.T) (replicas []string, status []int, nodes []*exec.Cmd) {
	t.Helper()
	return deploy(t, 2)
}

// site is a directory with the node's program, for the user who runs PostgreSQL.
type site struct {
	t            *testing.T
	dir, program string
	process      *syscall.SysProcAttr
}

func newSite(t *testing.T) *site {
	t.Helper()
	if _, err := os.Stat(programs); err != nil {
		t.Skipf("PostgreSQL 15 is not installed: %v", err)
	}
	dir, err := os.MkdirTemp("", "postgres-test-") // t.TempDir's parent is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &site{t, dir, build(t, dir, "postgres-node"), &syscall.SysProcAttr{Setpgid: true}}
	if os.Getuid() == 0 {
		s.process.Credential = &syscall.Credential{Uid: unprivileged, Gid: unprivileged}
		if err := os.Chown(dir, unprivileged, unprivileged); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func build(t *testing.T, dir, name string) (program string) {
	t.Helper()
	program = filepath.Join(dir, name)
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/"+name).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

// data is the directory of a replica's database.
func (s *site) data(replica int) string { return filepath.Join(s.dir, fmt.Sprint("data", replica)) }

// node is a command of the node's program.
func (s *site) node(args ...string) *exec.Cmd {
	cmd := exec.Command(s.program, args...)
	cmd.SysProcAttr, cmd.Stderr, cmd.Dir = s.process, s.t.Output(), "/"
	return cmd
}

// deploy starts n replicas, of which the first is the primary.
func deploy(t *testing.T, n int) (replicas []string, status []int, nodes []*exec.Cmd) {
	t.Helper()
	return newSite(t).deploy(n)
}

func (s *site) deploy(n int) (replicas []string, status []int, nodes []*exec.Cmd) {
	t := s.t
	t.Helper()
	ports := drivertest.FreePorts(t, 2*n)
	for _, port := range ports[:n] {
		replicas = append(replicas, fmt.Sprint("127.0.0.1:", port))
	}
	status = ports[n:]
	for i := range replicas {
		cmd := s.node("--index", fmt.Sprint(i), "--replicas", strings.Join(replicas, ","), "--data", s.data(i),
			"--status-port", fmt.Sprint(status[i]), "--failover-timeout", failover.String(), "--fsync=false")
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

// kill ends a supervisor and its server. The server's other processes notice that at once.
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

// session is one client, number 7, of a deployment.
type session struct {
	*drivertest.Session
	d *Driver
}

func start(t *testing.T, replicas []string, w workload.Workload) session {
	t.Helper()
	d := &Driver{Replicas: replicas, Workload: w, Attempt: 2 * time.Second}
	s := session{drivertest.Start(t, protocol.Clients(d)), d}
	s.Hello(protocol.Hello{FirstClient: 7, Clients: 1, Seed: 9, RequestTimeout: 5 * time.Second})
	return s
}

// transact runs n transactions and returns how many committed.
func (s session) transact(from, n uint64) (committed int) {
	for id := from; id < from+n; id++ {
		if l := s.Transact(id, 7, id); l.Outcome == "commit" {
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

// A write that was acknowledged survives the primary, and the audit detects removed writes.
func TestPrimaryDies(t *testing.T) {
	replicas, status, nodes := pair(t)
	w := smallbank(t)
	fill(t, replicas, w)
	s := start(t, replicas, w)
	m := s.crash(t, status, nodes)
	if m["centsMissing"] != 0 || m["sendPaymentCommitted"] == 0 {
		t.Errorf("got %v, want no cents missing and payments", m)
	}
	spoil(t, s.d, replicas)
}

func fill(t *testing.T, replicas []string, w workload.Workload) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fillLimit)
	defer cancel()
	conn, err := node.Connect(ctx, replicas)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := w.Load(ctx, conn); err != nil {
		t.Fatal(err)
	}
}

// crash runs 100 transactions, kills the primary, and runs 50 more. It returns the counters, which
// must have nothing lost or done twice.
func (s session) crash(t *testing.T, status []int, nodes []*exec.Cmd) map[string]int64 {
	t.Helper()
	if n := s.transact(0, 100); n != 100 {
		t.Errorf("%d of 100 transactions committed before the crash", n)
	}
	kill(nodes[0])
	eventually(t, "the standby is the primary", func() bool { return answers(status[1], "/primary") })
	after := 0
	for from := uint64(100); after < 50 && from < 300; from += 10 {
		after += s.transact(from, 10)
	}
	if after < 50 {
		t.Errorf("%d transactions committed after the crash, want 50", after)
	}
	counters := s.Bye()
	if counters["committed"] != int64(100+after) || counters["lost"] != 0 || counters["duplicated"] != 0 || counters["notChecked"] != 0 {
		t.Errorf("got %v, want %d committed and nothing wrong", counters, 100+after)
	}
	return counters
}

// spoil removes two transactions from the ledger and adds 5 cents to an account: the audit must
// report that.
func spoil(t *testing.T, d *Driver, replicas []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fillLimit)
	defer cancel()
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

// A dead machine gives no answer at all. Clients once spent each attempt on it and never reached
// the new primary.
func TestSilentReplicaIsPassedOver(t *testing.T) {
	replicas, _, _ := deploy(t, 1)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // no program accepts its connections
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
