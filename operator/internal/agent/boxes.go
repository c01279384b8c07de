package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/launcher"
	"assay.dev/assay/operator/internal/protocol"
)

const (
	// boxPause between attempts to reach a launcher, which may not have started yet.
	boxPause = 25 * time.Millisecond
	// tailInterval is how often the tails of the output are read again.
	tailInterval = 2 * time.Second
)

// box is one container of the pod: the connection to its launcher and what that said last. Its
// fields are guarded by the agent's mutex.
type box struct {
	name   string
	client *launcher.Client // nil while there is no connection
	state  *launcher.State  // nil before the first
	// lost: the launcher is another one than the process was started in, so the process is gone,
	// and no fault plans that (restarts.go).
	lost bool
}

// doBoxes keeps a connection to the launcher of every container that the directive names.
func (a *Agent) doBoxes(ctx context.Context) {
	var boxes sync.WaitGroup
	defer boxes.Wait()
	for {
		var added []*box
		if a.await(ctx, func() bool {
			for _, c := range a.directiveLocked().Containers {
				if a.boxes[c.Name] == nil {
					a.boxes[c.Name] = &box{name: c.Name}
					added = append(added, a.boxes[c.Name])
				}
			}
			return len(added) > 0
		}) != nil {
			return
		}
		for _, b := range added {
			boxes.Go(func() { a.attend(ctx, b) })
		}
	}
}

// attend connects to a launcher again and again.
func (a *Agent) attend(ctx context.Context, b *box) {
	path := filepath.Join(a.config.RunDir, b.name+".sock")
	for ctx.Err() == nil {
		client, err := launcher.Dial(ctx, path, func(state launcher.State) { a.noteState(b, state) })
		if err != nil {
			pause(ctx, boxPause)
			continue
		}
		a.note(func() { b.client = client })
		a.refreshTail(ctx, client)
		a.note(func() { b.client = nil })
		client.Close()
	}
}

// refreshTail returns when the connection is gone. Until then it asks for the state now and then,
// since printing alone is no change of state.
func (a *Agent) refreshTail(ctx context.Context, client *launcher.Client) {
	tick := time.NewTicker(tailInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			// The answer reaches noteState; a failure closes Gone.
			_, _ = client.Call(ctx, launcher.Request{Look: &launcher.Look{}})
		case <-client.Gone():
			return
		case <-ctx.Done():
			return
		}
	}
}

func (a *Agent) noteState(b *box, state launcher.State) {
	a.mu.Lock()
	old := b.state
	a.mu.Unlock()
	change := func() {
		b.state = &state
		if started := a.journal.Launchers[b.name]; started != "" && started != state.Incarnation && !a.restartPlanned() {
			b.lost = true
		}
	}
	if old != nil && old.Process == state.Process && old.Starts == state.Starts && old.Incarnation == state.Incarnation {
		a.noteQuietly(change)
		return
	}
	a.note(change)
}

// ask sends a request to a container's launcher and waits for the answer; it waits for the
// launcher, too, and repeats the request when the connection breaks, since every request may be
// repeated.
func (a *Agent) ask(ctx context.Context, name string, request launcher.Request) (launcher.Response, error) {
	for {
		var client *launcher.Client
		var lost bool
		if err := a.await(ctx, func() bool {
			if b := a.boxes[name]; b != nil {
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
		if !pause(ctx, boxPause) {
			return response, ctx.Err()
		}
	}
}

// process returns what is known of a container's process. The caller holds a.mu.
func (a *Agent) process(name string) launcher.State {
	b := a.boxes[name]
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

// containerState is what the coordinator is told. The caller holds a.mu.
func (a *Agent) containerState(name string, d protocol.Directive) protocol.ContainerState {
	process := a.process(name)
	state := protocol.ContainerState{
		Name: name, State: process.Process, ExitCode: process.ExitCode, Expected: process.Asked, Starts: process.Starts, Tail: process.Tail,
	}
	if process.Process != launcher.Exited {
		return state
	}
	if d.Run != nil && process.ExitedAt != 0 {
		state.Exited = cmp.Or(a.clock.since(d.Run.ZeroUnixNanos, process.ExitedAt), 1)
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
