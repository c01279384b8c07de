package driver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	protocol "assay.dev/assay/systems/driver"
	"assay.dev/assay/systems/driver/drivertest"
)

// build makes a program of systems/hotstuff, as it is in the image.
func build(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.Command("../../build.sh", name)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("build %s: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}

// logName is the file in the server's directory that has what server i, from 0, rejects.
func logName(i int) string { return fmt.Sprintf("r%d.log", i+1) }

// cluster starts n servers on loopback, and returns their client addresses and processes. The other
// servers know each by the key of a server that comes that many places later.
func cluster(t *testing.T, program string, n, places int) ([]string, []*exec.Cmd) {
	t.Helper()
	dir := t.TempDir()
	keygen := exec.Command(build(t, "hotstuffkeygen"), "--pattern", "r*", "--num", fmt.Sprint(n), filepath.Join(dir, "keys"))
	if out, err := keygen.CombinedOutput(); err != nil {
		t.Fatalf("make keys: %v\n%s", err, out)
	}
	ports := drivertest.FreePorts(t, 2*n)
	var config strings.Builder
	config.WriteString("pacemaker = \"fixed\"\nleader-id = 1\n")
	var addresses []string
	for i := range n {
		addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", ports[n+i]))
		fmt.Fprintf(&config, "[[replicas]]\nid = %d\npeer-address = \"127.0.0.1:%d\"\nclient-address = %q\npubkey = \"keys/r%d.key.pub\"\n", i+1, ports[i], addresses[i], (i+places)%n+1)
	}
	if err := os.WriteFile(filepath.Join(dir, "hotstuff.toml"), []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	path := build(t, program)
	var servers []*exec.Cmd
	for i := range n {
		server := exec.Command(path, "--self-id", fmt.Sprint(i+1), "--privkey", fmt.Sprintf("keys/r%d.key", i+1))
		log, err := os.Create(filepath.Join(dir, logName(i)))
		if err != nil {
			t.Fatal(err)
		}
		server.Dir, server.Stderr = dir, log
		server.Env = append(os.Environ(), "HOTSTUFF_LOG=info")
		err = server.Start()
		log.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = server.Process.Kill() // it may be dead already
			_ = server.Wait()
			if out, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
				t.Logf("server %d wrote at last:\n%s", i+1, out[max(0, len(out)-2000):])
			}
		})
		servers = append(servers, server)
	}
	return addresses, servers
}

// Without the leader a command gets no answer, and the driver reports that in time.
func TestSession(t *testing.T) {
	replicas, servers := cluster(t, "hotstuffserver", 4, 0)
	s := drivertest.Start(t, &Driver{Replicas: replicas, PayloadSize: 10})
	s.Hello(protocol.Hello{FirstClient: 40, Clients: 2, Seed: 9, RequestTimeout: 5 * time.Second})
	execute := func(from, to uint64, want string) {
		t.Helper()
		for id := from; id < to; id++ {
			if l := s.Transact(id, 40+int64(id%2), id/2); l.Outcome != want {
				t.Fatalf("got %+v, want %s", l, want)
			}
		}
	}
	execute(0, 20, "commit")
	if err := servers[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	execute(20, 21, "timeout")
	if c := s.Bye(); c["executed"] != 20 || c["commands"] != 21 || c["timedOut"] != 1 {
		t.Errorf("got %v, want 21 commands, 20 executed, 1 timed out", c)
	}
}

// starts is how many clusters may start until one executes a command. Some never do, whatever their
// signatures: see the README, "What this version does not do".
const starts = 6

// Servers with wrong keys of each other reject votes and execute no command, unless they check no
// signature. The leader knows its own key wrongly, too, so it rejects a vote in every start.
func TestSignaturesAreCheckedOrNot(t *testing.T) {
	for program, tc := range map[string]struct {
		starts int
		want   string
	}{
		"hotstuffserver":          {1, "timeout"},
		"hotstuffserver-unsigned": {starts, "commit"},
	} {
		t.Run(program, func(t *testing.T) {
			var got drivertest.Line
			for n := 1; n <= tc.starts && got.Outcome != tc.want; n++ {
				replicas, servers := cluster(t, program, 4, 1)
				s := drivertest.Start(t, &Driver{Replicas: replicas})
				s.Hello(protocol.Hello{FirstClient: 40, Clients: 1, Seed: 9, RequestTimeout: 3 * time.Second})
				got = s.Transact(0, 40, 0)
				t.Logf("start %d: %s", n, got.Outcome)
				s.Bye()
				for _, server := range servers {
					_ = server.Process.Kill() // it may be dead already
				}
				log, err := os.ReadFile(filepath.Join(servers[0].Dir, logName(0)))
				if err != nil {
					t.Fatal(err)
				}
				if rejects := strings.Contains(string(log), "could not be verified"); rejects != (tc.want == "timeout") {
					t.Errorf("start %d: the leader rejects votes: %v", n, rejects)
				}
			}
			if got.Outcome != tc.want {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
		})
	}
}
