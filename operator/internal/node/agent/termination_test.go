package agent_test

import (
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/node/protocol"
)

// deleted lets a replica print a line in the middle of a run, and ends its pod as the kubelet does:
// the containers first, then the agent. It returns how long that took.
func deleted(t *testing.T, a *archive, answer int) time.Duration {
	t.Helper()
	t.Setenv("POD_UID", "0a1b2c3d-4e5f")
	c := newFakeCoordinator(t, "127.0.0.1:0")
	c.handOver = a
	p := newPod(t, c)
	launcher := p.launch("replica")
	p.startAgent()
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "replica", Command: shell(`echo to stdout; echo ready >&2; exec sleep 1000`)}}
		d.Start, d.HandOver = true, true
		d.Gates = []protocol.Gate{{Log: "^ready", Stream: "Stderr", Container: "replica"}}
		d.Run = &protocol.Run{ZeroUnixNanos: time.Now().UnixNano()}
		d.Run.Measure = time.Minute
	})
	c.await("is ready", func(r protocol.Report) bool { return r.Ready })
	c.mu.Lock()
	c.status = answer
	c.mu.Unlock()
	began := time.Now()
	for _, process := range []*os.Process{launcher.Process, p.agentProcess.Process} {
		if err := process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if _, err := process.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(began)
}

// A pod is deleted in the middle of a run, with some grace. It hands over its logs under names that
// no other pod of the same name uses.
func TestAPodThatIsDeletedInTheRunHandsOverItsLogs(t *testing.T) {
	a := newArchive(t)
	deleted(t, a, 0) // the agent has a second and a half for that
	stored, _ := a.names()
	if got := strings.Join(stored, " "); got != "ended-0a1b2c3d.replica.stderr.gz ended-0a1b2c3d.replica.stdout.gz" {
		t.Errorf("stored are %s", got)
	}
	if got := a.stored["ended-0a1b2c3d.replica.stdout.gz"]; len(got) == 0 || unpacked(t, got) != "to stdout\n" {
		t.Errorf("the log is %q", got)
	}
}

// A pod ends soon when its token is void, as after a deletion without grace. So does a pod that
// reaches no manager.
func TestAPodThatTheManagerForgotEndsAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		answer int
		within time.Duration // and a busy machine may add as much
	}{
		"the token is void":        {http.StatusUnauthorized, 5 * time.Second},
		"no place in the trial":    {http.StatusForbidden, 5 * time.Second},
		"no manager that is ready": {http.StatusServiceUnavailable, 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			a := newArchive(t)
			took := deleted(t, a, tc.answer)
			if stored, kept := a.names(); len(stored)+len(kept) > 0 {
				t.Errorf("stored %v, kept %v", stored, kept)
			}
			if took > 2*tc.within {
				t.Errorf("the pod took %v to end, want at most %v", took, tc.within)
			}
		})
	}
}
