package probe

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/node/launcher"
)

// CanaryOptions say how to watch links.
type CanaryOptions struct {
	// Every is the time between two probes of a peer; 0: 1s. Peers take turns.
	Every time.Duration
	// Deadline is the time after which an unanswered probe is lost: the longest possible round
	// trip, and a margin. 0: 2s. At most MaxDeadline.
	Deadline time.Duration
}

// MaxDeadline of a canary bounds the probes that it remembers. It is longer than the round trip
// over two links of the longest delay.
const MaxDeadline = 30 * time.Second

// together is how long due probes are collected, to send them at once: a wake-up costs more than a
// probe.
const together = 50 * time.Millisecond

// Disturbance is a time during which an active fault changes links. Instants are on
// CLOCK_MONOTONIC. Until should be late enough that packets sent during the fault have arrived.
type Disturbance struct {
	// Peer whose links are disturbed; the zero value means all.
	Peer        netip.Addr
	From, Until int64
}

// Watched is what a canary measured for one peer.
type Watched struct {
	// Steady is for JudgeSteady. It has the probes without a disturbance between their sending and
	// their answer or deadline.
	Steady Measurement `json:"steady"`
	// Disturbed counts all other probes.
	Disturbed Measurement `json:"disturbed"`
}

// Canary watches links with one probe for each peer every second. Its memory does not grow with
// time.
type Canary struct {
	options  CanaryOptions
	peers    []netip.Addr
	exchange *exchange
	stop     context.CancelFunc
	done     chan struct{}

	mu           sync.Mutex
	watching     []watching
	disturbances []Disturbance
}

// watching is the state of one peer.
type watching struct {
	steady, disturbed record
	pending           []pending // oldest first
}

// pending is a probe that is neither answered nor lost yet.
type pending struct {
	sequence uint64
	sent     int64
}

// Watch starts a canary in the network namespace of the calling thread. It ends with ctx or with
// Stop, and the caller must call Stop.
func Watch(ctx context.Context, config Config, peers []netip.Addr, options CanaryOptions) (*Canary, error) {
	if options.Every == 0 {
		options.Every = time.Second
	}
	if options.Deadline == 0 {
		options.Deadline = 2 * time.Second
	}
	options.Deadline = min(options.Deadline, MaxDeadline)
	c := &Canary{options: options, peers: slices.Clone(peers), done: make(chan struct{}), watching: make([]watching, len(peers))}
	var err error
	if c.exchange, err = openExchange(config, c.peers, c.take); err != nil {
		return nil, err
	}
	ctx, c.stop = context.WithCancel(ctx)
	go c.run(ctx)
	return c, nil
}

// Disturb reports faults, best before they begin: probes that have ended by then were counted as
// steady.
func (c *Canary) Disturb(disturbances ...Disturbance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range disturbances {
		d.Peer = d.Peer.Unmap()
		c.disturbances = append(c.disturbances, d)
	}
}

// Watched returns the measurements so far, in the order of the peers. It leaves out probes in
// flight.
func (c *Canary) Watched() []Watched {
	c.mu.Lock()
	defer c.mu.Unlock()
	watched := make([]Watched, len(c.peers))
	for i := range c.watching {
		w := &c.watching[i]
		watched[i] = Watched{Steady: w.steady.measurement(c.peers[i]), Disturbed: w.disturbed.measurement(c.peers[i])}
	}
	return watched
}

// Stop ends the canary and returns its measurements.
func (c *Canary) Stop() []Watched {
	c.stop()
	<-c.done
	return c.Watched()
}

func (c *Canary) run(ctx context.Context) {
	defer close(c.done)
	defer c.exchange.close()
	if len(c.peers) == 0 {
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	step := max(1, int64(c.options.Every)/int64(len(c.peers)))
	begin, next := launcher.Monotonic(), 0 // probe next is due at begin + next x step
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		due := int((launcher.Monotonic()-begin)/step) + 1
		// A canary that got no processor catches up, but with at most one turn.
		for next = max(next, due-len(c.peers)); next < due; next++ {
			c.expire(next % len(c.peers))
			c.send(next%len(c.peers), uint64(next))
		}
		timer.Reset(min(c.options.Every, max(together, time.Duration(step))))
	}
}

// send notes the probe before its answer can come. It holds no lock while it sends, so that the
// reader can go on.
func (c *Canary) send(peer int, sequence uint64) {
	now := launcher.Monotonic()
	c.mu.Lock()
	c.watching[peer].pending = append(c.watching[peer].pending, pending{sequence: sequence, sent: now})
	c.mu.Unlock()
	if err := c.exchange.send(peer, sequence); err != nil {
		// It will count as lost after the deadline, like all probes without an answer.
		c.mu.Lock()
		c.recordOf(peer, now, now).sendError = "send: " + err.Error()
		c.mu.Unlock()
	}
}

// expire gives up the peer's probes whose deadline has passed. It forgets disturbances that are
// over for all pending probes.
func (c *Canary) expire(peer int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.watching[peer]
	now := launcher.Monotonic()
	for len(w.pending) > 0 && w.pending[0].sent+int64(c.options.Deadline) <= now {
		c.recordOf(peer, w.pending[0].sent, w.pending[0].sent+int64(c.options.Deadline)).sent++
		w.pending = slices.Delete(w.pending, 0, 1)
	}
	if peer == 0 {
		// Every turn looks once at a peer's pending probes. A turn may take long on a busy machine,
		// hence twice.
		oldest := now - 2*int64(MaxDeadline) - 2*int64(c.options.Every)
		c.disturbances = slices.DeleteFunc(c.disturbances, func(d Disturbance) bool { return d.Until < oldest })
	}
}

// take counts an answer that came before the deadline.
func (c *Canary) take(peer int, sequence uint64, t trip, back int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.watching[peer]
	i := slices.IndexFunc(w.pending, func(p pending) bool { return p.sequence == sequence })
	if i < 0 || back-w.pending[i].sent > int64(c.options.Deadline) {
		return
	}
	r := c.recordOf(peer, w.pending[i].sent, back)
	r.sent++
	r.add(t)
	w.pending = slices.Delete(w.pending, i, i+1)
}

// recordOf returns the record for a probe that was in flight between two instants.
func (c *Canary) recordOf(peer int, from, until int64) *record {
	address := c.peers[peer].Unmap()
	for _, d := range c.disturbances {
		if (!d.Peer.IsValid() || d.Peer == address) && d.From <= until && from <= d.Until {
			return &c.watching[peer].disturbed
		}
	}
	return &c.watching[peer].steady
}
