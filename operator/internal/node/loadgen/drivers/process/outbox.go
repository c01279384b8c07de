package process

import (
	"io"
	"sync"
)

// outbox collects lines. One goroutine writes all waiting lines with one call. So a program that
// does not read blocks no sender.
type outbox struct {
	w io.WriteCloser

	mu     sync.Mutex
	buf    []byte
	closed bool
	wake   chan struct{}
}

func newOutbox(w io.WriteCloser) *outbox {
	return &outbox{w: w, wake: make(chan struct{}, 1)}
}

// send appends lines; add gets the buffer and returns it with the lines.
func (o *outbox) send(add func([]byte) []byte) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return
	}
	idle := len(o.buf) == 0
	o.buf = add(o.buf)
	o.mu.Unlock()
	if idle {
		o.wakeUp()
	}
}

func (o *outbox) wakeUp() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// run writes until the outbox is closed and empty, or writing fails. It then closes the writer.
func (o *outbox) run() error {
	defer o.w.Close()
	var spare []byte
	for range o.wake {
		o.mu.Lock()
		lines, closed := o.buf, o.closed
		o.buf = spare[:0]
		o.mu.Unlock()
		if len(lines) > 0 {
			if _, err := o.w.Write(lines); err != nil {
				o.close()
				return err
			}
		}
		spare = lines
		if closed {
			return nil
		}
	}
	return nil
}

// close lets run end when all lines are written.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.wakeUp()
}
