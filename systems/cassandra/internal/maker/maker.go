// Package maker makes the files of a loaded ring, from which rings of trials begin.
//
//	node-0/data/ycsb/usertable-ID/   the records that node 0 has
//	node-1/data/ycsb/usertable-ID/   those of node 1, and so on
//
// All nodes run on one machine, on addresses of the loopback interface. Only the files of the table
// stay. A node's identity, the others that it knows and the schema belong to its ring. A node of
// another ring with the same token finds its records when the table is made with the same ID.
package maker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"assay.dev/assay/systems/cassandra/internal/driver"
	"assay.dev/assay/systems/cassandra/internal/workload"
)

// MaxNodes is the most nodes of a ring on one machine.
const MaxNodes = 32

// stopLimit is how long a node may take to write its last records and to end.
const stopLimit = 10 * time.Minute

// Config describes the ring, and the programs that make it.
type Config struct {
	// Nodes of the ring.
	Nodes int
	// Dir is the directory that gets a directory for each node.
	Dir string
	// Root has Java in java/ and Cassandra in cassandra/.
	Root string
	// Heap of each node, such as 512m.
	Heap string
	// Storage and Port are ports of all nodes. JMX is that of node 0. Those of the others follow.
	Storage, Port, JMX int
	Workload           *workload.YCSB

	cluster string // name; empty: made
}

// Token of a node: tokens have even distances.
func Token(node, nodes int) int64 { return int64(2*node-nodes) * (math.MaxInt64 / int64(nodes)) }

// node is a running process.
type node struct {
	dir     string
	process *exec.Cmd
	ended   chan struct{} // closed when the process has ended
}

// Make starts the ring, loads it, waits until nothing is left to compact, and stops it. It leaves
// the files of the table.
func Make(ctx context.Context, c Config) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var nodes []*node
	defer func() {
		if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
			err = cause // that a node ended, which is why the others were not waited for
		}
		for _, n := range nodes {
			_ = n.process.Process.Kill() // it may have ended
			<-n.ended
		}
	}()
	var addresses []string
	for i := range c.Nodes {
		addresses = append(addresses, fmt.Sprintf("127.0.0.%d", i+1))
	}
	for i := range addresses {
		n, err := c.start(i, addresses, fail)
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	if err := driver.Load(ctx, addresses, c.Port, c.Workload); err != nil {
		return err
	}
	for i := range nodes {
		if _, err := c.nodetool(ctx, i, "flush"); err != nil { // from memory into files
			return err
		}
	}
	if err := driver.Compacted(ctx, addresses, c.Port); err != nil {
		return err
	}
	if err := stop(nodes); err != nil {
		return err
	}
	for _, n := range nodes {
		if err := prune(n.dir); err != nil {
			return err
		}
	}
	return nil
}

// dir is the directory of a node.
func (c *Config) dir(i int) string { return filepath.Join(c.Dir, fmt.Sprint("node-", i)) }

// start starts a node. If the node ends before it is stopped, fail learns of it.
func (c *Config) start(i int, addresses []string, fail context.CancelCauseFunc) (*node, error) {
	n := &node{dir: c.dir(i), ended: make(chan struct{})}
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return nil, err
	}
	file := filepath.Join(n.dir, "cassandra.yaml")
	if err := os.WriteFile(file, []byte(c.settings(i, addresses)), 0o644); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(n.dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	n.process = c.java("@"+filepath.Join(c.Root, "cassandra/conf/jvm.options"), "-Xms"+c.Heap, "-Xmx"+c.Heap, "-Djava.io.tmpdir="+n.dir,
		"-Dcassandra.storagedir="+n.dir, "-Dcassandra.config=file://"+file, fmt.Sprint("-Dcassandra.jmx.local.port=", c.JMX+i),
		"-Dlogback.configurationFile="+filepath.Join(c.Root, "cassandra/conf/logback.xml"), "org.apache.cassandra.service.CassandraDaemon")
	n.process.Stdout, n.process.Stderr = log, log
	if err := n.process.Start(); err != nil {
		return nil, fmt.Errorf("start node %d: %w", i, err)
	}
	go func() {
		err := n.process.Wait()
		close(n.ended)
		fail(fmt.Errorf("node %d ended (%w); its log ends with:\n%s", i, err, tail(log.Name())))
	}()
	return n, nil
}

// java is a command of Cassandra. It ends with this process.
func (c *Config) java(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.Root, "java/bin/java"), append([]string{"-cp", filepath.Join(c.Root, "cassandra/lib") + "/*"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// settings of a node. Those that are not here are Cassandra's defaults.
func (c *Config) settings(i int, addresses []string) string {
	return fmt.Sprintf(`cluster_name: %[6]s
num_tokens: 1
initial_token: %[1]d
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
auto_bootstrap: false
commitlog_sync: periodic
commitlog_sync_period: 10s
write_request_timeout: 60s
compaction_throughput: 0MiB/s
listen_address: %[2]s
rpc_address: %[2]s
storage_port: %[3]d
native_transport_port: %[4]d
seed_provider: [{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{seeds: %[5]q}]}]
`, Token(i, c.Nodes), addresses[i], c.Storage, c.Port, strings.Join(addresses, ","), cmp.Or(c.cluster, "made"))
}

// nodetool runs a command of Cassandra's own tool on a node, and returns what it prints.
func (c *Config) nodetool(ctx context.Context, i int, command string) (string, error) {
	cmd := c.java("@"+filepath.Join(c.Root, "cassandra/conf/jvm.options"), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-Duser.home="+c.dir(i),
		"org.apache.cassandra.tools.NodeTool", fmt.Sprint("--port=", c.JMX+i), command)
	said := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = said, said
	err := cmd.Start()
	if err == nil {
		defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
		err = cmd.Wait()
	}
	if err != nil {
		return "", fmt.Errorf("nodetool %s of node %d: %w: %s", command, i, err, said)
	}
	return said.String(), nil
}

// stop ends all nodes cleanly.
func stop(nodes []*node) error {
	var all sync.WaitGroup
	errs := make([]error, len(nodes))
	for i, n := range nodes {
		all.Go(func() {
			if err := n.process.Process.Signal(syscall.SIGTERM); err != nil {
				errs[i] = fmt.Errorf("stop node %d: %w", i, err)
				return
			}
			select {
			case <-n.ended:
			case <-time.After(stopLimit):
				errs[i] = fmt.Errorf("node %d did not stop within %v", i, stopLimit)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// prune removes all files of a node except those of the table. Snapshots are none of these.
func prune(dir string) error {
	table := filepath.Join(dir, "data", workload.Directory)
	kept := filepath.Join(dir, "kept")
	if err := os.Rename(table, kept); err != nil {
		return fmt.Errorf("the node has no table: %w", err)
	}
	if files, err := filepath.Glob(filepath.Join(kept, "*-Data.db")); err != nil || len(files) == 0 {
		return errors.Join(fmt.Errorf("%s: the node has written no record", dir), err)
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range there {
		if e.Name() != "kept" {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return errors.Join(os.RemoveAll(filepath.Join(kept, "backups")), os.RemoveAll(filepath.Join(kept, "snapshots")),
		os.MkdirAll(filepath.Dir(table), 0o755), os.Rename(kept, table))
}

// tail is the end of a file.
func tail(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}
