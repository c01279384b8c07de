package maker

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"assay.dev/assay/systems/cassandra/internal/driver"
	"assay.dev/assay/systems/cassandra/internal/workload"
)

// The System has the same tokens for the nodes of trials; a test of package render has these
// numbers, too.
func TestTokensHaveEvenDistances(t *testing.T) {
	for nodes, want := range map[int][]int64{
		1: {-9223372036854775807}, 3: {-9223372036854775806, -3074457345618258602, 3074457345618258602},
	} {
		var got []int64
		for i := range nodes {
			got = append(got, Token(i, nodes))
		}
		if !slices.Equal(got, want) {
			t.Errorf("the tokens of %d nodes are %d, want %d", nodes, got, want)
		}
	}
}

// newConfig has free ports and the programs of build.sh.
func newConfig(t *testing.T) Config {
	t.Helper()
	out, err := exec.Command("../../build.sh", "--path", "cassandra-rootfs").Output()
	root := strings.TrimSpace(string(out))
	if err != nil {
		t.Skipf("Cassandra cannot be built here: %v", err)
	}
	if _, err := os.Stat(root); err != nil {
		t.Fatalf("Cassandra is not built; run systems/cassandra/build.sh cassandra-rootfs: %v", err)
	}
	w, err := workload.New(workload.Options{Records: 500, KeySize: 24, ValueSize: 100, Mix: "a", Distribution: "zipfian", Theta: 0.99, Replication: 2, Compaction: "leveled",
		Read: gocql.One, Write: gocql.One})
	if err != nil {
		t.Fatal(err)
	}
	return Config{Nodes: 3, Dir: t.TempDir(), Root: root, Heap: "256m", Storage: freePort(t), Port: freePort(t), JMX: 17199, Workload: w}
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

// ring starts a ring of another name and at other addresses, whose nodes have the directories of a
// ring that was made, in this order.
func ring(t *testing.T, made Config, order []int) (c Config, addresses []string) {
	t.Helper()
	c = made
	c.Dir, c.cluster = t.TempDir(), "of-a-trial"
	ctx, fail := context.WithCancelCause(t.Context())
	t.Cleanup(func() { fail(nil) })
	for i := range c.Nodes {
		addresses = append(addresses, fmt.Sprintf("127.0.0.%d", i+11))
	}
	for i, of := range order {
		if err := os.CopyFS(c.dir(i), os.DirFS(made.dir(of))); err != nil {
			t.Fatal(err)
		}
		n, err := c.start(i, addresses, fail)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = n.process.Process.Kill() // it may have ended
			<-n.ended
			if t.Failed() {
				t.Logf("node %d: %v; %s", i, context.Cause(ctx), tail(filepath.Join(n.dir, "log")))
			}
		})
	}
	return c, addresses
}

// The nodes of a ring that was made leave the files of the table and nothing else. A ring with
// other addresses and another name begins with all records, and writes none.
func TestARingBeginsWithMadeFiles(t *testing.T) {
	made := newConfig(t)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	if err := Make(ctx, made); err != nil {
		t.Fatal(err)
	}
	for i := range made.Nodes {
		var others []string
		data := 0
		err := filepath.WalkDir(made.dir(i), func(name string, d os.DirEntry, err error) error {
			switch below, _ := filepath.Rel(made.dir(i), name); {
			case err != nil || d.IsDir():
			case strings.HasPrefix(below, "data/"+workload.Directory+"/"):
				data++
			default:
				others = append(others, below)
			}
			return err
		})
		if err != nil || data == 0 || len(others) > 0 {
			t.Errorf("node %d left %d files of the table and %q (%v)", i, data, others, err)
		}
	}
	c, addresses := ring(t, made, []int{0, 1, 2})
	if err := driver.Open(ctx, addresses, c.Port, c.Workload); err != nil {
		t.Fatal(err)
	}
	s, err := driver.Connect(addresses, c.Port, 1, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	count := 0
	if err := s.Query("SELECT count(*) FROM ycsb.usertable").Consistency(gocql.All).ScanContext(ctx, &count); err != nil || count != 500 {
		t.Errorf("%d records (%v), want 500", count, err)
	}
	for i := range addresses {
		if said, err := c.nodetool(ctx, i, "netstats"); err != nil || !strings.Contains(said, "Mismatch (Blocking): 0\n") {
			t.Errorf("replicas did not agree on records: %s (%v)", said, err)
		}
	}
}

// A ring whose nodes got each other's files is not taken for the one that was loaded.
func TestAWrongDirectoryIsNoticed(t *testing.T) {
	made := newConfig(t)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	if err := Make(ctx, made); err != nil {
		t.Fatal(err)
	}
	c, addresses := ring(t, made, []int{1, 2, 0})
	if err := driver.Open(ctx, addresses, c.Port, c.Workload); err == nil || !strings.Contains(err.Error(), "did not begin with the loaded records") {
		t.Errorf("the error is %v", err)
	}
}

// A node that cannot start fails the making at once, with the end of its log.
func TestANodeThatEndsFailsTheMaking(t *testing.T) {
	c := newConfig(t)
	c.Heap = "1k"
	began := time.Now()
	err := Make(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), "ended (exit status 1); its log ends with") || time.Since(began) > time.Minute {
		t.Errorf("after %v the error is %v", time.Since(began), err)
	}
}
