package launcher

import (
	"encoding/json"
	"errors"
	"net"
	"sync"
)

// connection is one agent. Any goroutine writes the answers that it has. One goroutine writes
// states, and only the latest, so that an agent that does not read cannot block the launcher.
type connection struct {
	conn    net.Conn
	mu      sync.Mutex // of writes
	changed chan struct{}
}

func (c *connection) write(response Response) {
	line, err := json.Marshal(response)
	if err != nil {
		line = []byte(`{"error":"the answer cannot be written as JSON"}`)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// A broken connection is noticed by its reader.
	_, _ = c.conn.Write(append(line, '\n'))
}

// connections are the connections of agents.
type connections struct {
	mu    sync.Mutex
	conns map[*connection]struct{}
}

// tell makes every connection send the state.
func (a *connections) tell() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.conns {
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}
}

func (a *connections) join(c *connection) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conns == nil {
		a.conns = map[*connection]struct{}{}
	}
	a.conns[c] = struct{}{}
}

func (a *connections) leave(c *connection) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.conns, c)
}

// accept agents, until the listener is closed. Each gets the state whenever it changes, and its
// requests are handled concurrently.
func (a *connections) accept(listener net.Listener, state func() State, handle func(Request) (Response, error)) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go a.converse(conn, state, handle)
	}
}

func (a *connections) converse(conn net.Conn, state func() State, handle func(Request) (Response, error)) {
	c := &connection{conn: conn, changed: make(chan struct{}, 1)}
	gone := make(chan struct{})
	a.join(c)
	defer func() {
		a.leave(c)
		close(gone)
		conn.Close()
	}()
	go func() {
		for {
			select {
			case <-c.changed:
				now := state()
				c.write(Response{State: &now})
			case <-gone:
				return
			}
		}
	}()
	for decoder := json.NewDecoder(conn); ; {
		var request Request
		if err := decoder.Decode(&request); err != nil {
			return
		}
		go func() {
			response, err := handle(request)
			if err != nil {
				response.Error = err.Error()
			}
			response.ID = request.ID
			c.write(response)
		}()
	}
}

func (l *Launcher) handle(request Request) (response Response, err error) {
	switch {
	case request.Look != nil:
		state := l.snapshot()
		response.State = &state
	case request.Start != nil:
		err = l.start(*request.Start)
	case request.Stop != nil:
		err = l.stop(*request.Stop)
	case request.Kill != nil:
		result := l.kill(*request.Kill)
		response.Kill = &result
	case request.Revive != nil:
		result := l.revive(*request.Revive)
		response.Revive = &result
	case request.Pause != nil:
		result := l.pause(*request.Pause)
		response.Pause = &result
	case request.Resume != nil:
		result := l.resume(*request.Resume)
		response.Resume = &result
	case request.Run != nil:
		result := l.run(*request.Run)
		response.Run = &result
	case request.Archive != nil:
		response.File, err = l.pack(*request.Archive)
	case request.Share != nil:
		err = share(*request.Share)
	case request.Measure != nil:
		var usage Usage
		if usage, err = l.options.measure(); err == nil {
			response.Usage = &usage
		}
	case request.Processes != nil:
		response.Processes = l.processes.named()
	case request.Size != nil:
		response.Sizes = sizes(*request.Size)
	default:
		err = errors.New("the request asks for nothing that this launcher knows; agent and launcher must be of the same release")
	}
	return response, err
}
