package process

import (
	"sync/atomic"
	"time"

	"assay.dev/assay/operator/internal/node/loadgen"
)

// session is the session of one client.
type session struct {
	driver  *Driver
	client  int32
	next    int64 // id of the next request
	timeout time.Duration
	timer   *time.Timer // made with the first request
	// waiting is the id of the request in progress. The goroutine that sets it to 0 ends the
	// request.
	waiting atomic.Int64
	result  chan loadgen.Result
}

// Do sends a begin and waits for its end.
func (s *session) Do(r loadgen.Request) loadgen.Result {
	d := s.driver
	id := s.next
	s.next += int64(len(d.sessions))
	s.waiting.Store(id)
	if s.timer == nil {
		s.timer = time.NewTimer(s.timeout)
	} else {
		s.timer.Reset(s.timeout)
	}
	defer s.timer.Stop()
	d.out.send(func(b []byte) []byte { return appendBegin(b, id, s.client, r) })
	var given loadgen.Result
	select {
	case r := <-s.result:
		return r
	case <-s.timer.C:
		given = loadgen.Result{Outcome: loadgen.Timeout, Detail: "no end within the timeout"}
	case <-d.dead:
		given = loadgen.Result{Outcome: loadgen.Error, Detail: d.err.Error()}
	}
	if s.waiting.CompareAndSwap(id, 0) {
		return given
	}
	return <-s.result // the request ended just now
}
