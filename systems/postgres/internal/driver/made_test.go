package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"assay.dev/assay/systems/driver/drivertest"
	"assay.dev/assay/systems/postgres/internal/node"
	"assay.dev/assay/systems/postgres/internal/workload"
)

// A database that was made once serves a server alone, and a pair whose replicas begin with copies
// of two different makings. The pair survives the death of its primary, and the transactions of
// clients meet the rows that were loaded.
func TestReplicasBeginWithAMadeDatabase(t *testing.T) {
	for name, n := range map[string]int{"alone": 1, "a primary and its standby": 2} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			for i := range n {
				s.make(i, "smallbank", "--records", "500")
				left, err := filepath.Glob(filepath.Join(s.data(i), "pg_wal", "0*"))
				if err != nil || len(left) != 1 || s.has(i, "postmaster.pid") || !s.has(i, "assay-made") {
					t.Errorf("the database has the log %q (%v); want a clean one with one file", left, err)
				}
			}
			replicas, status, nodes := s.deploy(n)
			if s.has(0, "assay-made") || s.has(n-1, "assay-made") {
				t.Error("a database in use is marked as just made")
			}
			ctx := t.Context()
			conn, err := node.Connect(ctx, replicas)
			if err != nil {
				t.Fatal(err)
			}
			var rows, fsync, standbys string
			const ask = "SELECT (SELECT count(*)::text FROM checking), current_setting('fsync'), current_setting('synchronous_standby_names')"
			err = conn.QueryRow(ctx, ask).Scan(&rows, &fsync, &standbys)
			if want := map[int]string{1: "", 2: "FIRST 1 (standby)"}[n]; err != nil || rows != "500" || fsync != "off" || standbys != want {
				t.Errorf("%s rows, fsync %s, standbys %q (%v); want 500, off and %q", rows, fsync, standbys, err, want)
			}
			if err := conn.Close(ctx); err != nil {
				t.Error(err)
			}
			w, err := workload.New("smallbank", workload.Options{Records: 500, ValueSize: 1})
			if err != nil {
				t.Fatal(err)
			}
			client := start(t, replicas, w)
			if n > 1 {
				client.crash(t, status, nodes)
			} else if done := client.transact(0, 100); done != 100 {
				t.Errorf("%d of 100 transactions committed", done)
			}
		})
	}
}

// make makes the database of a replica.
func (s *site) make(replica int, name string, flags ...string) {
	s.t.Helper()
	port := drivertest.FreePorts(s.t, 1)[0]
	args := []string{"make", "--data", s.data(replica), "--port", fmt.Sprint(port), "--", build(s.t, s.dir, "postgres-driver"), "load", "--workload", name, "--replicas", fmt.Sprint("127.0.0.1:", port)}
	if err := s.node(append(args, flags...)...).Run(); err != nil {
		s.t.Fatalf("make a database: %v", err)
	}
}

func (s *site) has(replica int, file string) bool {
	_, err := os.Stat(filepath.Join(s.data(replica), file))
	return err == nil
}

// Make fails when its command does. No database is then marked as made.
func TestMakeFailsWithItsCommand(t *testing.T) {
	s := newSite(t)
	for name, tc := range map[string]struct {
		args []string
		code int
	}{
		"a command that fails": {[]string{"make", "--data", s.data(0), "--port", fmt.Sprint(drivertest.FreePorts(t, 1)[0]), "--", "/bin/false"}, 1},
		"no command":           {[]string{"make", "--data", s.data(1)}, 2},
		"no port":              {[]string{"make", "--data", s.data(1), "--port", "0", "--", "/bin/true"}, 2},
	} {
		cmd := s.node(tc.args...)
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != tc.code {
			t.Errorf("%s: %v, want exit code %d", name, err, tc.code)
		}
	}
	if s.has(0, "assay-made") || s.has(0, "postmaster.pid") {
		t.Error("a database that was not loaded is marked as made, or its server still runs")
	}
}
