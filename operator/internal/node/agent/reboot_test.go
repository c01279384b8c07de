package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/agent"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

func init() { roles["machine"] = playMachine }

// playMachine is the agent of a machine whose identity is in a file. A reset changes the identity
// and kills the agent, like the reset of a real machine. The variable RESET names other outcomes.
// No test can reset the machine that it runs on.
func playMachine() {
	ctx, stop := signalContext()
	defer stop()
	identityFile := os.Getenv("RUN") + "/../identity"
	identity := func() (string, error) {
		content, err := os.ReadFile(identityFile)
		return string(content), err
	}
	reset := func() error {
		switch os.Getenv("RESET") {
		case "refused":
			return syscall.EPERM
		case "crash": // of the agent alone
		default:
			write(identityFile, "second", 0o600)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		<-context.Background().Done()
		return nil
	}
	a, err := agent.New(agent.Config{
		Coordinator: os.Getenv("COORDINATOR"), CAFile: os.Getenv("CA"), TokenFile: os.Getenv("TOKEN"), RunDir: os.Getenv("RUN"), Durable: true,
		Wall:   time.Now,
		Parse:  func(string, io.Reader, agent.ReportFacts) (results.Client, error) { return results.Client{}, nil },
		Random: mathrand.New(mathrand.NewPCG(1, 2)), Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err == nil {
		err = a.RunMachine(ctx, agent.Machine{Node: "node-1", Reset: reset, Identity: identity})
	}
	if err != nil {
		panic(err)
	}
}

// machinePlay is such an agent with its coordinator.
type machinePlay struct {
	*pod
	c *fakeCoordinator
}

func newMachine(t *testing.T, node string) *machinePlay {
	t.Helper()
	c := newFakeCoordinator(t, "127.0.0.1:0")
	m := &machinePlay{pod: newPod(t, c), c: c}
	m.write("identity", []byte("first"))
	c.direct(func(d *protocol.Directive) { d.Machine = &protocol.Machine{Node: node} })
	return m
}

// start starts the agent, and returns a function that waits until it has ended. An agent that comes
// too late for a reset skips it, and does not end.
func (m *machinePlay) start(env ...string) (ended func() error) {
	m.t.Helper()
	cmd := m.play("machine", env...)
	return func() error {
		done := make(chan struct{})
		go func() { defer close(done); _ = cmd.Wait() }()
		for deadline := time.After(patience); ; {
			select {
			case <-done:
				return nil
			case <-deadline:
				return errors.New("the machine did not go down")
			case <-time.After(10 * time.Millisecond):
			}
			m.c.mu.Lock()
			report := m.c.report
			m.c.mu.Unlock()
			if report != nil && len(report.Actions) > 0 && report.Actions[0].Error != "" {
				return fmt.Errorf("the machine did not go down: %s", report.Actions[0].Error)
			}
		}
	}
}

func resetAction(id string, at time.Duration) timeline.Action {
	return timeline.Action{ID: id, Fault: "power", Pod: id, Kind: timeline.Reset, At: at}
}

// release agrees on a run whose t = 0 is soon.
func (m *machinePlay) release(zero time.Time, actions ...timeline.Action) {
	m.c.direct(func(d *protocol.Directive) {
		d.Run = &protocol.Run{ZeroUnixNanos: zero.UnixNano(), Windows: timeline.Windows{Measure: time.Minute}, Actions: actions}
	})
}

func TestAMachineGoesDownOnceAndComesBack(t *testing.T) {
	if err := downOnce(t); err != nil {
		t.Error(err)
	}
}

func downOnce(t *testing.T) error {
	t.Helper()
	m := newMachine(t, "node-1")
	ended := m.start()
	m.c.await("is ready", func(r protocol.Report) bool { return r.Ready && r.ClockError > 0 })
	const at = 200 * time.Millisecond
	m.release(time.Now().Add(500*time.Millisecond), resetAction("a", at), resetAction("b", at))
	if err := ended(); err != nil {
		return err
	}
	if got := m.read("identity"); got != "second" {
		t.Fatalf("the machine is the %s one, want the second", got)
	}
	if journal := m.read("run/agent.json"); !strings.Contains(journal, `"machine":"first"`) {
		t.Errorf("the journal does not say what was done before the machine went down: %s", journal)
	}

	m.start()
	report := m.c.await("tells of both resets", func(r protocol.Report) bool { return len(r.Actions) == 2 })
	var late time.Duration
	for i, id := range []string{"a", "b"} {
		a := report.Actions[i]
		if a.ID != id || a.Error != "" || a.Planned != at || a.Started < at || a.Confirmed <= a.Started {
			t.Errorf("the record is %+v, want %s begun at %v and confirmed later", a, id, at)
		}
		late = max(late, a.Started-at)
	}
	// A machine that has come back must not reset itself again, whatever it finds.
	time.Sleep(100 * time.Millisecond)
	if got := m.c.await("still runs", func(r protocol.Report) bool { return r.Incarnation == report.Incarnation }); got.Failure != "" {
		t.Errorf("the agent failed: %s", got.Failure)
	}
	if late > 5*time.Second {
		return fmt.Errorf("a reset was %v late", late)
	}
	return nil
}

func TestAMachineThatIsNotReset(t *testing.T) {
	soon := func() time.Time { return time.Now().Add(300 * time.Millisecond) }
	for name, tc := range map[string]struct {
		node string
		env  string
		zero func() time.Time
		// restart the agent once it has ended
		restart bool
		want    string
	}{
		"the kernel refuses":                         {"node-1", "RESET=refused", soon, false, "operation not permitted"},
		"the agent ends and the machine does not":    {"node-1", "RESET=crash", soon, true, "the machine did not go down"},
		"the instant was missed, as after a restart": {"node-1", "RESET=", func() time.Time { return time.Now().Add(-10 * time.Second) }, false, "not made up for"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, tc.node)
			ended := m.start(tc.env)
			m.c.await("is ready", func(r protocol.Report) bool { return r.Ready && r.ClockError > 0 })
			m.release(tc.zero(), resetAction("a", 100*time.Millisecond))
			if tc.restart {
				if err := ended(); err != nil {
					t.Fatal(err)
				}
				m.start(tc.env)
			}
			report := m.c.await("tells of the reset", func(r protocol.Report) bool { return len(r.Actions) == 1 })
			if m.read("identity") != "first" {
				t.Errorf("it is the %s machine, want the first", m.read("identity"))
			}
			if !strings.Contains(report.Actions[0].Error, tc.want) {
				t.Errorf("the record is %+v, want an error with %q", report.Actions[0], tc.want)
			}
		})
	}
}

func TestAMachineIsNotResetForAnotherNodeOrAnEndedTrial(t *testing.T) {
	t.Run("another node", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t, "node-2")
		m.start()
		r := m.c.await("refuses", func(r protocol.Report) bool { return r.Failure != "" })
		if !strings.Contains(r.Failure, `"node-2"`) || r.Ready {
			t.Errorf("the report is %+v, want a failure that names the other node", r)
		}
	})
	t.Run("the trial has ended", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t, "node-1")
		m.start()
		m.c.await("is ready", func(r protocol.Report) bool { return r.Ready && r.ClockError > 0 })
		m.release(time.Now().Add(10*time.Second), resetAction("a", 500*time.Millisecond)) // the outcome must be known by then
		m.c.direct(func(d *protocol.Directive) { d.Finish = true })
		r := m.c.await("tells of the reset", func(r protocol.Report) bool { return len(r.Actions) == 1 })
		if !strings.Contains(r.Actions[0].Error, "had ended") || m.read("identity") != "first" {
			t.Errorf("the record is %+v on the %s machine, want the first, and that the trial had ended", r.Actions[0], m.read("identity"))
		}
	})
}

func TestMachineIdentity(t *testing.T) {
	first, err := agent.MachineIdentity()
	if err != nil {
		t.Fatal(err)
	}
	again, err := agent.MachineIdentity()
	if err != nil || first != again || !strings.Contains(first, "/") || strings.HasSuffix(first, "/") {
		t.Errorf("the machine is %q, then %q (%v); want the same, with a boot and a start", first, again, err)
	}
}
