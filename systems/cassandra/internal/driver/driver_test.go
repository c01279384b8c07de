package driver

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"assay.dev/assay/systems/cassandra/internal/workload"
	protocol "assay.dev/assay/systems/driver"
	"assay.dev/assay/systems/driver/drivertest"
)

// cluster is three nodes of Cassandra on addresses of the loopback interface.
type cluster struct {
	t       *testing.T
	tree    string
	dir     string
	nodes   []string
	storage int
	cql     int
	running map[string]*exec.Cmd
}

// startCluster starts the nodes with the programs of build.sh.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	out, err := exec.Command("../../build.sh", "--path", "cassandra-rootfs").Output()
	tree := strings.TrimSpace(string(out))
	if err != nil {
		t.Skipf("Cassandra cannot be built here: %v", err)
	}
	if _, err := os.Stat(tree); err != nil {
		t.Fatalf("Cassandra is not built; run systems/cassandra/build.sh cassandra-rootfs: %v", err)
	}
	c := &cluster{t: t, tree: tree, dir: t.TempDir(), nodes: []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}, running: map[string]*exec.Cmd{}}
	c.storage, c.cql = freePort(t), freePort(t)
	for _, node := range c.nodes {
		c.start(node)
	}
	return c
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// start starts a node. A node that ran before keeps its data.
func (c *cluster) start(node string) {
	c.t.Helper()
	dir := filepath.Join(c.dir, node)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		c.t.Fatal(err)
	}
	config := fmt.Sprintf(`cluster_name: test
num_tokens: 16
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
auto_bootstrap: false
commitlog_sync: periodic
commitlog_sync_period: 10s
listen_address: %[1]s
rpc_address: %[1]s
storage_port: %[2]d
native_transport_port: %[3]d
seed_provider: [{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{seeds: %[4]q}]}]
`, node, c.storage, c.cql, strings.Join(c.nodes, ","))
	file := filepath.Join(dir, "cassandra.yaml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(c.tree, "java/bin/java"), "@"+filepath.Join(c.tree, "cassandra/conf/jvm.options"), "-Xms256m", "-Xmx256m",
		"-XX:TieredStopAtLevel=1", // three nodes share a machine with other tests
		"-Djava.io.tmpdir="+dir, "-Dcassandra.storagedir="+dir, "-Dcassandra.config=file://"+file,
		"-Dlogback.configurationFile="+filepath.Join(c.tree, "cassandra/conf/logback.xml"),
		"-cp", filepath.Join(c.tree, "cassandra/lib")+"/*", "org.apache.cassandra.service.CassandraDaemon")
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.running[node] = cmd
	c.t.Cleanup(func() {
		c.kill(node)
		if text, err := os.ReadFile(filepath.Join(dir, "log")); c.t.Failed() && err == nil {
			c.t.Logf("%s: ...%s", node, text[max(0, len(text)-1000):])
		}
	})
}

func (c *cluster) kill(node string) {
	if cmd := c.running[node]; cmd != nil {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		delete(c.running, node)
	}
}

func newWorkload(t *testing.T, change func(*workload.Options)) *workload.YCSB {
	t.Helper()
	o := workload.Options{Records: 500, KeySize: 24, ValueSize: 100, Mix: "a", Distribution: "zipfian", Theta: 0.99, Replication: 3, Compaction: "leveled",
		Read: gocql.One, Write: gocql.One}
	change(&o)
	w, err := workload.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// session is one client, number 7, of a ring.
type session struct{ *drivertest.Session }

func (c *cluster) session(t *testing.T, w *workload.YCSB) session {
	t.Helper()
	d := &Driver{Nodes: c.nodes, Port: c.cql, Connections: 1, Attempt: 5 * time.Second, Workload: w}
	s := session{drivertest.Start(t, protocol.Clients(d))}
	s.Hello(protocol.Hello{FirstClient: 7, Clients: 1, Seed: 9, RequestTimeout: 5 * time.Second})
	return s
}

// operate carries out operations from a sequence number on and returns how many committed.
func (s session) operate(from, n uint64) (committed int) {
	for id := from; id < from+n; id++ {
		if l := s.Transact(id, 7, id); l.Outcome == "commit" {
			committed++
		}
	}
	return committed
}

// Every mix runs on a loaded ring. With a node down, operations with consistency ONE succeed, and
// those with ALL fail. When the node is back, those with ALL succeed again.
func TestThreeNodes(t *testing.T) {
	c := startCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	if err := Load(ctx, c.nodes, c.cql, newWorkload(t, func(*workload.Options) {})); err != nil {
		t.Fatal(err)
	}
	for mix, kinds := range map[string][]string{
		"a": {"read", "update"}, "b": {"read", "update"}, "c": {"read"}, "d": {"read", "insert"}, "e": {"scan", "insert"}, "f": {"read", "readModifyWrite"},
		"insert": {"insert"}, "update": {"update"}, "scan": {"scan"},
	} {
		distribution := map[string]string{"b": "uniform", "d": "latest"}[mix]
		if distribution == "" {
			distribution = "zipfian"
		}
		s := c.session(t, newWorkload(t, func(o *workload.Options) {
			o.Mix, o.Distribution, o.Read, o.Write = mix, distribution, gocql.All, gocql.All
		}))
		if n := s.operate(0, 100); n != 100 {
			t.Errorf("mix %s: %d of 100 operations committed", mix, n)
		}
		counters := s.Bye()
		for _, kind := range kinds {
			if counters[kind+"Committed"] == 0 {
				t.Errorf("mix %s: no %s: %v", mix, kind, counters)
			}
		}
		if counters["missing"] != 0 {
			t.Errorf("mix %s: records are missing at ALL: %v", mix, counters)
		}
	}
	one := c.session(t, newWorkload(t, func(*workload.Options) {}))
	all := c.session(t, newWorkload(t, func(o *workload.Options) { o.Read, o.Write = gocql.All, gocql.All }))
	c.kill(c.nodes[2])
	time.Sleep(2 * time.Second) // clients may lose requests on their way
	one.operate(0, 20)
	if n := one.operate(20, 100); n < 95 {
		t.Errorf("with a node down %d of 100 operations committed at ONE", n)
	}
	if n := all.operate(0, 20); n != 0 {
		t.Errorf("with a node down %d of 20 operations committed at ALL", n)
	}
	c.start(c.nodes[2])
	back := 0
	for from, end := uint64(20), time.Now().Add(5*time.Minute); back < 20 && time.Now().Before(end); from += 20 {
		back = all.operate(from, 20)
	}
	if back != 20 {
		t.Errorf("with the node back %d of 20 operations committed at ALL", back)
	}
	one.Bye()
	if counters := all.Bye(); counters["replicasTooSlow"]+counters["tooFewReplicas"] == 0 {
		t.Errorf("nobody counted what failed at ALL: %v", counters)
	}
}
