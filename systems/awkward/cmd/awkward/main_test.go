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

// TestMain lets the test binary be the program, so that the tests get signals and exit codes of
// real processes.
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
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		got, _ = os.ReadFile(p.file.Name())
		if strings.Contains(string(got), text) {
			return
		}
	}
	t.Fatalf("%v did not say %q within a minute, but:\n%s", p.Args[1:], text, got)
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

	var printed int
	for _, seconds := range []string{"0.5", "4", "20"} { // a busy machine may delay it for most of the first attempt
		client := start(t, "client", "--config", config, "--keys", dir, "--duration="+seconds, "--warmup=0.1")
		client.says(t, "Finished cooldown period")
		if code := client.end(t, syscall.SIGTERM); code != 139 {
			t.Errorf("SIGTERM after its end: exit code %d, want 139", code)
		}
		if printed = strings.Count(client.out.String(), "rw,"); printed >= 2 {
			break
		}
	}
	if printed < 2 {
		t.Errorf("the client printed %d lines", printed)
	}
	stress(t, "--config", config, "--keys", dir, "--print_time=50ms")

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

// stress is ended while it works. If it is asked politely, it prints what it did; otherwise it
// prints nothing.
func stress(t *testing.T, flags ...string) {
	t.Helper()
	run := func(works time.Duration, signal syscall.Signal) (code int, printed bool) {
		p := start(t, append([]string{"stress"}, flags...)...)
		time.Sleep(works)
		code = p.end(t, signal)
		return code, strings.Contains(p.out.String(), "rw,")
	}
	var code int
	var printed bool
	for _, works := range []time.Duration{300 * time.Millisecond, 3 * time.Second, 15 * time.Second} { // a busy machine takes long to start it
		if code, printed = run(works, syscall.SIGTERM); code == 143 && printed {
			break
		}
		t.Logf("SIGTERM to stress after %v: exit code %d, it printed: %v", works, code, printed)
	}
	if code != 143 || !printed {
		t.Errorf("SIGTERM to stress: exit code %d, want 143; it printed: %v", code, printed)
	}
	if code, printed := run(300*time.Millisecond, syscall.SIGKILL); code != -1 || printed {
		t.Errorf("SIGKILL to stress: exit code %d, want that it died of it; it printed: %v", code, printed)
	}
}
