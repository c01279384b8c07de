package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary be the program, so that signals and exit codes are those of real processes.
func TestMain(m *testing.M) {
	if os.Getenv("BE_AWKWARD") != "" {
		main()
	}
	os.Exit(m.Run())
}

// process is a running awkward.
type process struct {
	*exec.Cmd
	out  bytes.Buffer
	file *os.File
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(exe, args...)}
	if p.file, err = os.Create(filepath.Join(t.TempDir(), "stderr")); err != nil {
		t.Fatal(err)
	}
	p.Env = append(os.Environ(), "BE_AWKWARD=1")
	p.Stdout, p.Stderr = &p.out, p.file
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Process.Kill()
		p.Wait()
		p.file.Close()
	})
	return p
}

// says waits until the process has printed the text on stderr.
func (p *process) says(t *testing.T, text string) {
	t.Helper()
	var got []byte
	for range 2000 {
		got, _ = os.ReadFile(p.file.Name())
		if strings.Contains(string(got), text) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%v did not say %q within 20 s, but:\n%s", p.Args[1:], text, got)
}

// end sends the signal and returns the exit code, or -1 for a process that died of it.
func (p *process) end(t *testing.T, signal syscall.Signal) int {
	t.Helper()
	if err := p.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	return p.ProcessState.ExitCode()
}

func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	if err := start(t, "keygen", dir, "4").Wait(); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "shard.config")
	text := "f 1\ngroup\n"
	for i := range 4 {
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.8.%d:0", i+1))
		if err != nil {
			t.Fatal(err)
		}
		text += "replica " + l.Addr().String() + "\n"
		l.Close()
	}
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	stats := filepath.Join(dir, "stats.json")
	var servers []*process
	for i := range 4 {
		args := []string{"server", "--config", config, "--keys", dir, "--index", fmt.Sprint(i), "--load_time=100ms", "--service_time=2ms"}
		if i == 0 {
			args = append(args, "--stats_file="+stats)
		}
		servers = append(servers, start(t, args...))
	}
	for _, s := range servers {
		s.says(t, "Ready to process operations")
	}

	client := start(t, "client", "--config", config, "--keys", dir, "--duration=0.5", "--warmup=0.1")
	client.says(t, "Finished cooldown period")
	if code := client.end(t, syscall.SIGTERM); code != 139 {
		t.Errorf("SIGTERM after its end: exit code %d, want 139", code)
	}
	if n := strings.Count(client.out.String(), "rw,"); n < 2 {
		t.Errorf("the client printed %d lines", n)
	}

	for signal, want := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGKILL: -1} {
		stress := start(t, "stress", "--config", config, "--keys", dir, "--print_time=50ms")
		time.Sleep(300 * time.Millisecond)
		if code := stress.end(t, signal); code != want {
			t.Errorf("%v to stress: exit code %d, want %d", signal, code, want)
		}
		if printed := strings.Contains(stress.out.String(), "rw,"); printed != (signal == syscall.SIGTERM) {
			t.Errorf("%v to stress: it printed: %v", signal, printed)
		}
	}

	if code := servers[0].end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("SIGTERM to a server: exit code %d, want 0", code)
	}
	var written struct{ Served uint64 }
	if text, err := os.ReadFile(stats); err != nil {
		t.Error(err)
	} else if err := json.Unmarshal(text, &written); err != nil || written.Served == 0 {
		t.Errorf("statistics %s: %v", text, err)
	}
}
