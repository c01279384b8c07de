package agent_test

import (
	"context"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/protocol"
)

func signalContext() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGTERM)
}

func shell(script string) []string { return []string{"/bin/sh", "-c", script} }

func TestAReplicaLivesFromItsFilesToItsEnd(t *testing.T) {
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	p.launch("replica")
	p.launch("helper")
	p.startAgent()

	c.files = []protocol.File{{Path: p.config + "/peers/list", Mode: 0o640, Content: []byte("a b c\n")}}
	c.await("tells the clock's offset", func(r protocol.Report) bool { return r.ClockError > 0 && r.NamesResolved })
	c.direct(func(d *protocol.Directive) {
		d.FilesDigest = "one"
		d.Resolve = []string{"localhost"}
		d.Containers = []protocol.Container{
			{Name: "replica", Command: shell(`echo "starting as $WHO in $PWD"; cat "$CONFIG/peers/list"; sleep 0.2; echo 'ready to serve' >&2; exec sleep 1000`),
				Env: []string{"WHO=me"}, Dir: "/"},
			{Name: "helper", Command: shell(`exec sleep 1000`)},
		}
		d.Gates = []protocol.Gate{
			{Log: "^ready to", Stream: "Stderr", Container: "replica"},
			{Address: c.address},
			{Command: shell(`test "$WHO" = me`), Container: "replica"},
		}
		d.Stop = protocol.Stop{Signal: "SIGTERM", Grace: time.Second}
	})
	c.await("has the files and no process", func(r protocol.Report) bool {
		return r.FilesDigest == "one" && len(r.Containers) == 2 && r.Containers[0].State == protocol.StateWaiting && !r.Ready
	})
	c.direct(func(d *protocol.Directive) { d.Start = true })
	ready := c.await("is ready", func(r protocol.Report) bool { return r.Ready })
	if got, want := p.read("out/replica.stdout"), "starting as me in /\na b c\n"; got != want {
		t.Errorf("the replica printed %q, want %q", got, want)
	}
	if ready.Containers[1].State != protocol.StateRunning || ready.Containers[1].Starts != 1 {
		t.Errorf("the helper is %+v, want it running", ready.Containers[1])
	}

	c.direct(func(d *protocol.Directive) {
		d.Commands = []protocol.Command{
			{ID: "load", Command: shell(`echo loaded $WHO`), Until: "ExitZero", Timeout: 5 * time.Second},
			{ID: "check", Command: shell(`exit 3`), Until: "AnyExit", Timeout: 5 * time.Second},
		}
	})
	done := c.await("has both commands done", func(r protocol.Report) bool { return len(r.Commands) == 2 })
	if got := done.Commands[0]; got.ID != "load" || got.ExitCode != 0 || got.Output != "loaded me\n" {
		t.Errorf("the first command's result is %+v", got)
	}
	if got := done.Commands[1]; got.ID != "check" || got.ExitCode != 3 {
		t.Errorf("the second command's result is %+v", got)
	}

	c.direct(func(d *protocol.Directive) { d.Finish = true })
	end := c.await("is finished", func(r protocol.Report) bool { return r.Finished })
	for _, container := range end.Containers {
		if container.State != protocol.StateExited || !container.Expected || container.ExitCode != 128+15 {
			t.Errorf("after Finish, %s is %+v; want it to have exited with 143 as expected", container.Name, container)
		}
	}
	if end.Failure != "" {
		t.Errorf("the agent failed: %s", end.Failure)
	}
}
