// Package transport runs the protocol's state machines over TCP.
//
// A crashed machine is silent: it sends no reset, and a write to it succeeds until buffers are
// full. So no code here waits for a peer:
//
//   - Each connection has a bounded queue. Messages beyond it are dropped, and the protocol sends
//     the important ones again.
//   - Writes have a deadline. The dialing side pings, and silence for readTimeout closes the
//     connection.
//   - A closed connection is dialed again in the background, at least every dialTimeout+maxRedial.
//     The name is resolved anew each time.
//
// One goroutine, the Loop, runs the state machine. Each connection has a reading and a writing
// goroutine. The reading one also verifies signatures ahead of the loop.
package transport

import (
	"sync/atomic"
	"time"

	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/wire"
)

const (
	dialTimeout  = time.Second
	minRedial    = 50 * time.Millisecond
	maxRedial    = 500 * time.Millisecond
	pingInterval = 500 * time.Millisecond
	readTimeout  = 1500 * time.Millisecond // of the dialing side
	idleTimeout  = 5 * time.Second         // of the accepting side
	writeTimeout = time.Second
	queueLength  = 4096 // frames for each connection
	loopLength   = 8192 // events for the state machine
	maxFrame     = 16 << 20
)

// Loop runs functions one at a time.
type Loop struct {
	events chan func()
	done   chan struct{}
	exited chan struct{}
	closed atomic.Bool
}

// newLoop starts a loop.
func newLoop() *Loop {
	l := &Loop{events: make(chan func(), loopLength), done: make(chan struct{}), exited: make(chan struct{})}
	go func() {
		defer close(l.exited)
		for {
			select {
			case fn := <-l.events:
				fn()
			case <-l.done:
				return
			}
		}
	}()
	return l
}

// Post queues fn. It blocks while the loop is far behind, so that TCP slows down a sender that is
// faster than the state machine.
func (l *Loop) Post(fn func()) {
	select {
	case l.events <- fn:
	case <-l.done:
	}
}

// Do runs fn in the loop and waits for it; false if the loop was closed.
func (l *Loop) Do(fn func()) bool {
	ran := make(chan struct{})
	l.Post(func() { fn(); close(ran) })
	select {
	case <-ran:
		return true
	case <-l.done:
		return false
	}
}

// Close ends the loop and waits for the function that runs, if any. Do not call
// it from within the loop.
func (l *Loop) Close() {
	if !l.closed.Swap(true) {
		close(l.done)
	}
	<-l.exited
}

// env implements node.Env on a loop.
type env struct {
	*Loop
	route func(node.ID) sink

	// A broadcast sends one message to many receivers, and encodes it once.
	last  wire.Message
	frame []byte
}

func (e *env) Now() int64 { return time.Now().UnixNano() }

func (e *env) After(d time.Duration, fn func()) {
	time.AfterFunc(d, func() { e.Post(fn) })
}

func (e *env) Send(to node.ID, m wire.Message) {
	q := e.route(to)
	if q == nil {
		return
	}
	if m != e.last {
		e.last, e.frame = m, encodeFrame(m)
	}
	q.send(e.frame)
}
