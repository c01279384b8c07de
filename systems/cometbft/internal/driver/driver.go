// Package driver runs the clients of a group of CometBFT nodes for the load generator. A
// transaction sets a key of the application kvstore. Its client sends it to f+1 nodes, so that at
// least one is correct. It is done when f+1 nodes have reported a block with it. All clients share
// one stream of blocks from each node:
//
//	client --broadcast_tx_sync--> f+1 nodes ~~consensus~~> all nodes --NewBlock--> client
package driver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cometbft/cometbft/mempool"
	"github.com/cometbft/cometbft/types"

	protocol "assay.dev/assay/systems/driver"
)

// connectLimit is how long all nodes may take to report their first block. The protocol allows 60 s
// for ready.
const connectLimit = 45 * time.Second

// letters of a payload. The application allows neither : nor = in a value.
const letters = "abcdefghijklmnopqrstuvwxyz"

// Driver runs one session. It is a protocol.Transactor.
type Driver struct {
	// Nodes are the addresses of all nodes for clients, HOST:PORT.
	Nodes []string
	// PayloadSize of a transaction in bytes, at least 1.
	PayloadSize int

	stop    context.CancelFunc
	quorum  int // f+1
	nodes   []*node
	payload string
	running sync.WaitGroup

	mu      sync.Mutex
	waiting map[types.TxKey]*pending

	transactions, executed, timedOut, failed, refused atomic.Int64
}

// pending is a transaction whose client waits.
type pending struct {
	told int           // nodes that have reported its block
	done chan struct{} // closed when there are enough
}

// Connect opens a stream of blocks from every node. All nodes must run and have a block.
func (d *Driver) Connect(ctx context.Context, hello protocol.Hello) error {
	random := rand.New(rand.NewPCG(uint64(hello.Seed), uint64(hello.FirstClient)))
	payload := make([]byte, d.PayloadSize)
	for i := range payload {
		payload[i] = letters[random.IntN(len(letters))]
	}
	d.payload, d.quorum, d.waiting = string(payload), (len(d.Nodes)-1)/3+1, map[types.TxKey]*pending{}
	ctx, d.stop = context.WithCancel(ctx)
	for _, address := range d.Nodes {
		n, err := newNode(address, d.committed)
		if err != nil {
			return err
		}
		d.nodes = append(d.nodes, n)
		d.running.Go(func() { n.follow(ctx) })
	}
	limit, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	for _, n := range d.nodes {
		select {
		case <-n.followed:
		case <-limit.Done():
			return fmt.Errorf("node %s has reported no block for %v: %w", n.address, connectLimit, n.why())
		}
	}
	return nil
}

// committed counts a node that has reported transactions in a block. It wakes each transaction's
// client when enough nodes have.
func (d *Driver) committed(txs []types.Tx) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, tx := range txs {
		p := d.waiting[tx.Key()]
		if p == nil {
			continue // of another driver, or given up, or done
		}
		if p.told++; p.told == d.quorum {
			delete(d.waiting, tx.Key())
			close(p.done)
		}
	}
}

// Transact submits a transaction and waits until it is executed.
func (d *Driver) Transact(ctx context.Context, a protocol.Attempt) error {
	d.transactions.Add(1)
	err := d.transact(ctx, a)
	switch {
	case err == nil:
		d.executed.Add(1)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		d.timedOut.Add(1)
		return protocol.ErrTimeout
	case ctx.Err() == nil:
		d.failed.Add(1)
	}
	return err
}

func (d *Driver) transact(ctx context.Context, a protocol.Attempt) error {
	// The text is unique, since nodes accept a transaction only once.
	tx := types.Tx(strings.Join([]string{"client", strconv.FormatInt(a.Client, 10), "=", strconv.FormatUint(a.Sequence, 10), "-", d.payload}, ""))
	p := &pending{done: make(chan struct{})}
	d.mu.Lock()
	d.waiting[tx.Key()] = p
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.waiting, tx.Key())
		d.mu.Unlock()
	}()
	answers := make(chan error, d.quorum)
	for i := range d.quorum {
		n := d.nodes[(int(a.Client)+i)%len(d.nodes)]
		d.running.Go(func() { answers <- n.submit(ctx, tx) })
	}
	for refusals := 0; ; {
		select {
		case <-p.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case err := <-answers:
			if err == nil {
				continue
			}
			d.refused.Add(1)
			if refusals++; refusals == d.quorum {
				return fmt.Errorf("no node takes the transaction: %w", err)
			}
		}
	}
}

// known reports whether a node rejected a transaction because a peer had sent it first.
func known(err error) bool {
	text := err.Error() // the node's answer: the connection loses its type
	return strings.Contains(text, mempool.ErrTxInCache.Error()) || strings.Contains(text, mempool.ErrTxInMempool.Error())
}

// Close returns the counters of the whole run.
func (d *Driver) Close() map[string]int64 {
	d.stop()
	d.running.Wait()
	return map[string]int64{
		"transactions": d.transactions.Load(), "executed": d.executed.Load(), "timedOut": d.timedOut.Load(),
		"failed": d.failed.Load(), "refusals": d.refused.Load(),
	}
}
