package driver

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// version is the protocol's version.
const version = 1

// request is any line from the load generator.
type request struct {
	Type                 string `json:"type"`
	Version              int    `json:"version"`
	FirstClient          int64  `json:"firstClient"`
	Clients              int64  `json:"clients"`
	Seed                 int64  `json:"seed"`
	RequestTimeoutMicros int64  `json:"requestTimeoutMicros"`

	ID       int64 `json:"id"`
	Client   int64 `json:"client"`
	Sequence int64 `json:"sequence"`
}

// The outcomes of an attempt that a put or a get can have: nothing aborts.
const (
	outcomeCommit  = "commit"
	outcomeError   = "error"
	outcomeTimeout = "timeout"
)

type end struct {
	Type    string `json:"type"`
	ID      int64  `json:"id"`
	Outcome string `json:"outcome"`
	Detail  string `json:"detail,omitempty"`
}

type status struct {
	Type    string `json:"type"`
	Message string `json:"message,omitempty"`
}

type stats struct {
	Type     string           `json:"type"`
	Counters map[string]int64 `json:"counters"`
}

// output writes one line for each message, at once, from any goroutine.
type output struct {
	mu  sync.Mutex
	w   io.Writer
	err error // the first one; nothing is written after it
}

func (o *output) say(message any) {
	line, err := json.Marshal(message)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil && o.err == nil {
		_, err = o.w.Write(append(line, '\n'))
	}
	if o.err == nil && err != nil {
		o.err = fmt.Errorf("answer the load generator: %w", err)
	}
}

func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
