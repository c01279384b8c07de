package machine

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkSCP copies a file to the machine, and to the same place through OpenSSH's sshd.
//
//	make bench-ssh
func BenchmarkSCP(b *testing.B) {
	const size = 1 << 30
	file := filepath.Join(b.TempDir(), "data")
	if err := os.WriteFile(file, make([]byte, size), 0o600); err != nil {
		b.Fatal(err)
	}
	for name, serve := range servers {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			serve(b, w)
			b.SetBytes(size)
			for b.Loop() {
				if out, code := w.client(b, "scp", "-q", file, "node-1:"+filepath.Join(w.home, "copy")); code != 0 {
					b.Fatalf("scp exited with %d: %s", code, out)
				}
			}
		})
	}
}

// BenchmarkCommand connects and runs a command that does nothing.
func BenchmarkCommand(b *testing.B) {
	for name, serve := range servers {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			serve(b, w)
			for b.Loop() {
				if out, code := w.client(b, "ssh", "node-1", "true"); code != 0 {
					b.Fatalf("ssh exited with %d: %s", code, out)
				}
			}
		})
	}
}

var servers = map[string]func(testing.TB, *world){
	"assay": func(testing.TB, *world) {},
	"sshd":  useSSHD,
}

// useSSHD has the world's client reach OpenSSH's server.
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
		"-o", "Subsystem=sftp internal-sftp", "-o", "ListenAddress=127.0.0.1")
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
