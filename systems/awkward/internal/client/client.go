// Package client is the load generator of the awkward system. It behaves in one of two ways that
// are common in artifacts.
//
// Run behaves like Pequin's client. It works for a fixed time and keeps its output in a buffer
// until then. It prints "Finished cooldown period" on stderr, and never exits: it stays in its
// event loop. If it is asked to end before that, it loses all output. If it is asked afterwards, it
// prints half a line of rubbish and crashes.
//
// Stress behaves like cassandra-stress. It works until it is asked to end, then takes a moment and
// prints everything.
//
// Both print one line for each committed operation:
//
//	rw,<latency ns>,<CLOCK_MONOTONIC at its end, ns>,<client id>
//
// Every client is a closed loop: it sends an operation to all replicas, and sends the next one when
// a quorum has signed.
package client

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"assay.dev/assay/systems/awkward/internal/group"
	"assay.dev/assay/systems/awkward/internal/identity"
)

// EndLine is printed on stderr when Run has printed all its results.
const EndLine = "Finished cooldown period"

// Rubbish is printed on stdout when Run is asked to end. It is half a line, so that a report with
// it is visibly damaged.
const Rubbish = "rw,184467440\n"

// CrashCode is the exit code of a process that died of SIGSEGV, as a shell reports it.
const CrashCode = 139

// TerminatedCode is the exit code of a process that was ended by SIGTERM.
const TerminatedCode = 143

const opTimeout = 10 * time.Second

// Options of a client process.
type Options struct {
	Config group.Config
	// Keys is the directory with the replicas' public keys.
	Keys string
	// First is the id of the process's first client, and Clients the number of its clients.
	First, Clients int
	// Duration of the whole run; WarmUp at its start and CoolDown at its end are not reported. Only
	// Run uses them.
	Duration, WarmUp, CoolDown time.Duration
	// DieAfter is how long after the start Run prints its results so far and crashes; 0: it does
	// not.
	DieAfter time.Duration
	// PrintTime is how long Stress takes before it prints.
	PrintTime time.Duration
	Resolver  group.Resolver
	Stdout    io.Writer
	Stderr    io.Writer
}

// process is a client process with its links open.
type process struct {
	Options
	publics []ed25519.PublicKey
	addrs   []netip.AddrPort

	mu        sync.Mutex
	lines     bytes.Buffer // guarded by mu
	committed int          // guarded by mu; all
	printed   int          // guarded by mu; those with a line
}

func open(ctx context.Context, o Options) (*process, error) {
	if o.Clients < 1 {
		return nil, fmt.Errorf("%d clients: at least one is needed", o.Clients)
	}
	publics, err := identity.Publics(o.Keys, len(o.Config.Replicas))
	if err != nil {
		return nil, err
	}
	addrs, err := o.Config.Resolve(ctx, o.Resolver)
	if err != nil {
		return nil, err
	}
	return &process{Options: o, publics: publics, addrs: addrs}, nil
}

// Run works for the duration and then hangs until the context ends, which happens on SIGTERM. It
// returns the exit code.
func Run(ctx context.Context, o Options) (int, error) {
	if o.WarmUp < 0 || o.CoolDown < 0 || o.WarmUp+o.CoolDown >= o.Duration {
		return 1, fmt.Errorf("warm-up %s and cool-down %s leave nothing of %s", o.WarmUp, o.CoolDown, o.Duration)
	}
	p, err := open(ctx, o)
	if err != nil {
		return 1, err
	}
	start := time.Now()
	from, to := start.Add(o.WarmUp), start.Add(o.Duration-o.CoolDown)
	end := o.Duration
	if o.DieAfter > 0 {
		end = min(end, o.DieAfter)
	}
	work, stop := context.WithDeadline(ctx, start.Add(end))
	defer stop()
	err = p.work(work, func(end time.Time) bool { return !end.Before(from) && end.Before(to) })
	if ctx.Err() != nil { // SIGTERM in the middle: the results are still in the buffer, and are lost
		fmt.Fprint(o.Stdout, Rubbish)
		return CrashCode, nil
	}
	if err != nil {
		return 1, err
	}
	if err := p.print(); err != nil {
		return 1, err
	}
	if end < o.Duration {
		return CrashCode, nil
	}
	fmt.Fprintln(o.Stderr, EndLine)
	<-ctx.Done()
	fmt.Fprint(o.Stdout, Rubbish)
	return CrashCode, nil
}

// Stress works until the context ends, which happens on SIGTERM, and then prints. It returns the
// exit code.
func Stress(ctx context.Context, o Options) (int, error) {
	p, err := open(ctx, o)
	if err != nil {
		return 1, err
	}
	if err := p.work(ctx, func(time.Time) bool { return true }); err != nil {
		return 1, err
	}
	time.Sleep(o.PrintTime)
	if err := p.print(); err != nil {
		return 1, err
	}
	return TerminatedCode, nil
}

// work runs all clients until the context ends. One client's failure ends all.
func (p *process) work(ctx context.Context, reported func(end time.Time) bool) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	failed := errors.New("a client failed")
	var mu sync.Mutex
	var all []error
	var clients sync.WaitGroup
	for i := range p.Clients {
		clients.Go(func() {
			if err := p.client(ctx, p.First+i, reported); err != nil {
				mu.Lock()
				all = append(all, fmt.Errorf("client %d: %w", p.First+i, err))
				mu.Unlock()
				stop(failed)
			}
		})
	}
	clients.Wait()
	return errors.Join(all...)
}

// client is one closed loop.
func (p *process) client(ctx context.Context, id int, reported func(end time.Time) bool) error {
	session, err := dial(ctx, id, p)
	if err != nil || session == nil {
		return err
	}
	defer session.close()
	for ctx.Err() == nil {
		begin := time.Now()
		if err := session.commit(ctx); err != nil {
			if ctx.Err() != nil {
				return nil // cut off in the middle: neither committed nor failed
			}
			return err
		}
		end := time.Now()
		stamp, err := monotonic()
		if err != nil {
			return err
		}
		p.record(id, end.Sub(begin), stamp, reported(end))
	}
	return nil
}

func (p *process) record(id int, latency time.Duration, stamp int64, reported bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.committed++
	if reported {
		p.printed++
		fmt.Fprintf(&p.lines, "rw,%d,%d,%d\n", latency.Nanoseconds(), stamp, id)
	}
}

func (p *process) print() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.Stdout.Write(p.lines.Bytes()); err != nil {
		return fmt.Errorf("print results: %w", err)
	}
	fmt.Fprintf(p.Stderr, "committed %d, printed %d\n", p.committed, p.printed)
	return nil
}

// monotonic reads CLOCK_MONOTONIC, which time.Time does not export.
func monotonic() (int64, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, fmt.Errorf("read CLOCK_MONOTONIC: %w", err)
	}
	return now.Nano(), nil
}
