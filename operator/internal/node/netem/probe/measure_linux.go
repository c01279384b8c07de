package probe

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/node/launcher"
)

// Options of Measure.
type Options struct {
	// Probes for each peer; 0: 7.
	Probes int
	// Spacing between two probes of a peer; 0: 20ms, or 2ms for each peer if that is more. The
	// probes of different peers are spread over it, in random order, so that they do not disturb
	// each other. If many pods share a processor it should be longer: a probe takes some 0.2 ms of
	// it, both ends together.
	Spacing time.Duration
	// Deadline is how long after the last probe an answer counts: the longest expected round trip,
	// and a margin. 0: 1s.
	Deadline time.Duration
}

// quick is the default of Spacing for few peers.
const quick = 20 * time.Millisecond

func (o Options) orDefault(peers int) Options {
	if o.Probes == 0 {
		o.Probes = 7
	}
	if o.Spacing == 0 {
		o.Spacing = max(quick, time.Duration(peers)*2*time.Millisecond)
	}
	if o.Deadline == 0 {
		o.Deadline = time.Second
	}
	return o
}

// Measure probes all peers at the same time and returns one Measurement for each, in their order;
// no peer may be listed twice. It returns as soon as every probe is answered, or Deadline after the
// last probe. When ctx is done, it returns the error of ctx and the measurements so far. It uses
// the network namespace of the calling thread.
func Measure(ctx context.Context, config Config, peers []netip.Addr, options Options) ([]Measurement, error) {
	options = options.orDefault(len(peers))
	m := newMeasuring(len(peers), options.Probes)
	e, err := openExchange(config, peers, m.take)
	if err != nil {
		return nil, err
	}
	defer e.close()
	order := rand.New(rand.NewPCG(e.session, 0)).Perm(len(peers))
	step := options.Spacing / time.Duration(max(1, len(peers)))
	begin := launcher.Monotonic()
	for i := range options.Probes * len(peers) {
		if err := m.await(ctx, begin+int64(i)*int64(step)); err != nil {
			return m.measurements(peers), err
		}
		to := order[i%len(peers)]
		sendErr := e.send(to, uint64(i/len(peers)))
		m.sent(to, sendErr)
	}
	err = m.await(ctx, launcher.Monotonic()+int64(options.Deadline))
	return m.measurements(peers), err
}

// measuring has the answers of a running Measure.
type measuring struct {
	all chan struct{} // closed when no answer is missing

	mu       sync.Mutex
	missing  int
	records  []record
	answered [][]bool // by peer and sequence number
}

func newMeasuring(peers, probes int) *measuring {
	m := &measuring{all: make(chan struct{}), missing: peers * probes, records: make([]record, peers), answered: make([][]bool, peers)}
	for i := range m.answered {
		m.answered[i] = make([]bool, probes)
	}
	if m.missing == 0 {
		close(m.all)
	}
	return m
}

func (m *measuring) sent(peer int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records[peer].sent++
	if err != nil {
		m.records[peer].sendError = "send: " + err.Error()
	}
}

// take counts the first answer to each probe.
func (m *measuring) take(peer int, sequence uint64, t trip, _ int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if sequence >= uint64(len(m.answered[peer])) || m.answered[peer][sequence] {
		return
	}
	m.answered[peer][sequence] = true
	m.records[peer].add(t)
	if m.missing--; m.missing == 0 {
		close(m.all)
	}
}

// await returns at the instant of CLOCK_MONOTONIC, or when no answer is missing.
func (m *measuring) await(ctx context.Context, until int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	wait := time.Duration(until - launcher.Monotonic())
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-m.all:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *measuring) measurements(peers []netip.Addr) []Measurement {
	m.mu.Lock()
	defer m.mu.Unlock()
	measurements := make([]Measurement, len(peers))
	for i := range m.records {
		measurements[i] = m.records[i].measurement(peers[i])
	}
	return measurements
}
