package loadgen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"assay.dev/assay/operator/internal/results"
)

// run is one run of the load generator.
type run struct {
	cfg     Config
	driver  Driver
	log     *slog.Logger
	now     func() time.Duration // instant relative to t = 0
	timeout time.Duration
	last    time.Duration // requests are sent before
	measure time.Duration
	stopped atomic.Bool // given up: send nothing more
	shards  []*shard
	clients []*client
	unsent  int64 // in the window; kept by the agenda, under its lock

	failuresLogged atomic.Int32
}

// maxFailuresLogged is how many failed requests are logged with their details; the others are only counted.
const maxFailuresLogged = 10

// Run offers the load that the configuration describes and returns what was measured. It first waits at the barrier, if there is
// one. It closes the driver in any case.
//
// When the driver failed during the run, the results say so in Failure, and the error is nil: what was measured until then may
// show why.
func Run(ctx context.Context, cfg Config, driver Driver, log *slog.Logger) (results.Client, error) {
	closeDriver := sync.OnceValues(driver.Close)
	defer func() { _, _ = closeDriver() }() // for the early returns; the error is seen below

	if err := cfg.Validate(); err != nil {
		return results.Client{}, fmt.Errorf("validate the configuration: %w", err)
	}
	r := &run{cfg: cfg, driver: driver, log: log, timeout: time.Duration(cfg.Timeout)}
	if err := r.openSessions(); err != nil {
		return results.Client{}, err
	}
	start, err := barrier(ctx, cfg, driver)
	if err != nil {
		return results.Client{}, err
	}
	w := start.Windows
	r.now = clockAt(start.ZeroMonotonicNanos)
	r.last, r.measure = w.LastRequest(), w.Measure
	for _, s := range r.shards {
		s.rec = results.NewRecorder(w)
	}
	if late := r.now() - w.End(); late >= 0 {
		return results.Client{}, fmt.Errorf("the run was over %v before it was released here", late)
	}

	stopProgress := r.reportProgress()
	err = r.offer(ctx, w.WarmUp, w.End(), closeDriver)
	stopProgress()
	if err != nil {
		return results.Client{}, err
	}
	counters, failure := closeDriver()
	return r.collect(w.WarmUp, counters, failure)
}

// openSessions makes the clients and opens their sessions, a bounded number at once.
func (r *run) openSessions() error {
	n := int(r.cfg.Clients)
	for range min(n, runtime.GOMAXPROCS(0)) {
		r.shards = append(r.shards, &shard{sendLag: results.NewHistogram()})
	}
	r.clients = make([]*client, n)
	errs := make([]error, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, 64) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				global := r.cfg.FirstClient + int32(i)
				s, err := r.driver.Session(global)
				if err != nil {
					errs[i] = fmt.Errorf("open the session of client %d: %w", global, err)
					next.Store(int64(n)) // one is enough
				}
				r.clients[i] = &client{run: r, session: s, shard: r.shards[i%len(r.shards)],
					rng:    rand.New(rand.NewPCG(uint64(r.cfg.Seed), backoffStream+uint64(global))),
					ticket: make(chan time.Duration, 1)}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// offer releases the clients at the start of the warm-up and waits until all have ended; what has not ended at the end of the drain is
// given up.
func (r *run) offer(ctx context.Context, warmUp, end time.Duration, closeDriver func() (map[string]int64, error)) error {
	alarm, err := newAlarm()
	if err != nil {
		return err
	}
	defer alarm.close()
	ended := make(chan error, 1)
	go func() {
		if r.cfg.Loop == LoopOpen {
			ended <- r.offerOpen(alarm, warmUp)
		} else {
			ended <- r.offerClosed(alarm, warmUp)
		}
	}()
	drained := time.NewTimer(end - r.now())
	defer drained.Stop()
	select {
	case err := <-ended:
		return err
	case <-drained.C:
		r.stopped.Store(true)
		_, _ = closeDriver() // ends the requests under way; the caller gets the same error
		return <-ended
	case <-ctx.Done():
		r.stopped.Store(true)
		_, _ = closeDriver()
		return fmt.Errorf("the run was stopped before its end: %w", context.Cause(ctx))
	}
}

func (r *run) offerClosed(alarm *alarm, warmUp time.Duration) error {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for _, c := range r.clients {
		wg.Go(func() {
			<-start
			c.closedLoop()
		})
	}
	err := alarm.sleep(-warmUp - r.now())
	if err != nil {
		r.stopped.Store(true)
	}
	close(start)
	wg.Wait()
	return err
}

func (r *run) offerOpen(alarm *alarm, warmUp time.Duration) error {
	a := newAgenda(r.now, newPacer(r.cfg), -warmUp, r.last, r.timeout, len(r.clients), func(intended time.Duration) {
		if r.inWindow(intended) {
			r.unsent++
		}
	})
	var wg sync.WaitGroup
	for _, c := range r.clients {
		wg.Go(func() { c.openLoop(a) })
	}
	paced := make(chan error, 1)
	go func() {
		err := a.pace(alarm)
		if err != nil {
			a.close()
		}
		paced <- err
	}()
	wg.Wait()
	a.close()
	return <-paced
}

// inWindow reports whether an instant lies in the measurement window.
func (r *run) inWindow(at time.Duration) bool { return at >= 0 && at < r.measure }

func (r *run) logFailure(res Result) {
	n := r.failuresLogged.Load()
	if n >= maxFailuresLogged || r.stopped.Load() {
		return
	}
	if n = r.failuresLogged.Add(1); n <= maxFailuresLogged {
		r.log.Warn("Request failed", "outcome", res.Outcome.String(), "detail", res.Detail)
	}
	if n == maxFailuresLogged {
		r.log.Warn("Further failures are only counted")
	}
}

// collect puts together what all clients measured.
func (r *run) collect(warmUp time.Duration, driver map[string]int64, failure error) (results.Client, error) {
	total, lag := r.shards[0].rec, r.shards[0].sendLag
	for _, s := range r.shards[1:] {
		total.Merge(s.rec)
		lag.Merge(s.sendLag)
	}
	n := &total.Counters
	n.Unsent, n.Offered = r.unsent, r.unsent
	first, sent := time.Duration(0), false
	for _, c := range r.clients {
		n.Offered += c.offered
		n.Retries += c.retries
		n.LateSends += c.lateSends
		if c.started && (!sent || c.first < first) {
			first, sent = c.first, true
		}
	}
	out := results.Client{
		Index: r.cfg.Index, FirstClient: r.cfg.FirstClient, Clients: r.cfg.Clients,
		StartedNanos: int64(first + warmUp), MeasureNanos: int64(r.measure), Driver: driver,
	}
	if err := total.Fill(&out); err != nil {
		return results.Client{}, err
	}
	if r.cfg.Loop == LoopOpen {
		s, err := lag.Encode()
		if err != nil {
			return results.Client{}, err
		}
		out.SendLag = s
		if lag.OutOfRange() > 0 {
			failure = errors.Join(failure, fmt.Errorf("%d requests were sent more than an hour late", lag.OutOfRange()))
		}
	}
	if failure != nil {
		text := failure.Error()
		out.Failure = text[:min(len(text), results.MaxFailureText)]
	}
	return out, nil
}
