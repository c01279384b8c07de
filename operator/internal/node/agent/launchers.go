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

// launcherConn is the connection to the launcher of one container, with the last answer of that
// launcher. The state's mutex guards its fields.
type launcherConn struct {
	name   string
	client *launcher.Client // nil while there is no connection
	state  *launcher.State  // nil before the first
	// lost: a new launcher has replaced the one that started the process, and no fault plans that
	// (restarts.go). So the process is gone.
	lost bool
	// memoryLeft is the last reading; nil: there is none, or the container has no limit.
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

// refresh returns when the connection is gone. Until then it asks for the state and for the memory
// that is left now and then, since a process that prints does not change its state.
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

// process returns the known state of a container's process. The caller holds the lock.
func (l *launchers) process(name string) launcher.State {
	b := l.conns[name]
	switch {
	case b == nil || b.state == nil:
		return launcher.State{Process: launcher.Waiting}
	case b.lost:
		state := *b.state
		// How it ended is unknown. The kubelet reports 137 for a container that was killed.
		state.Process, state.ExitCode, state.Asked, state.Starts = launcher.Exited, 137, false, max(state.Starts, 1)
		return state
	default:
		return *b.state
	}
}

// firstWords reports whether a process has printed its first words after the report was sent. They
// need a report at once, since the agent cannot report from a pod that vanishes. Later output is in
// the next report, after protocol.MaxHold at most. The caller holds the lock.
func (l *launchers) firstWords(sent []protocol.ContainerState) bool {
	return slices.ContainsFunc(sent, func(c protocol.ContainerState) bool {
		return c.Tail == "" && l.process(c.Name).Tail != ""
	})
}

// containerState is the state that the coordinator gets. The caller holds the lock.
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
		// A client ends when it is done. Its report shows whether it ended too early.
		state.Expected = true
	}
	return state
}

// runIn runs a command beside a container's process, in the same environment.
func (l *launchers) runIn(ctx context.Context, container string, command protocol.Command) (protocol.CommandResult, error) {
	r, err := l.askRun(ctx, container, command)
	return protocol.CommandResult{ExitCode: r.ExitCode, Error: r.Error, Output: r.Output}, err
}

// askRun does the same as runIn, and also returns the instants of the command's process.
func (l *launchers) askRun(ctx context.Context, container string, command protocol.Command) (launcher.RunResult, error) {
	d := l.directive()
	i := slices.IndexFunc(d.Containers, func(c protocol.Container) bool { return c.Name == container })
	if i < 0 {
		i = 0
	}
	c := d.Containers[i]
	response, err := l.ask(ctx, c.Name, launcher.Request{Run: &launcher.Run{
		ID: command.ID, Command: command.Command, Env: c.Env, Dir: c.Dir, Timeout: command.Timeout,
	}})
	if err != nil {
		return launcher.RunResult{}, err
	}
	if response.Run == nil {
		return launcher.RunResult{}, errors.New("the launcher did not say how the command ended")
	}
	return *response.Run, nil
}

// readMemory notes how much memory a container and its node have left. The kernel counts each
// out-of-memory kill in the container's control group, even when the node had no memory. The
// runtime reports OOMKilled in both cases, and the control group disappears with the container.
// Only an earlier reading shows whether the container reached its limit or the node had no memory.
func (l *launchers) readMemory(ctx context.Context, b *launcherConn, client *launcher.Client) {
	limited, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	response, err := client.Call(limited, launcher.Request{Measure: &launcher.Measure{}})
	if err != nil || response.Usage == nil || response.Usage.LimitBytes == 0 {
		return // nothing is known, or there is no limit to reach
	}
	node, known := availableMemory("/proc")
	if !known {
		return
	}
	left := &protocol.MemoryLeft{Container: max(0, response.Usage.LimitBytes-response.Usage.MemoryBytes), Node: node}
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.state != nil && b.state.Process == launcher.Running && !b.lost { // else the reading is of another process
		b.memoryLeft = left
	}
}

// measureTimeout is how long a launcher may take to measure its container. A launcher that is
// throttled with its container takes long. A reading has its own time, and the readings that were
// due meanwhile are left out.
const measureTimeout = 5 * time.Second

// finishReach is how long the agent tries to reach a launcher at the end. A launcher that is gone
// has taken its processes along.
const finishReach = 5 * time.Second

func (l *launchers) endContainer(ctx context.Context, name string, stop launcher.Stop) error {
	reach, cancel := context.WithTimeout(ctx, finishReach)
	defer cancel()
	if l.await(reach, func() bool { return l.conns[name] != nil && l.conns[name].client != nil }) != nil {
		return ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, stop.Grace+3*finishReach)
	defer cancel()
	l.mu.Lock()
	client := l.conns[name].client
	l.mu.Unlock()
	if client == nil {
		return nil
	}
	if _, err := client.Call(limited, launcher.Request{Stop: &stop}); err != nil {
		return fmt.Errorf("end container %s: %w", name, err)
	}
	return nil
}
