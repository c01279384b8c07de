package machine

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// operation is an action of OpenSSH's client on a server.
type operation struct {
	// prepare runs once and is not measured. do is measured.
	prepare, do func(testing.TB, *world)
}

// operations by their names. An operation of a few milliseconds is repeated several times.
var operations = map[string]operation{
	"a connection, with a command": {do: func(t testing.TB, w *world) { w.times(t, 10, "ssh", "node-1", "true") }},
	"a command, connected already": {prepare: connect, do: func(t testing.TB, w *world) { w.times(t, 20, "ssh", "-S", w.control, "node-1", "true") }},
	"a terminal":                   {prepare: connect, do: func(t testing.TB, w *world) { w.times(t, 20, "ssh", "-tt", "-S", w.control, "node-1", "true") }},
	"500 files by sftp and back": {prepare: manyFiles, do: func(t testing.TB, w *world) {
		w.times(t, 1, "sftp", "-q", "-b", filepath.Join(w.dir, "batch"), "node-1")
	}},
	"256 MiB by a forwarded port": {prepare: forwarded, do: throughPort},
	"100 sessions at once":        {do: atOnce},
	"1 GiB by scp": {prepare: bigFile, do: func(t testing.TB, w *world) {
		w.times(t, 1, "scp", "-q", filepath.Join(w.dir, "data"), "node-1:"+filepath.Join(w.home, "copy"))
	}},
}

// BenchmarkClient has OpenSSH's client use a machine and OpenSSH's sshd, in turn, so that both see
// the same machine at the same time. It reports the medians of both, and how much longer a machine
// takes.
//
//	make bench-ssh
func BenchmarkClient(b *testing.B) {
	before := debug.SetGCPercent(GarbagePercent) // as the command machine does
	b.Cleanup(func() { debug.SetGCPercent(before) })
	for name, o := range operations {
		b.Run(name, func(b *testing.B) {
			worlds := [2]*world{newWorld(b), newWorld(b)}
			useSSHD(b, worlds[1])
			for _, w := range worlds {
				if o.prepare != nil {
					o.prepare(b, w)
				}
				o.do(b, w) // this brings files and programs into the cache
			}
			var took [2][]float64
			for n := 0; b.Loop(); n++ {
				for i := range worlds {
					which := (i + n) % 2
					began := time.Now()
					o.do(b, worlds[which])
					took[which] = append(took[which], time.Since(began).Seconds()*1000)
				}
			}
			median := func(all []float64) float64 { slices.Sort(all); return (all[(len(all)-1)/2] + all[len(all)/2]) / 2 }
			own, sshd := median(took[0]), median(took[1])
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(own, "assay-ms")
			b.ReportMetric(sshd, "sshd-ms")
			b.ReportMetric(100*(own/sshd-1), "%more")
		})
	}
}

// times runs a program of the client n times. It fails the test if a run fails.
func (w *world) times(t testing.TB, n int, program string, args ...string) {
	t.Helper()
	for range n {
		if out, code := w.client(t, program, args...); code != 0 {
			t.Fatalf("%s exited with %d: %s", program, code, out)
		}
	}
}

// connect opens a connection that later sessions share.
func connect(t testing.TB, w *world) {
	t.Helper()
	dir, err := os.MkdirTemp("", "c") // sockets have short paths only
	if err != nil {
		t.Fatal(err)
	}
	w.control = filepath.Join(dir, "s")
	master(t, w, "-M", "-S", w.control)
	await(t, "the connection is there", func() bool {
		_, code := w.client(t, "ssh", "-S", w.control, "-O", "check", "node-1")
		return code == 0
	})
	t.Cleanup(func() { os.RemoveAll(dir) })
}

// master runs ssh without a command until the test is over.
func master(t testing.TB, w *world, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "ssh", append([]string{"-F", filepath.Join(w.dir, "config"), "-N"}, append(args, "node-1")...)...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
}

func manyFiles(t testing.TB, w *world) {
	t.Helper()
	tree := filepath.Join(w.dir, "tree")
	if err := os.MkdirAll(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		if err := os.WriteFile(filepath.Join(tree, strconv.Itoa(i)), make([]byte, 4<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	batch := fmt.Sprintf("cd %s\nput -r %s\nget -r tree %s\n", w.home, tree, filepath.Join(w.dir, "back"))
	if err := os.WriteFile(filepath.Join(w.dir, "batch"), []byte(batch), 0o600); err != nil {
		t.Fatal(err)
	}
}

func bigFile(t testing.TB, w *world) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "data"), make([]byte, 1<<30), 0o600); err != nil {
		t.Fatal(err)
	}
}

// forwarded opens a local port that leads to a sink behind the server. The sink answers when it has
// read all data.
func forwarded(t testing.TB, w *world) {
	t.Helper()
	sink, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sink.Close() })
	go func() {
		for {
			conn, err := sink.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				n, _ := io.Copy(io.Discard, conn)
				fmt.Fprintln(conn, n)
			}()
		}
	}()
	own, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.forward = own.Addr().String()
	own.Close()
	master(t, w, "-o", "ExitOnForwardFailure=yes", "-L", w.forward+":"+sink.Addr().String())
	await(t, "the port is open", func() bool {
		conn, err := net.Dial("tcp", w.forward)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

func throughPort(t testing.TB, w *world) {
	t.Helper()
	const size = 256 << 20
	conn, err := net.Dial("tcp", w.forward)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	chunk := make([]byte, 1<<20)
	for range size / len(chunk) {
		if _, err := conn.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	var n int
	if _, err := fmt.Fscan(conn, &n); err != nil || n != size {
		t.Fatalf("%d bytes came through (%v), want %d", n, err, size)
	}
}

func atOnce(t testing.TB, w *world) {
	t.Helper()
	var sessions sync.WaitGroup
	for range 100 {
		sessions.Go(func() {
			if out, code := w.client(t, "ssh", "node-1", "true"); code != 0 {
				t.Errorf("ssh exited with %d: %s", code, out)
			}
		})
	}
	sessions.Wait()
}

// useSSHD makes the world's client use OpenSSH's server.
func useSSHD(t testing.TB, w *world) {
	t.Helper()
	program := "/usr/sbin/sshd"
	if _, err := os.Stat(program); err != nil {
		t.Skip("there is no sshd: apt-get install openssh-server")
	}
	keys, err := ReadKeys(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, w.port, _ = net.SplitHostPort(l.Addr().String())
	l.Close()
	if err := os.WriteFile(filepath.Join(w.dir, "authorized"), []byte(authorized(keys.User.PublicKey())), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Skipf("sshd needs root: %v", err)
	}
	c := exec.CommandContext(t.Context(), program, "-D", "-e", "-f", "/dev/null", "-h", filepath.Join(w.dir, hostKeyFile), "-p", w.port,
		"-o", "AuthorizedKeysFile="+filepath.Join(w.dir, "authorized"), "-o", "StrictModes=no", "-o", "PermitRootLogin=yes", "-o", "UsePAM=no",
		"-o", "Subsystem=sftp internal-sftp", "-o", "ListenAddress=127.0.0.1", "-o", "MaxStartups=200", "-o", "MaxSessions=200",
		"-o", "SetEnv=HOME="+w.home) // otherwise bash reads root's ~/.bashrc, which a machine does not have
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	await(t, "sshd answers", func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+w.port)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	w.configure(t, "config", filepath.Join(w.dir, userKeyFile), keys)
	config := filepath.Join(w.dir, "config")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, append([]byte("User root\n"), text...), 0o600); err != nil {
		t.Fatal(fmt.Errorf("configure the client for sshd: %w", err))
	}
}
