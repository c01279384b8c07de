package loadgen

import (
	"sync"
	"time"
)

// pacerQuantum is the shortest sleep of the pacer. Requests that fall due within it are handed out
// together, late by at most pacerQuantum. So the pacer wakes up at most 20 000 times a second,
// however high the rate is.
const pacerQuantum = 50 * time.Microsecond

// agenda hands the requests of an open loop to clients. Its lock is held for some 50 ns.
//
// Requests are handed out in the order of their intended instants, each to the client that has been
// idle for longest. A request that falls due while no client is idle waits for a client, and goes
// out late: its latency counts from its intended instant. A request that has waited for as long as
// the timeout is never sent.
type agenda struct {
	now     func() time.Duration
	last    time.Duration // every request is intended before this
	timeout time.Duration

	mu      sync.Mutex
	pacer   pacer
	origin  time.Duration // start of the load
	pending time.Duration // intended instant of the next request
	unsent  func(intended time.Duration)
	// idle clients, oldest first: a ring with room for all.
	idle       []*client
	head, size int
	starved    bool          // the pacer waits for freed
	freed      chan struct{} // a client became idle while the pacer was starved
	over       bool
}

func newAgenda(now func() time.Duration, p pacer, origin, last, timeout time.Duration, clients int, unsent func(time.Duration)) *agenda {
	a := &agenda{now: now, last: last, timeout: timeout, pacer: p, origin: origin, unsent: unsent,
		idle: make([]*client, clients), freed: make(chan struct{}, 1)}
	a.pending = origin + p.next()
	return a
}

// take returns the intended instant of the next request for a client that is free. When none is
// due, the client idles until one is. ok is false when there are no more.
func (a *agenda) take(c *client, now time.Duration) (intended time.Duration, ok bool) {
	a.mu.Lock()
	a.expire(now)
	if a.over || a.pending >= a.last {
		a.mu.Unlock()
		return 0, false
	}
	if a.pending <= now {
		intended = a.advance()
		a.mu.Unlock()
		return intended, true
	}
	a.idle[(a.head+a.size)%len(a.idle)] = c
	a.size++
	wake := a.starved
	a.starved = false
	a.mu.Unlock()
	if wake {
		a.freed <- struct{}{}
	}
	intended, ok = <-c.ticket
	return intended, ok
}

// advance takes the next request off the agenda.
func (a *agenda) advance() time.Duration {
	t := a.pending
	a.pending = a.origin + a.pacer.next()
	return t
}

// giveBack counts a request that a client has taken and never sends.
func (a *agenda) giveBack(intended time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unsent(intended)
}

// expire drops the requests that have waited too long.
func (a *agenda) expire(now time.Duration) {
	for a.pending < a.last && a.pending+a.timeout <= now {
		a.unsent(a.advance())
	}
}

// pace wakes idle clients when requests fall due, until there are no more requests.
func (a *agenda) pace(alarm sleeper) error {
	for {
		wait, starved, over := a.handOut()
		switch {
		case over:
			a.close()
			return nil
		case starved:
			<-a.freed
		default:
			if err := alarm.sleep(max(wait, pacerQuantum)); err != nil {
				return err
			}
		}
	}
}

// handOut gives all due requests to idle clients. It returns the time until the next request, or
// that no client is idle.
func (a *agenda) handOut() (wait time.Duration, starved, over bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	a.expire(now)
	for {
		if a.over || a.pending >= a.last {
			return 0, false, true
		}
		if a.pending > now {
			if now = a.now(); a.pending > now {
				return a.pending - now, false, false
			}
		}
		if a.size == 0 {
			a.starved = true
			return 0, true, false
		}
		c := a.idle[a.head]
		a.head, a.size = (a.head+1)%len(a.idle), a.size-1
		c.ticket <- a.advance()
	}
}

// close ends the agenda: idle clients stop, and the remaining requests are unsent.
func (a *agenda) close() {
	a.mu.Lock()
	if !a.over {
		a.over = true
		for a.pending < a.last {
			a.unsent(a.advance())
		}
		for ; a.size > 0; a.size-- {
			close(a.idle[a.head].ticket)
			a.head = (a.head + 1) % len(a.idle)
		}
	}
	wake := a.starved
	a.starved = false
	a.mu.Unlock()
	if wake {
		a.freed <- struct{}{}
	}
}
