// Package server is a replica of the awkward system: it has the habits of research prototypes that
// a platform must cope with.
//
//   - It reads all keys and resolves all names once, at the start, and gives up when one is
//     missing.
//   - It binds the address that its own line of the configuration resolves to, so that name must
//     mean this very machine.
//   - It opens its port early, loads for a while, and answers garbage until then. Only a line on
//     stderr says when it is ready.
//   - It refuses a peer that is not the one in the configuration.
//   - On SIGTERM it writes its statistics and exits.
//   - On request it crashes in the middle of its work, or stops answering without a message.
//
// It replicates no data: an operation counts as carried out when enough replicas have signed for
// it.
package server

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"assay.dev/assay/systems/awkward/internal/group"
	"assay.dev/assay/systems/awkward/internal/identity"
	"assay.dev/assay/systems/awkward/internal/wire"
)

// ReadyLine is printed on stderr when the replica can be used.
const ReadyLine = "Ready to process operations"

const (
	pingTimeout   = 500 * time.Millisecond
	pingInterval  = time.Second
	peersPatience = 30 * time.Second
)

// Options of a replica.
type Options struct {
	Config group.Config
	// Index of this replica in the configuration.
	Index int
	// Keys is the directory with the keys of all replicas.
	Keys string
	// Load is how long the replica loads after it has opened its port.
	Load time.Duration
	// Service is how long one operation takes.
	Service time.Duration
	// CrashAfter is how long after the first operation the replica crashes. StallAfter is how long
	// after it the replica stops answering. 0: never.
	CrashAfter, StallAfter time.Duration
	// StatsFile is written at the end; empty for none.
	StatsFile string
	Resolver  group.Resolver
	Stdout    io.Writer
	Stderr    io.Writer
}

// Stats are written when the replica ends.
type Stats struct {
	Replica   int    `json:"replica"`
	Served    uint64 `json:"served"`
	Early     uint64 `json:"early"` // operations that came while the replica was loading
	PingsOK   uint64 `json:"pingsOK"`
	PingsLost uint64 `json:"pingsLost"`
}

type replica struct {
	Options
	private ed25519.PrivateKey
	publics []ed25519.PublicKey
	addrs   []netip.AddrPort

	loaded                            atomic.Bool
	began                             sync.Once     // at the first operation
	stalled                           chan struct{} // closed when the replica does not answer any more
	crashed                           chan struct{} // closed when it must crash
	served, early, pingsOK, pingsLost atomic.Uint64
}

// Run is a replica's life. It ends with the context, or with an error that a user must see.
func Run(ctx context.Context, o Options) error {
	r, err := open(ctx, o)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp4", r.addrs[r.Index].String())
	if err != nil {
		return fmt.Errorf("bind the address that %s resolves to: %w", r.Config.Replicas[r.Index], err)
	}
	ctx, stop := context.WithCancel(ctx)
	var connections sync.WaitGroup
	defer connections.Wait()
	defer stop()
	context.AfterFunc(ctx, func() { listener.Close() })
	connections.Go(func() { r.accept(ctx, listener, &connections) })

	fmt.Fprintf(r.Stderr, "replica %d listens on %s and loads\n", r.Index, listener.Addr())
	if !sleep(ctx, r.Load) {
		return r.writeStats()
	}
	if err := r.meetPeers(ctx); err != nil {
		return err
	}
	r.loaded.Store(true)
	fmt.Fprintf(r.Stderr, "It sees %d processors\n", runtime.NumCPU())
	fmt.Fprintln(r.Stderr, ReadyLine)
	if err := r.report(ctx); err != nil {
		return err
	}
	return r.writeStats()
}

// ErrCrashed is the error of a replica that was told to crash.
var ErrCrashed = errors.New("assertion failed: quorum.cc:117: votes.size() <= n")

// begin starts the timers of the planned failures.
func (r *replica) begin() {
	for _, fate := range []struct {
		after time.Duration
		come  chan struct{}
	}{{r.CrashAfter, r.crashed}, {r.StallAfter, r.stalled}} {
		if fate.after > 0 {
			time.AfterFunc(fate.after, func() { close(fate.come) })
		}
	}
}

func open(ctx context.Context, o Options) (*replica, error) {
	if o.Index < 0 || o.Index >= len(o.Config.Replicas) {
		return nil, fmt.Errorf("replica %d is not in the configuration, which has %d", o.Index, len(o.Config.Replicas))
	}
	private, err := identity.Private(o.Keys, o.Index)
	if err != nil {
		return nil, err
	}
	publics, err := identity.Publics(o.Keys, len(o.Config.Replicas))
	if err != nil {
		return nil, err
	}
	addrs, err := o.Config.Resolve(ctx, o.Resolver)
	if err != nil {
		return nil, err
	}
	return &replica{Options: o, private: private, publics: publics, addrs: addrs, stalled: make(chan struct{}), crashed: make(chan struct{})}, nil
}

func (r *replica) accept(ctx context.Context, listener net.Listener, connections *sync.WaitGroup) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // the listener is closed when the replica ends
		}
		connections.Go(func() {
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			r.serve(ctx, conn)
		})
	}
}

// serve answers the requests of one connection, one after the other.
func (r *replica) serve(ctx context.Context, conn net.Conn) {
	lines := bufio.NewScanner(conn)
	lines.Buffer(make([]byte, wire.MaxLine), wire.MaxLine)
	for lines.Scan() {
		answer, ok := r.answer(ctx, lines.Text())
		if !ok {
			return
		}
		if _, err := io.WriteString(conn, answer+"\n"); err != nil {
			return // the other side is gone, and has the reason
		}
	}
}

func (r *replica) answer(ctx context.Context, line string) (string, bool) {
	if strings.HasPrefix(line, "ping ") {
		ping, err := wire.ParsePing(line)
		return ping.Reply(r.Index, r.private), err == nil
	}
	op, err := wire.ParseOp(line)
	if err != nil {
		return "", false
	}
	if !r.loaded.Load() {
		r.early.Add(1)
		return wire.Garbage, true
	}
	r.began.Do(r.begin)
	if !sleep(ctx, r.Service) {
		return "", false
	}
	select {
	case <-r.stalled:
		<-ctx.Done() // the connection stays open, and no answer comes
		return "", false
	default:
	}
	r.served.Add(1)
	return op.Reply(r.Index, r.private), true
}

// meetPeers returns when every peer has answered with its right identity. It waits for a peer that
// does not run yet. A peer with another identity is an error at once.
func (r *replica) meetPeers(ctx context.Context) error {
	deadline := time.Now().Add(peersPatience)
	for peer := range r.addrs {
		for {
			line, err := r.ping(ctx, peer, 0)
			if err == nil {
				if err := (wire.Ping{From: r.Index}).CheckReply(line, peer, r.publics[peer]); err != nil {
					return fmt.Errorf("the server at %s is not replica %d: %w", r.Config.Replicas[peer], peer, err)
				}
				break
			}
			if ctx.Err() != nil || time.Now().After(deadline) {
				return fmt.Errorf("replica %d at %s does not answer: %w", peer, r.Config.Replicas[peer], err)
			}
			sleep(ctx, pingTimeout/10)
		}
	}
	return nil
}

// ping sends one ping and returns the line of the answer.
func (r *replica) ping(ctx context.Context, peer int, nonce uint64) (string, error) {
	dialer := net.Dialer{Timeout: pingTimeout}
	conn, err := dialer.DialContext(ctx, "tcp4", r.addrs[peer].String())
	if err != nil {
		return "", fmt.Errorf("dial peer: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(pingTimeout)); err != nil {
		return "", fmt.Errorf("set deadline: %w", err)
	}
	if _, err := fmt.Fprintln(conn, wire.Ping{From: r.Index, Nonce: nonce}); err != nil {
		return "", fmt.Errorf("ping peer: %w", err)
	}
	line, err := bufio.NewReaderSize(conn, wire.MaxLine).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("read pong: %w", err)
	}
	return strings.TrimSuffix(line, "\n"), nil
}

// report prints the number of operations served, and pings all peers, every second until the end.
func (r *replica) report(ctx context.Context) error {
	ticks := time.NewTicker(pingInterval)
	defer ticks.Stop()
	var pings sync.WaitGroup
	defer pings.Wait()
	for nonce := uint64(1); ; nonce++ {
		select {
		case <-ctx.Done():
			fmt.Fprintf(r.Stdout, "served %d\n", r.served.Load())
			return nil
		case <-r.crashed:
			return ErrCrashed
		case <-ticks.C:
		}
		if _, err := fmt.Fprintf(r.Stdout, "served %d\n", r.served.Load()); err != nil {
			return fmt.Errorf("print: %w", err)
		}
		for peer := range r.addrs {
			pings.Go(func() { r.countPing(ctx, peer, nonce) })
		}
	}
}

func (r *replica) countPing(ctx context.Context, peer int, nonce uint64) {
	line, err := r.ping(ctx, peer, nonce)
	if err == nil {
		err = wire.Ping{From: r.Index, Nonce: nonce}.CheckReply(line, peer, r.publics[peer])
	}
	if err != nil {
		r.pingsLost.Add(1)
		return
	}
	r.pingsOK.Add(1)
}

func (r *replica) writeStats() error {
	if r.StatsFile == "" {
		return nil
	}
	stats := Stats{
		Replica: r.Index, Served: r.served.Load(), Early: r.early.Load(),
		PingsOK: r.pingsOK.Load(), PingsLost: r.pingsLost.Load(),
	}
	text, err := json.Marshal(stats)
	if err != nil {
		return fmt.Errorf("encode statistics: %w", err)
	}
	if err := os.WriteFile(r.StatsFile, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write statistics: %w", err)
	}
	return nil
}

// sleep reports whether it slept for the whole time.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
