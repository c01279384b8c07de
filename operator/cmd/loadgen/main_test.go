package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/loadgen"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// exec runs the command line and returns what it prints.
func execute(t *testing.T, env environment, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	err = command(env, &out, &errs, args).ExecuteContext(context.Background())
	return out.String(), errs.String(), err
}

// echoServer runs the echo-server command and returns the address that it prints.
func echoServer(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- command(environment{}, w, io.Discard, []string{"echo-server", "--listen", "127.0.0.1:0"}).ExecuteContext(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("echo-server: %v", err)
		}
	})
	b := make([]byte, 64)
	n, err := r.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b[:n]))
}

func readResult(t *testing.T, path string) results.Client {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := results.DecodeClient(b)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRunAgainstEchoServer(t *testing.T) {
	tests := map[string]struct {
		flags []string
		want  []string // in the output
	}{
		"closed loop": {nil, []string{"window       500ms, 4 clients", "committed per second", "p99.9"}},
		"open loop":   {[]string{"--rate", "2000", "--arrivals", "constant"}, []string{"1000 offered", "unsent"}},
	}
	address := echoServer(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "result.json")
			stdout, stderr, err := execute(t, environment{}, append([]string{"run", "--driver", "echo", "--address", address, "--clients", "4",
				"--warm-up", "100ms", "--measure", "500ms", "--timeout", "1m", "--out", out}, tc.flags...)...)
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr)
			}
			for _, want := range tc.want {
				if !strings.Contains(stdout, want) {
					t.Errorf("the output has no %q:\n%s", want, stdout)
				}
			}
			c := readResult(t, out)
			if c.Clients != 4 || c.Counters.Committed == 0 || c.Counters.Errors+c.Counters.Timeouts != 0 {
				t.Errorf("%d clients with counters %+v; want 4, which commit all", c.Clients, c.Counters)
			}
		})
	}
}

// A client pod: configuration in a file, barrier files from the environment, as the agent makes
// them.
func TestRunAsAClientPod(t *testing.T) {
	dir := t.TempDir()
	env := environment{readyFile: filepath.Join(dir, "ready"), startFile: filepath.Join(dir, "start")}
	cfg := loadgen.Config{
		Index: 1, FirstClient: 3, Clients: 2, Loop: loadgen.LoopClosed, Timeout: loadgen.Duration(time.Second),
		Windows: loadgen.Windows{Measure: loadgen.Duration(time.Hour)}, // the windows of the start file count
		Driver:  loadgen.DriverConfig{Protocol: loadgen.ProtocolEcho, Address: echoServer(t)},
		Files:   loadgen.Files{Result: filepath.Join(dir, "result.json")},
	}
	writeJSON(t, filepath.Join(dir, "loadgen.json"), cfg)
	go func() {
		for {
			if _, err := os.Stat(env.readyFile); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		part := env.startFile + ".part"
		writeJSON(t, part, protocol.StartSignal{ZeroMonotonicNanos: loadgen.MonotonicNanos() + int64(time.Second),
			Windows: timeline.Windows{WarmUp: 100 * time.Millisecond, Measure: 300 * time.Millisecond}})
		_ = os.Rename(part, env.startFile)
	}()
	if _, stderr, err := execute(t, env, "run", "--config", filepath.Join(dir, "loadgen.json")); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	c := readResult(t, cfg.Files.Result)
	if c.Index != 1 || c.FirstClient != 3 || c.Clients != 2 || c.MeasureNanos != int64(300*time.Millisecond) {
		t.Errorf("index %d, first client %d, clients %d, window %v", c.Index, c.FirstClient, c.Clients, time.Duration(c.MeasureNanos))
	}
	if c.Counters.Committed == 0 {
		t.Error("nothing was committed")
	}
}

func writeJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestRunRefuses(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"nothing":                {nil, "give --config FILE or --driver echo|process"},
		"an unknown driver":      {[]string{"--driver", "http"}, `--driver is "http"; it must be echo or process`},
		"echo without address":   {[]string{"--driver", "echo"}, "needs --address"},
		"process, no command":    {[]string{"--driver", "process"}, "needs the driver's command after --"},
		"arrivals, closed":       {[]string{"--driver", "echo", "--address", "x:1", "--arrivals", "poisson"}, "give --rate, too"},
		"unknown arrivals":       {[]string{"--driver", "echo", "--address", "x:1", "--rate", "1", "--arrivals", "even"}, "it must be constant or poisson"},
		"no clients":             {[]string{"--driver", "echo", "--address", "x:1", "--clients", "0"}, "clients is 0; it must be from 1 to 100000"},
		"rate 0":                 {[]string{"--driver", "echo", "--address", "x:1", "--rate", "0"}, "rate is 0"},
		"no duration":            {[]string{"--measure", "5"}, "invalid argument \"5\" for \"--measure\" flag"},
		"config and more":        {[]string{"--config", "x", "--clients", "2"}, "--config sets everything"},
		"config that is missing": {[]string{"--config", "/does/not/exist"}, "read the configuration"},
		"no server listens":      {[]string{"--driver", "echo", "--address", "127.0.0.1:1"}, "connect to the echo server"},
		"driver does not start":  {[]string{"--driver", "process", "--", "/does/not/exist"}, "start the driver"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := execute(t, environment{}, append([]string{"run"}, tc.args...)...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
}

// A driver dies in the run. The results are written with the reason, and the exit code is not 0.
func TestFailureIsWrittenAndReturned(t *testing.T) {
	cfg := loadgen.Config{Clients: 1, Loop: loadgen.LoopClosed, Timeout: loadgen.Duration(time.Second),
		Windows: loadgen.Windows{Measure: loadgen.Duration(300 * time.Millisecond)},
		Driver: loadgen.DriverConfig{Protocol: loadgen.ProtocolProcess, Command: []string{"/bin/sh", "-c",
			`read hello; echo '{"type":"ready"}'; read begin; exit 7`}},
		Files: loadgen.Files{Result: filepath.Join(t.TempDir(), "result.json")}}
	err := run(context.Background(), cfg, io.Discard, io.Discard, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "exit status 7") {
		t.Fatalf("error = %v, want the driver's exit status", err)
	}
	if c := readResult(t, cfg.Files.Result); !strings.Contains(c.Failure, "exit status 7") || c.Counters.Errors == 0 {
		t.Errorf("failure %q, %d errors; want the exit status, and later requests to fail", c.Failure, c.Counters.Errors)
	}
}

// Clients that misbehave have a driver of their own: here a program that never answers a request,
// while the others reach an echo server.
func TestMisbehavingClients(t *testing.T) {
	greeting := filepath.Join(t.TempDir(), "hello")
	cfg := loadgen.Config{FirstClient: 4, Clients: 4, Loop: loadgen.LoopClosed, Timeout: loadgen.Duration(time.Second),
		Windows: loadgen.Windows{Measure: loadgen.Duration(400 * time.Millisecond), Drain: loadgen.Duration(5 * time.Second)},
		Driver:  loadgen.DriverConfig{Protocol: loadgen.ProtocolEcho, Address: echoServer(t)},
		Misbehaving: &loadgen.Misbehaving{Clients: []int32{5, 6}, Driver: loadgen.DriverConfig{Protocol: loadgen.ProtocolProcess,
			Command: []string{"/bin/sh", "-c", `read -r hello; echo "$hello" > "$0"; echo '{"type":"ready"}'; n=0
				while read -r line; do case "$line" in *bye*) break;; *'"client":5,'*|*'"client":6,'*) n=$((n+1));; *) exit 9;; esac; done
				echo '{"type":"stats","counters":{"unanswered":'$n'}}'`, greeting}}},
		Files: loadgen.Files{Result: filepath.Join(t.TempDir(), "result.json")}}
	var stdout bytes.Buffer
	stdout.Reset()
	if err := run(context.Background(), cfg, &stdout, io.Discard, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	c := readResult(t, cfg.Files.Result)
	if n := c.Counters; n.Committed == 0 || n.Timeouts+n.Errors != 0 {
		t.Errorf("counters %+v; want no request of those that get no answer", n)
	}
	// Their first answer would take longer than the window lasts.
	if n := c.MisbehavingDriver["unanswered"]; c.MisbehavingClients != 2 || n != 2 {
		t.Errorf("%d clients misbehave with %d requests, want 2 with one each", c.MisbehavingClients, n)
	}
	if hello, err := os.ReadFile(greeting); err != nil || !strings.Contains(string(hello), `"firstClient":4,"clients":4`) {
		t.Errorf("their driver was greeted with %s (%v)", hello, err)
	}
	for _, want := range []string{"400ms, 2 clients", "misbehaving  2 clients", "misbehaving  unanswered "} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the output has no %q:\n%s", want, stdout.String())
		}
	}
}

// The example for authors of drivers is run as it is printed.
func TestDocumentedDriver(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("the documentation's example is in Python, and there is no python3 on this machine")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "driver-protocol.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/reference/driver-protocol.md has no Python example")
	}
	dir := t.TempDir()
	driver, out := filepath.Join(dir, "driver.py"), filepath.Join(dir, "result.json")
	if err := os.WriteFile(driver, block[1], 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, err := execute(t, environment{}, "run", "--driver", "process", "--clients", "4", "--warm-up", "100ms", "--measure", "1s",
		"--out", out, "--", python, driver)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	c := readResult(t, out)
	n := c.Counters
	if c.Driver["commits"] < n.Committed || c.Driver["aborts"] < n.Aborted {
		t.Errorf("driver counters %v are of the whole run, so at least the window's %d commits and %d aborts", c.Driver, n.Committed, n.Aborted)
	}
	if n.Committed == 0 || n.Aborted == 0 || n.Retries == 0 || n.Errors+n.Timeouts != 0 {
		t.Errorf("counters %+v; the example commits most and aborts some\n%s", n, stderr)
	}
}

// Every documented flag exists, and every flag is documented.
func TestEveryFlagIsDescribed(t *testing.T) {
	stdout, _, err := execute(t, environment{}, "run", "--help")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "client-interface.md"))
	if err != nil {
		t.Fatal(err)
	}
	flags := regexp.MustCompile(`(?m)^ +--([a-z-]+)`).FindAllStringSubmatch(stdout, -1)
	if len(flags) < 15 {
		t.Fatalf("only %d flags found in:\n%s", len(flags), stdout)
	}
	for _, f := range flags {
		if !strings.Contains(string(page), "`--"+f[1]+"`") {
			t.Errorf("docs/reference/client-interface.md does not describe --%s", f[1])
		}
	}
}
