package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
)

const (
	// connPause between attempts to reach a launcher, which may not have started yet.
	connPause = 25 * time.Millisecond
	// tailInterval is how often the tails of the output are read again.
	tailInterval = 2 * time.Second
)

// launcherConn is the connection to the launcher of one container, and what that said last. Its
// fields are guarded by the state's mutex.
type launcherConn struct {
	name   string
	client *launcher.Client // nil while there is no connection
	state  *launcher.State  // nil before the first
	// lost: the launcher is another one than the process was started in, so the process is gone,
	// and no fault plans that (restarts.go).
	lost bool
	// memoryLeft was read last; nil: it was not, or the container has no limit.
	memoryLeft *protocol.MemoryLeft
}

// launchers are the connections to the pod's containers.
type launchers struct {
	*state
	clock *runClock
	conns map[string]*launcherConn // by the container's name; guarded by the state's mutex
}

// doConnections keeps a connection to the launcher of every container that the directive names.
func (l *launchers) doConnections(ctx context.Context) {
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		var added []*launcherConn
		if l.await(ctx, func() bool {
			for _, c := range l.directiveLocked().Containers {
				if l.conns[c.Name] == nil {
					l.conns[c.Name] = &launcherConn{name: c.Name}
					added = append(added, l.conns[c.Name])
				}
			}
			return len(added) > 0
		}) != nil {
			return
		}
		for _, b := range added {
			conns.Go(func() { l.maintain(ctx, b) })
		}
	}
}

// maintain connects to a launcher again and again.
func (l *launchers) maintain(ctx context.Context, b *launcherConn) {
	path := filepath.Join(l.config.RunDir, b.name+".sock")
	for ctx.Err() == nil {
		client, err := launcher.Dial(ctx, path, func(state launcher.State) { l.noteState(b, state) })
		if err != nil {
			pause(ctx, connPause)
			continue
		}
		l.note(func() { b.client = client })
		l.refresh(ctx, b, client)
		l.note(func() { b.client = nil })
		client.Close()
	}
}

// refresh returns when the connection is gone. Until then it asks for the state now and then, since
// printing alone is no change of state, and for what is left of memory.
func (l *launchers) refresh(ctx context.Context, b *launcherConn, client *launcher.Client) {
	l.readMemory(ctx, b, client)
	tick := time.NewTicker(tailInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			// The answer reaches noteState; a failure closes Gone.
			_, _ = client.Call(ctx, launcher.Request{Look: &launcher.Look{}})
			l.readMemory(ctx, b, client)
		case <-client.Gone():
			return
		case <-ctx.Done():
			return
		}
	}
}

func (l *launchers) noteState(b *launcherConn, state launcher.State) {
	l.mu.Lock()
	old := b.state
	l.mu.Unlock()
	change := func() {
		b.state = &state
		if started := l.journal.Launchers[b.name]; started != "" && started != state.Incarnation && !l.clock.restartPlanned() {
			b.lost = true
		}
	}
	if old != nil && old.Process == state.Process && old.Starts == state.Starts && old.Incarnation == state.Incarnation {
		l.noteQuietly(change)
		return
	}
	l.note(change)
}

// ask sends a request to a container's launcher and waits for the answer. It waits for the
// launcher, too. It repeats the request when the connection breaks: every request may be repeated.
func (l *launchers) ask(ctx context.Context, name string, request launcher.Request) (launcher.Response, error) {
	for {
		var client *launcher.Client
		var lost bool
		if err := l.await(ctx, func() bool {
			if b := l.conns[name]; b != nil {
				client, lost = b.client, b.lost
			}
			return client != nil || lost
		}); err != nil {
			return launcher.Response{}, err
		}
		if lost {
			return launcher.Response{}, fmt.Errorf("container %s was restarted and has lost its process; see the container's last state with kubectl describe pod", name)
		}
		response, err := client.Call(ctx, request)
		if !errors.Is(err, launcher.ErrGone) {
			return response, err
		}
		if !pause(ctx, connPause) {
			return response, ctx.Err()
		}
	}
}

// process returns what is known of a container's process. The caller holds the lock.
func (l *launchers) process(name string) launcher.State {
	b := l.conns[name]
	switch {
	case b == nil || b.state == nil:
		return launcher.State{Process: launcher.Waiting}
	case b.lost:
		state := *b.state
		// How it ended is unknown; 137 is what the kubelet reports of a container that was killed.
		state.Process, state.ExitCode, state.Asked, state.Starts = launcher.Exited, 137, false, max(state.Starts, 1)
		return state
	default:
		return *b.state
	}
}

// firstWords reports whether a process has printed its first words after the report was sent. A pod
// that vanishes soon after cannot be asked any more. Later output goes out with the next report,
// after protocol.MaxHold at most. The caller holds the lock.
func (l *launchers) firstWords(sent []protocol.ContainerState) bool {
	return slices.ContainsFunc(sent, func(c protocol.ContainerState) bool {
		return c.Tail == "" && l.process(c.Name).Tail != ""
	})
}

// containerState is what the coordinator is told. The caller holds the lock.
func (l *launchers) containerState(name string, d protocol.Directive) protocol.ContainerState {
	process := l.process(name)
	state := protocol.ContainerState{
		Name: name, State: process.Process, ExitCode: process.ExitCode, Expected: process.Asked, Starts: process.Starts, Tail: process.Tail,
	}
	if b := l.conns[name]; b != nil && (b.client == nil || b.lost || process.Process == launcher.Exited && !process.Asked) {
		state.MemoryLeft = b.memoryLeft
	}
	if process.Process != launcher.Exited {
		return state
	}
	if l.conns[name].lost {
		state.State = protocol.StateLost
		return state
	}
	if d.Run != nil && process.ExitedAt != 0 {
		state.Exited = cmp.Or(l.clock.since(d.Run.ZeroUnixNanos, process.ExitedAt), 1)
	}
	switch {
	case d.Finish, d.Prepare != nil:
		state.Expected = true
	case d.Client != nil && d.Run != nil && d.Containers[0].Name == name:
		// A client ends when it is done; whether that was too early, its report shows.
		state.Expected = true
	}
	return state
}
