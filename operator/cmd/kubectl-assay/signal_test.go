package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/cli/session"
)

// asProgram is the variable that makes the test's binary run the command: only a process gets a
// signal.
const asProgram = "ASSAY_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// endless are command lines of verbs that wait: for a server that accepts and never answers, for a
// stdin that never ends, or for visitors. SERVER is its kubeconfig, URL its address.
var endless = map[string][]string{
	"new": {"e", "--system", "kv", "-f", "URL"}, "plan": {"-f", "-"}, "parse": {"--client", "wrk"}, "try": {"-f", sample, "--kubeconfig", "SERVER"}, "run": {"-f", sample, "--kubeconfig", "SERVER"},
	"list": {"--kubeconfig", "SERVER"}, "watch": {"x", "--kubeconfig", "SERVER"}, "wait": {"x", "--kubeconfig", "SERVER"}, "logs": {"x", "--kubeconfig", "SERVER"},
	"queue": {"--kubeconfig", "SERVER"}, "ui": {"--kubeconfig", "SERVER"}, "suspend": {"x", "--kubeconfig", "SERVER"}, "resume": {"x", "--kubeconfig", "SERVER"},
	"retry": {"x", "--kubeconfig", "SERVER"}, "report": {"x", "--kubeconfig", "SERVER"}, "compare": {"x", "y", "--kubeconfig", "SERVER"}, "pool": {"x", "y", "--kubeconfig", "SERVER"},
	"bundle": {"x", "-o", "nowhere/x.tar.gz", "--kubeconfig", "SERVER"}, "judge": {"-f", "-", "--bundle", wholeBundle}, "version": {"--kubeconfig", "SERVER"},
	"history": {"x", "--kubeconfig", "SERVER"}, "artifact": {"x", "--kubeconfig", "SERVER"}, "ssh": {"x", "m", "--kubeconfig", "SERVER"},
	"fetch": {"x", "--kubeconfig", "SERVER"}, "hosts": {"--cloudlab", "-", "--control-plane", "a", "--pool", "servers=*"},
}

const wholeBundle = "../../internal/cli/verify/testdata/whole.tar.gz"

// immediate are verbs that read files of this machine only, so that they end before a user could
// interrupt them.
var immediate = []string{"schema", "verify", "options", "completion", "help", "check-image", "import"}

// Ctrl-C took eight seconds against a server that never answers, and ended with 1 or 0: every verb
// must end with 130 within a second.
func TestInterruptEndsEveryVerb(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	config := kubeconfig(t, listener.Addr().String())
	for _, verb := range verbs() {
		args, waits := endless[verb]
		if slices.Contains(immediate, verb) == waits {
			t.Errorf("%s is in one of the two lists: it waits, or it does not", verb)
		}
		if !waits {
			continue
		}
		t.Run(verb, func(t *testing.T) {
			t.Parallel() // each sleeps most of the time
			line := []string{verb}
			for _, a := range args {
				line = append(line, strings.NewReplacer("SERVER", config, "URL", "http://"+listener.Addr().String()+"/s.yaml").Replace(a))
			}
			interrupt(t, line)
		})
	}
}

// verbs of the command, by name.
func verbs() (names []string) {
	for _, c := range command(&session.Session{}, &localFlags{}).Commands() {
		names = append(names, c.Name())
	}
	return names
}

// asleep is how long a command must use no processor, with all its threads asleep, to be taken for
// one that has started and waits.
const asleep = 400 * time.Millisecond

// interrupt starts the command, sends SIGINT when it runs, and judges its end.
func interrupt(t *testing.T, line []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, line...)
	temporary := t.TempDir()
	cmd.Env = append(os.Environ(), asProgram+"=1", "HOME="+t.TempDir(), "TMPDIR="+temporary, "KUBECONFIG="+filepath.Join(t.TempDir(), "none"))
	stdin, err := cmd.StdinPipe() // the pipe stays open
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	var said strings.Builder
	var lock sync.Mutex
	cmd.Stdout, cmd.Stderr = locked{&said, &lock}, locked{&said, &lock}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var idle string // the processor time used at the last change
	since, begin := time.Now(), time.Now()
	for idle == "" || time.Since(since) < asleep {
		select {
		case err := <-ended:
			t.Fatalf("it ended by itself, %v:\n%s", err, said.String())
		case <-time.After(50 * time.Millisecond):
		}
		if used := processorTime(t, cmd.Process.Pid); used != idle {
			idle, since = used, time.Now()
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("it does not come to wait for anything:\n%s", said.String())
		}
	}
	begin = time.Now()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	// The test may run at the lowest priority beside programs that take all processors. So another
	// process says how long one waits for a processor at this moment.
	witness := make(chan time.Duration, 1)
	go func() {
		other := exec.CommandContext(t.Context(), self, "version", "--help")
		other.Env = cmd.Env
		_ = other.Run() // only its time counts
		witness <- time.Since(begin)
	}()
	select {
	case err = <-ended:
	case <-time.After(20 * time.Second):
		_ = cmd.Process.Kill()
		t.Fatal("it goes on after SIGINT")
	}
	took := time.Since(begin)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != session.ExitInterrupted {
		t.Errorf("it ended with %v, want exit code %d:\n%s", err, session.ExitInterrupted, said.String())
	}
	if other := <-witness; took > time.Second+other {
		t.Errorf("it took %v, and version --help took %v", took, other)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("it left temporary files: %v, %v", left, err)
	}
	t.Logf("%s ended after %v: %s", line[0], took.Round(time.Millisecond), said.String())
}

// processorTime that a process has used, in ticks, by thread. It is empty if the process has used
// none yet, or if a thread runs, or would run on a free processor.
func processorTime(t *testing.T, pid int) string {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("process %d has no threads (%v)", pid, err)
	}
	var all []string
	used := false
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			return "" // it has just ended
		} else if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(stat), ") ") // the name may have blanks
		fields := strings.Fields(after)
		if len(fields) < 13 {
			t.Fatalf("the state of a thread is %q", stat)
		}
		if fields[0] != "S" {
			return ""
		}
		all = append(all, fields[11], fields[12])
		used = used || fields[11] != "0" || fields[12] != "0"
	}
	if !used {
		return ""
	}
	return strings.Join(all, " ")
}

// locked is a writer for two streams of one process.
type locked struct {
	to   *strings.Builder
	lock *sync.Mutex
}

func (l locked) Write(p []byte) (int, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.to.Write(p)
}

func TestAnInterruptedVerbSaysWhatStays(t *testing.T) {
	for dir, want := range map[string]string{"": "what was sent to the cluster before goes on", "assay-results": "what was written before is in folder assay-results"} {
		err := (&localFlags{dir: dir}).interrupted()
		if session.ExitCode(err) != session.ExitInterrupted || !strings.Contains(err.Error(), want) {
			t.Errorf("--local=%q: %v with exit code %d, want %q", dir, err, session.ExitCode(err), want)
		}
	}
}
