package driver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

type message struct {
	Type    string `json:"type"`
	Message string `json:"message,omitempty"`
}

type end struct {
	Type    string `json:"type"`
	ID      uint64 `json:"id"`
	Outcome string `json:"outcome"`
	Detail  string `json:"detail,omitempty"`
}

type stats struct {
	Type     string           `json:"type"`
	Counters map[string]int64 `json:"counters"`
}

// output writes lines to the load generator. It writes many lines at a time when they come fast,
// and never delays one.
type output struct {
	lines chan any
	done  chan struct{}
	err   error // the first error of writing; read once done is closed

	mu    sync.Mutex
	muted bool
}

func newOutput(w io.Writer) *output {
	o := &output{lines: make(chan any, 4096), done: make(chan struct{})}
	go o.write(bufio.NewWriterSize(w, 64<<10))
	return o
}

func (o *output) write(w *bufio.Writer) {
	defer close(o.done)
	encoder := json.NewEncoder(w)
	for line := range o.lines {
		if o.err != nil {
			continue // the load generator is gone
		}
		if o.err = encoder.Encode(line); o.err == nil && len(o.lines) == 0 {
			o.err = w.Flush()
		}
	}
}

// say sends a line, unless the output is muted.
func (o *output) say(line any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.muted {
		o.lines <- line
	}
}

// mute drops all later lines.
func (o *output) mute() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.muted = true
}

// last sends a line even if the output is muted.
func (o *output) last(line any) { o.lines <- line }

// close waits until all lines are written.
func (o *output) close() error {
	close(o.lines)
	<-o.done
	if o.err != nil {
		return fmt.Errorf("answer the load generator: %w", o.err)
	}
	return nil
}
