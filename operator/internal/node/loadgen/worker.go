package loadgen

import (
	"math/rand/v2"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/results"
)

// shard is a recorder that several clients share. A recorder for each client would take 200 KB for
// each, and clients would wait for the lock of a common one. There is a shard for each processor.
type shard struct {
	mu      sync.Mutex
	rec     *results.Recorder
	sendLag *results.Histogram
	// generatorLag has the lags of requests whose client was free in time.
	generatorLag *results.Histogram
}

func newShard() *shard {
	return &shard{sendLag: results.NewHistogram(), generatorLag: results.NewHistogram()}
}

// client is one client of the workload. No other goroutine reads its counters before the client has
// ended.
type client struct {
	run     *run
	session Session
	shard   *shard
	rng     *rand.Rand
	alarm   sleeper            // made at the first wait
	ticket  chan time.Duration // open loop: the intended instant of a request, for an idle client

	misbehaves bool    // on purpose: the client is not measured
	level      float64 // closed loop: this client is active from this share of all clients on

	sequence int64
	failures int32 // in a row
	started  bool
	first    time.Duration // instant of the first send

	offered, retries, lateSends int64
}

// lateSend is the lag from which on a request of an open loop counts as late.
const lateSend = time.Millisecond

// closedLoop sends one transaction after the other from the start to the last instant of sending.
// The end of one is the issue of the next, so that each transaction costs one reading of the clock.
func (c *client) closedLoop() {
	think := time.Duration(c.run.cfg.ThinkTime)
	pause := time.Duration(c.rng.Float64() * float64(think)) // so that clients do not send at the same instants
	for now := c.active(c.run.now()); now < c.run.last && !c.run.stopped.Load(); now = c.active(now) {
		c.issued(now)
		now = c.transaction(now, now)
		if think > 0 {
			now = c.wait(now, pause)
			pause = think
		}
	}
	c.end()
}

// active waits until the phases of a closed loop make the client active, and returns that instant.
func (c *client) active(now time.Duration) time.Duration {
	if c.run.shape == nil {
		return now
	}
	at := c.run.shape.from(now+c.run.warmUp, c.level) - c.run.warmUp
	if at <= now {
		return now
	}
	now = c.wait(now, at-now)
	if c.run.inWindow(at) {
		c.lagged(now-at, true)
	}
	return now
}

// issued counts, in the window, a first attempt without an arrival of its own.
func (c *client) issued(now time.Duration) {
	if c.run.inWindow(now) {
		c.offered++
	}
	if c.run.shape != nil || c.run.cfg.Session != nil {
		c.shard.mu.Lock()
		c.shard.rec.Offer(now, 1)
		c.shard.mu.Unlock()
	}
}

// openLoop sends the transactions that the agenda hands to it.
func (c *client) openLoop(a *agenda) {
	for {
		now := c.run.now()
		intended, ok := a.take(c, now)
		if !ok {
			break
		}
		if c.run.stopped.Load() {
			a.giveBack(intended)
			break
		}
		idled := intended > now
		if idled {
			now = c.run.now()
		}
		c.sent(intended, now-intended, idled)
		length := c.requests()
		c.furtherRequests(length-1, c.transaction(intended, now))
	}
	c.end()
}

// sent counts a request of an open loop. In the window it also notes how late the request is sent.
func (c *client) sent(intended, lag time.Duration, idled bool) {
	c.shard.mu.Lock()
	c.shard.rec.Offer(intended, 1)
	c.shard.mu.Unlock()
	if c.run.inWindow(intended) {
		c.offered++
		c.lagged(lag, idled)
	}
}

// lagged notes how late a request of the window is sent. If the client had idled, the lag is the
// generator's own. Otherwise the request waited for a client, and so for the system.
func (c *client) lagged(lag time.Duration, idled bool) {
	if lag > lateSend {
		c.lateSends++
	}
	c.shard.mu.Lock()
	c.shard.sendLag.Record(lag)
	if idled {
		c.shard.generatorLag.Record(lag)
	}
	c.shard.mu.Unlock()
}

// transaction carries out one transaction that is sent now, with all its attempts. The latency
// counts from start. It returns the instant at which the client is free again.
func (c *client) transaction(start, now time.Duration) time.Duration {
	if !c.started {
		c.started, c.first = true, now
	}
	req := Request{Sequence: c.sequence, Attempt: 1}
	c.sequence++
	for ; ; req.Attempt++ {
		res := c.session.Do(req)
		end := c.run.now()
		if end-now > c.run.timeout && res.Outcome != Error {
			res.Outcome = Timeout
		}
		switch res.Outcome {
		case Commit:
			c.failures = 0
			c.shard.mu.Lock()
			c.shard.rec.Commit(end, end-start)
			c.shard.rec.Tell(end, end-start, res.Operation, res.Node)
			c.shard.mu.Unlock()
			return end
		case Abort:
			var again bool
			if now, again = c.aborted(end, req.Attempt); !again {
				return now
			}
		default:
			return c.failed(end, res)
		}
	}
}

// aborted records an abort and waits before the next attempt. again is false when there is no
// further attempt; now is the instant after the wait.
func (c *client) aborted(end time.Duration, attempt int32) (now time.Duration, again bool) {
	c.failures = 0
	retry := c.run.cfg.Retry
	givenUp := retry.Attempts > 0 && attempt >= retry.Attempts
	c.shard.mu.Lock()
	c.shard.rec.Abort(end, givenUp)
	c.shard.mu.Unlock()
	if givenUp {
		return end, false
	}
	wait := backoff(time.Duration(retry.Backoff), time.Duration(retry.MaxBackoff), attempt, c.rng)
	if now = c.wait(end, wait); now >= c.run.last || c.run.stopped.Load() {
		return now, false
	}
	if c.run.inWindow(now) {
		c.retries++
	}
	return now, true
}

// failed records an error or a timeout. After an error the client waits, and waits longer after
// each further error in a row.
func (c *client) failed(end time.Duration, res Result) time.Duration {
	c.shard.mu.Lock()
	c.shard.rec.Fail(end, res.Outcome == Timeout)
	c.shard.mu.Unlock()
	if !c.misbehaves {
		c.run.logFailure(res)
	}
	if res.Outcome == Timeout {
		c.failures = 0
		return end
	}
	c.failures = min(c.failures+1, 32)
	return c.wait(end, backoff(errorBackoff, maxErrorBackoff, c.failures, c.rng))
}

// wait returns after d. It returns earlier if the time for sending requests is over.
func (c *client) wait(now, d time.Duration) time.Duration {
	if d = min(d, c.run.last-now); d <= 0 {
		return now
	}
	if c.alarm == nil {
		a, err := c.run.clock.newAlarm()
		if err != nil { // no file descriptor is free: wait less precisely
			time.Sleep(d)
			return c.run.now()
		}
		c.alarm = a
	}
	if c.alarm.sleep(d) != nil {
		time.Sleep(d)
	}
	return c.run.now()
}

func (c *client) end() {
	if c.alarm != nil {
		c.alarm.close()
	}
}
