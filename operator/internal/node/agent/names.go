package agent

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	// Between attempts at a name, the agent waits for namePause for each name that it asks for, but
	// at least leastNamePause and at most mostNamePause. It waits longer with each attempt, since
	// all agents of a trial ask for the names of all its pods.
	namePause      = 5 * time.Millisecond
	leastNamePause = 50 * time.Millisecond
	mostNamePause  = 250 * time.Millisecond
	nameTimeout    = 3 * time.Second
	nameLookups    = 8 // at the same time
)

// resolver waits for the names that the pod's processes will ask for.
type resolver struct{ *state }

// doNames waits until the directive's names resolve.
func (r *resolver) doNames(ctx context.Context) {
	for {
		var names []string
		if r.await(ctx, func() bool {
			names = r.unresolved()
			return len(names) > 0
		}) != nil {
			return
		}
		wait := min(max(leastNamePause, time.Duration(len(names))*namePause), mostNamePause)
		var lookups sync.WaitGroup
		slots := make(chan struct{}, nameLookups)
		for _, name := range names {
			lookups.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				r.resolve(ctx, name, wait)
			})
		}
		lookups.Wait()
	}
}

// unresolved lists the names that do not resolve yet. The caller holds the lock.
func (r *resolver) unresolved() []string {
	var names []string
	for _, name := range r.directiveLocked().Resolve {
		if !r.volatile.resolved[name] && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// resolve waits until a name resolves in the same way as for the pod's processes.
//
// A query that is sent too early does harm: servers keep the answer "no such name" for up to 30 s,
// and give it to the processes, too. Common servers cache queries with the bits DO or CD
// separately, and these bits mean nothing for a cluster's names. So the first queries have these
// bits: they neither read nor write the cached answer to a plain query. When the name exists,
// resolve sends the plain query twice, as there may be several servers.
func (r *resolver) resolve(ctx context.Context, name string, wait time.Duration) {
	questions := []dnsQuery{{checkingDisabled: true}, {dnssecOK: true}, {checkingDisabled: true, dnssecOK: true}, {}}
	for attempt := 0; ; attempt++ {
		if questions[attempt%len(questions)].resolves(ctx, name) {
			break
		}
		if !pause(ctx, min(time.Duration(attempt+1)*wait, 2*time.Second)) {
			return
		}
	}
	for confirmed := 0; confirmed < 2; {
		if (dnsQuery{}).resolves(ctx, name) {
			confirmed++
			continue
		}
		confirmed = 0
		if !pause(ctx, wait) {
			return
		}
	}
	r.note(func() { r.volatile.resolved[name] = true })
}

// dnsQuery is a kind of query for a name.
type dnsQuery struct{ checkingDisabled, dnssecOK bool }

func (q dnsQuery) resolves(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, nameTimeout)
	defer cancel()
	resolver := net.Resolver{PreferGo: true, Dial: q.dialer("")}
	addresses, err := resolver.LookupHost(ctx, name)
	return err == nil && len(addresses) > 0
}

// dialer returns a function that connects to the given server, or to the other one if that is set.
func (q dnsQuery) dialer(other string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if other != "" {
			address = other
		}
		conn, err := dialMarked(ctx, network, address)
		if udp, ok := conn.(*net.UDPConn); ok && err == nil {
			return &dnsConn{UDPConn: udp, query: q}, nil
		}
		return conn, err
	}
}

// dnsConn sets the bits of the queries that go through it.
type dnsConn struct {
	*net.UDPConn
	query dnsQuery
}

func (c *dnsConn) Write(message []byte) (int, error) {
	return c.UDPConn.Write(c.query.mark(message))
}

// mark sets the bits in a DNS message: CD in the second byte of the flags, DO in the flags of the
// OPT record. The resolver puts that record last and leaves it empty: name 0, type 41, size,
// extended code, version, flags, length 0.
func (q dnsQuery) mark(message []byte) []byte {
	const header, opt = 12, 11
	if len(message) < header+opt {
		return message
	}
	marked := slices.Clone(message)
	if q.checkingDisabled {
		marked[3] |= 0x10
	}
	if last := marked[len(marked)-opt:]; q.dnssecOK && last[0] == 0 && last[1] == 0 && last[2] == 41 && last[9] == 0 && last[10] == 0 {
		last[7] |= 0x80
	}
	return marked
}
