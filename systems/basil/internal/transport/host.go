package transport

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"assay.dev/assay/systems/basil/internal/client"
	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/quorum"
	"assay.dev/assay/systems/basil/internal/replica"
	"assay.dev/assay/systems/basil/internal/wire"
)

// sink takes frames without blocking.
type sink interface{ send(frame []byte) }

func (q *queue) send(frame []byte) { q.put(frame) }

// ReplicaHost serves one replica.
type ReplicaHost struct {
	*Loop
	Replica *replica.Replica // touch it only inside the loop

	listener net.Listener
	cancel   context.CancelFunc
	peers    *peers
	muted    atomic.Bool

	mu    sync.Mutex
	conns map[node.ID]*queue
	next  node.ID
	wg    sync.WaitGroup
}

// ServeReplica listens on address and runs the replica until Close.
func ServeReplica(listen string, addresses []Address, cfg replica.Config) (*ReplicaHost, error) {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return ServeReplicaOn(l, addresses, cfg), nil
}

// ServeReplicaOn is like ServeReplica, with an open listener.
func ServeReplicaOn(l net.Listener, addresses []Address, cfg replica.Config) *ReplicaHost {
	ctx, cancel := context.WithCancel(context.Background())
	h := &ReplicaHost{
		Loop: newLoop(), listener: l, cancel: cancel,
		conns: map[node.ID]*queue{}, next: node.FirstClient,
	}
	h.peers = dialAll(ctx, addresses, cfg.Index, func(from int, m wire.Message) {
		h.receive(cfg.Checker, node.ID(from), m)
	})
	// The loop runs this before any message, even if a peer has already sent one.
	h.Do(func() { h.Replica = replica.New(cfg, &env{Loop: h.Loop, route: h.route}) })
	h.wg.Add(1)
	go h.accept(ctx, cfg.Checker)
	return h
}

func (h *ReplicaHost) receive(c *quorum.Checker, from node.ID, m wire.Message) {
	if h.muted.Load() {
		return
	}
	c.Warm(m)
	h.Post(func() { h.Replica.Handle(from, m) })
}

// route finds the sink for a node; nil drops the message.
func (h *ReplicaHost) route(to node.ID) sink {
	if h.muted.Load() {
		return nil
	}
	if to < node.FirstClient {
		if int(to) < len(h.peers.list) && h.peers.list[to] != nil {
			return h.peers.list[to]
		}
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if q := h.conns[to]; q != nil {
		return q
	}
	return nil
}

func (h *ReplicaHost) accept(ctx context.Context, c *quorum.Checker) {
	defer h.wg.Done()
	for {
		conn, err := h.listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			time.Sleep(minRedial) // perhaps there are no free file descriptors
			continue
		}
		h.wg.Add(1)
		go func() {
			defer h.wg.Done()
			q := newQueue()
			h.mu.Lock()
			h.next++
			id := h.next
			h.conns[id] = q
			h.mu.Unlock()
			serve(conn, q, false, ctx.Done(), func(m wire.Message) { h.receive(c, id, m) })
			h.mu.Lock()
			delete(h.conns, id)
			h.mu.Unlock()
		}()
	}
}

// Mute makes the replica silent from now on. It ignores all messages and sends none, like a crashed
// machine whose connections were never closed.
func (h *ReplicaHost) Mute() { h.muted.Store(true) }

// Close stops serving.
func (h *ReplicaHost) Close() {
	h.cancel()
	h.listener.Close()
	h.Loop.Close()
	h.peers.wg.Wait()
	h.wg.Wait()
}

// ClientHost runs one client state machine.
type ClientHost struct {
	*Loop
	Client *client.Client // touch it only inside the loop

	layout quorum.Layout
	cancel context.CancelFunc
	peers  *peers
}

// RunClient connects to all replicas in the background.
func RunClient(addresses []Address, cfg client.Config) *ClientHost {
	ctx, cancel := context.WithCancel(context.Background())
	h := &ClientHost{Loop: newLoop(), layout: cfg.Checker.Layout, cancel: cancel}
	h.Client = client.New(cfg, &env{Loop: h.Loop, route: func(to node.ID) sink {
		if to < 0 || int(to) >= len(h.peers.list) {
			return nil
		}
		return h.peers.list[to]
	}})
	h.peers = dialAll(ctx, addresses, -1, func(from int, m wire.Message) {
		cfg.Checker.Warm(m)
		h.Post(func() { h.Client.Handle(node.ID(from), m) })
	})
	return h
}

// WaitConnected waits until every replica is connected, or until limit. After limit, n-f of each
// shard are enough, for a cluster that starts with a dead replica. It returns the missing replicas,
// and an error if they are too many.
func (h *ClientHost) WaitConnected(limit time.Duration) (missing []int, err error) {
	deadline := time.Now().Add(limit)
	for {
		missing = missing[:0]
		perShard := make([]int, h.layout.Shards)
		for i, p := range h.peers.list {
			if !p.connected.Load() {
				missing = append(missing, i)
				perShard[h.layout.ShardOfReplica(i)]++
			}
		}
		if len(missing) == 0 {
			return nil, nil
		}
		if time.Now().After(deadline) {
			for s, n := range perShard {
				if n > h.layout.F {
					return missing, fmt.Errorf("shard %d: %d of %d replicas not reachable after %s", s, n, h.layout.N, limit)
				}
			}
			return missing, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Close disconnects.
func (h *ClientHost) Close() {
	h.cancel()
	h.Loop.Close()
	h.peers.wg.Wait()
}
