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
	drivers Drivers
	log     *slog.Logger
	clock   clock
	now     func() time.Duration // instant relative to t = 0
	timeout time.Duration
	last    time.Duration // every request is sent before this
	measure time.Duration
	warmUp  time.Duration
	shape   shape           // of a closed loop; nil: all clients are active all the time
	trace   []time.Duration // arrivals of this generator, relative to t = 0
	stopped atomic.Bool     // given up: no more requests are sent
	shards  []*shard        // of the measured clients
	apart   *shard          // of the misbehaving clients; a report has only its counters
	clients []*client
	unsent  int64 // in the window; kept by the agenda, under its lock
	absence error // why misbehaving clients were missing in the window; nil: they were there

	failuresLogged atomic.Int32
}

// maxFailuresLogged is how many failed requests are logged with their details. The others are only
// counted.
const maxFailuresLogged = 10

// Run offers the load of the configuration and returns the measurements. It first waits at the
// barrier, if there is one. It closes the drivers in any case.
//
// If a driver failed during the run, the results have its error in Failure, and the returned error
// is nil: the measurements until then may show why.
func Run(ctx context.Context, cfg Config, drivers Drivers, log *slog.Logger) (results.Client, error) {
	return runBy(ctx, systemClock(), cfg, drivers, log)
}

func runBy(ctx context.Context, clock clock, cfg Config, drivers Drivers, log *slog.Logger) (results.Client, error) {
	closeDrivers := sync.OnceValue(drivers.close)
	defer closeDrivers() // for the early returns; the ends of the drivers are judged below

	if err := cfg.Validate(); err != nil {
		return results.Client{}, fmt.Errorf("validate the configuration: %w", err)
	}
	if (cfg.Misbehaving != nil) != (drivers.Misbehaving != nil) {
		return results.Client{}, errors.New("misbehaving clients need a driver for them, and the driver needs such clients")
	}
	r := &run{cfg: cfg, drivers: drivers, log: log, clock: clock, timeout: time.Duration(cfg.Timeout)}
	if cfg.Trace != nil {
		var err error
		if r.trace, err = cfg.arrivals(); err != nil {
			return results.Client{}, err
		}
	}
	if err := r.openSessions(); err != nil {
		return results.Client{}, err
	}
	start, err := barrier(ctx, clock, cfg, drivers)
	if err != nil {
		return results.Client{}, err
	}
	w := start.Windows
	r.now = clock.at(start.ZeroMonotonicNanos)
	r.last, r.measure, r.warmUp = w.LastRequest(), w.Measure, w.WarmUp
	if cfg.Loop == LoopClosed {
		r.shape = newShape(cfg.Phases, w.WarmUp)
	}
	for _, s := range append(r.shards, r.apart) {
		s.rec = results.NewRecorder(w)
	}
	if late := r.now() - w.End(); late >= 0 {
		return results.Client{}, fmt.Errorf("the run was over %v before it was released here", late)
	}

	stopProgress := r.reportProgress()
	err = r.offer(ctx, w.WarmUp, w.End(), func() { closeDrivers() })
	stopProgress()
	if err != nil {
		return results.Client{}, err
	}
	return r.collect(w.WarmUp, closeDrivers())
}

// openSessions makes the clients and opens their sessions, a bounded number at once.
func (r *run) openSessions() error {
	n := int(r.cfg.Clients)
	for range min(n, runtime.GOMAXPROCS(0)) {
		r.shards = append(r.shards, newShard())
	}
	r.apart = newShard()
	r.clients = make([]*client, n)
	errs := make([]error, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, 64) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				global := r.cfg.FirstClient + int32(i)
				driver, shard, misbehaves := r.drivers.Correct, r.shards[i%len(r.shards)], r.cfg.misbehaves(global)
				if misbehaves {
					driver, shard = r.drivers.Misbehaving, r.apart
				}
				s, err := driver.Session(global)
				if err != nil {
					errs[i] = fmt.Errorf("open the session of client %d: %w", global, err)
					next.Store(int64(n)) // one failure is enough
				}
				r.clients[i] = &client{run: r, session: s, shard: shard, misbehaves: misbehaves, level: r.cfg.level(global),
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

// offer releases the clients at the start of the warm-up and waits until all have ended. At the end
// of the drain it gives up the requests in progress.
func (r *run) offer(ctx context.Context, warmUp, end time.Duration, closeDrivers func()) error {
	ended := make(chan error, 1)
	go func() {
		if r.cfg.Loop == LoopOpen {
			ended <- r.offerOpen(warmUp)
		} else {
			ended <- r.offerClosed(warmUp)
		}
	}()
	measured := time.NewTimer(r.measure - r.now())
	defer measured.Stop()
	drained := time.NewTimer(end - r.now())
	defer drained.Stop()
	windowOver := sync.OnceFunc(func() { r.absence = r.drivers.absence() })
	early := false // all requests are sent, and the window goes on
	for {
		select {
		case <-measured.C:
			windowOver()
			if early {
				return nil
			}
		case err := <-ended:
			if early = err == nil && r.now() < r.measure; early {
				continue
			}
			windowOver()
			return err
		case <-drained.C:
			windowOver()
			r.stopped.Store(true)
			closeDrivers() // ends the requests in progress
			return <-ended
		case <-ctx.Done():
			r.stopped.Store(true)
			closeDrivers()
			return fmt.Errorf("the run was stopped before its end: %w", context.Cause(ctx))
		}
	}
}

func (r *run) offerClosed(warmUp time.Duration) error {
	alarm, err := r.clock.newAlarm()
	if err != nil {
		return err
	}
	defer alarm.close()
	start := make(chan struct{})
	var wg sync.WaitGroup
	for _, c := range r.clients {
		wg.Go(func() {
			<-start
			c.closedLoop()
		})
	}
	err = alarm.sleep(-warmUp - r.now())
	if err != nil {
		r.stopped.Store(true)
	}
	close(start)
	wg.Wait()
	return err
}

// offerOpen lets the measured clients take requests from one agenda, and the misbehaving clients
// from another. With a common agenda, the misbehaving clients would take requests from the measured
// ones, since they give up every request at once and are always free.
func (r *run) offerOpen(warmUp time.Duration) error {
	var measured, others []*client
	for _, c := range r.clients {
		if c.misbehaves {
			others = append(others, c)
		} else {
			measured = append(measured, c)
		}
	}
	paced := make(chan error, 2)
	go func() {
		paced <- r.workOff(measured, warmUp, r.neverSent)
	}()
	go func() { paced <- r.workOff(others, warmUp, func(time.Duration) {}) }()
	return errors.Join(<-paced, <-paced)
}

// neverSent counts the request of an arrival, or all requests of its session, as never sent. The
// agenda holds its lock.
func (r *run) neverSent(intended time.Duration) {
	n := r.cfg.perArrival()
	if r.inWindow(intended) {
		r.unsent += n
	}
	s := r.shards[0]
	s.mu.Lock()
	s.rec.Offer(intended, n)
	s.mu.Unlock()
}

// workOff lets all clients of one kind carry out the arrivals for their kind.
func (r *run) workOff(clients []*client, warmUp time.Duration, unsent func(time.Duration)) error {
	if len(clients) == 0 {
		return nil
	}
	alarm, err := r.clock.newAlarm()
	if err != nil {
		return err
	}
	defer alarm.close()
	p := newPacer(r.cfg, r.trace, warmUp, clients[0].misbehaves)
	a := newAgenda(r.now, p, -warmUp, r.last, r.timeout, len(clients), unsent)
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() { c.openLoop(a) })
	}
	pacing := make(chan error, 1)
	go func() {
		err := a.pace(alarm)
		if err != nil {
			a.close()
		}
		pacing <- err
	}()
	wg.Wait()
	a.close()
	return <-pacing
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

// collect sums up the measurements of all clients, without the misbehaving ones.
func (r *run) collect(warmUp time.Duration, ends driverEnds) (results.Client, error) {
	total, lag, own := r.shards[0].rec, r.shards[0].sendLag, r.shards[0].generatorLag
	for _, s := range r.shards[1:] {
		total.Merge(s.rec)
		lag.Merge(s.sendLag)
		own.Merge(s.generatorLag)
	}
	n := &total.Counters
	n.Unsent, n.Offered = r.unsent, r.unsent
	for _, c := range r.clients {
		if c.misbehaves {
			continue
		}
		n.Offered += c.offered
		n.Retries += c.retries
		n.LateSends += c.lateSends
	}
	out := results.Client{
		Index: r.cfg.Index, FirstClient: r.cfg.FirstClient, Clients: r.cfg.Clients,
		StartedNanos: int64(r.firstSend() + warmUp), MeasureNanos: int64(r.measure), Driver: ends.counters,
	}
	failure := ends.err
	if m := r.cfg.Misbehaving; m != nil {
		out.MisbehavingClients, out.MisbehavingDriver = int32(len(m.Clients)), ends.misbehavingCounters
		out.MisbehavingCounters = r.misbehaved()
		failure = errors.Join(failure, r.absence)
		if r.absence == nil && ends.misbehavingErr != nil {
			r.log.Warn("The driver of the clients that misbehave failed after the window, which is no matter", "error", ends.misbehavingErr)
		}
	}
	if err := total.Fill(&out); err != nil {
		return results.Client{}, err
	}
	if r.cfg.Loop == LoopOpen || r.shape != nil {
		s, err := lag.Encode()
		if err != nil {
			return results.Client{}, err
		}
		out.SendLag = s
		if out.GeneratorLag, err = own.Encode(); err != nil {
			return results.Client{}, err
		}
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

// misbehaved counts the outcomes of the misbehaving clients' requests.
func (r *run) misbehaved() *results.Counters {
	n := r.apart.rec.Counters
	for _, c := range r.clients {
		if c.misbehaves {
			n.Offered, n.Retries, n.LateSends = n.Offered+c.offered, n.Retries+c.retries, n.LateSends+c.lateSends
		}
	}
	return &n
}

// firstSend is when the first request of a measured client was sent. If all clients misbehave, it
// is when their first request was sent.
func (r *run) firstSend() time.Duration {
	first, sent := time.Duration(0), false
	all := r.cfg.Misbehaving != nil && len(r.cfg.Misbehaving.Clients) == len(r.clients)
	for _, c := range r.clients {
		if c.started && (all || !c.misbehaves) && (!sent || c.first < first) {
			first, sent = c.first, true
		}
	}
	return first
}
