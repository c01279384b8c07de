package driver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	rpc "github.com/cometbft/cometbft/rpc/client/http"
	"github.com/cometbft/cometbft/types"
	"github.com/gorilla/websocket"
)

const (
	// connections to a node at most, for transactions that wait for its answer.
	connections = 128
	// dialLimit is how long a connection may take.
	dialLimit = 5 * time.Second
	// silence after which a stream of blocks counts as broken. The node answers a ping every
	// pingInterval.
	silence      = 10 * time.Second
	pingInterval = 3 * time.Second
	// pause before a stream that broke is opened again.
	pause = 500 * time.Millisecond
)

// node accepts transactions and reports blocks.
type node struct {
	address string
	client  *http.Client
	rpc     *rpc.HTTP
	blocks  chain
	// followed is closed when the stream is open for the first time.
	followed chan struct{}

	mu     sync.Mutex
	broken error // why the stream broke last
}

func newNode(address string, committed func([]types.Tx)) (*node, error) {
	client := &http.Client{Transport: &http.Transport{
		MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections,
		DialContext: (&net.Dialer{Timeout: dialLimit}).DialContext,
	}}
	c, err := rpc.NewWithClient("http://"+address, client)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", address, err)
	}
	n := &node{address: address, client: client, rpc: c, followed: make(chan struct{})}
	n.blocks = chain{fetch: n.fetch, committed: committed}
	return n, nil
}

// submit gives the node a transaction. It returns when the node has checked it.
func (n *node) submit(ctx context.Context, tx types.Tx) error {
	answer, err := n.rpc.BroadcastTxSync(ctx, tx)
	switch {
	case err != nil && known(err):
		return nil
	case err != nil:
		return fmt.Errorf("node %s: %w", n.address, err)
	case answer.Code != 0:
		return fmt.Errorf("node %s: the application refuses the transaction with code %d: %s", n.address, answer.Code, answer.Log)
	}
	return nil
}

func (n *node) fetch(ctx context.Context, height int64) ([]types.Tx, error) {
	answer, err := n.rpc.Block(ctx, &height)
	if err != nil {
		return nil, fmt.Errorf("fetch block %d: %w", height, err)
	}
	return answer.Block.Txs, nil
}

// why returns why the stream broke last.
func (n *node) why() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.broken == nil {
		return errors.New("no answer")
	}
	return n.broken
}

// follow keeps a stream of the node's blocks open until ctx ends.
func (n *node) follow(ctx context.Context) {
	defer n.client.CloseIdleConnections()
	for ctx.Err() == nil {
		err := n.listen(ctx)
		n.mu.Lock()
		n.broken = err
		n.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// event is a node's message on a subscription: first a confirmation, then the blocks. The project's
// own client also reads the results of all transactions. That takes it longer than consensus takes
// the nodes.
type event struct {
	Error *struct {
		Message string `json:"message"`
		Data    string `json:"data"`
	} `json:"error"`
	Result struct {
		Data struct {
			Value struct {
				Block *struct {
					Header struct {
						Height int64 `json:"height,string"`
					} `json:"header"`
					Data struct {
						Txs []types.Tx `json:"txs"`
					} `json:"data"`
				} `json:"block"`
			} `json:"value"`
		} `json:"data"`
	} `json:"result"`
}

// listen reads the node's blocks until the stream breaks, and returns the reason.
func (n *node) listen(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dialer := websocket.Dialer{HandshakeTimeout: dialLimit}
	conn, response, err := dialer.DialContext(ctx, "ws://"+n.address+"/websocket", nil)
	if err != nil {
		return fmt.Errorf("open the stream of blocks: %w", err)
	}
	defer response.Body.Close()
	hangUp := func() {
		bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
		_ = conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(pause)) // an error does not matter: the node may be gone
		conn.Close()
	}
	stop := context.AfterFunc(ctx, hangUp)
	defer func() {
		if stop() {
			hangUp()
		}
	}()
	alive := func(string) error { return conn.SetReadDeadline(time.Now().Add(silence)) }
	conn.SetPongHandler(alive)
	go ping(ctx, conn)
	if err := conn.WriteJSON(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "subscribe", "params": map[string]string{"query": types.EventQueryNewBlock.String()},
	}); err != nil {
		return fmt.Errorf("subscribe to blocks: %w", err)
	}
	for {
		if err := alive(""); err != nil {
			return err
		}
		var e event
		if err := conn.ReadJSON(&e); err != nil {
			return fmt.Errorf("read the stream of blocks: %w", err)
		}
		block := e.Result.Data.Value.Block
		switch {
		case e.Error != nil:
			return fmt.Errorf("the node ends the stream of blocks: %s: %s", e.Error.Message, e.Error.Data)
		case block == nil:
			err = n.subscribed(ctx)
		default:
			err = n.blocks.saw(ctx, block.Header.Height, block.Data.Txs)
		}
		if err != nil {
			return err
		}
	}
}

// subscribed fetches the blocks that the node has committed since the last stream broke.
func (n *node) subscribed(ctx context.Context) error {
	status, err := n.rpc.Status(ctx)
	if err != nil {
		return fmt.Errorf("ask for the last block: %w", err)
	}
	latest := status.SyncInfo.LatestBlockHeight
	if latest == 0 || status.SyncInfo.CatchingUp {
		return errors.New("the node has no block yet, or catches up")
	}
	if err := n.blocks.reach(ctx, latest); err != nil {
		return err
	}
	select {
	case <-n.followed:
	default:
		close(n.followed)
	}
	return nil
}

// ping asks for a sign of life until ctx ends.
func ping(ctx context.Context, conn *websocket.Conn) {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(pingInterval)) != nil {
				return // the reader gets the error
			}
		}
	}
}

// chain has a node's blocks in their order, each once, whatever streams they came on.
type chain struct {
	fetch     func(ctx context.Context, height int64) ([]types.Tx, error)
	committed func([]types.Tx)
	height    int64 // of the last block; 0: none yet
}

// saw handles a block that a node reports. It fetches the missing blocks before it, and reports the
// transactions of all as committed.
func (c *chain) saw(ctx context.Context, height int64, txs []types.Tx) error {
	if height <= c.height {
		return nil
	}
	if err := c.reach(ctx, height-1); err != nil {
		return err
	}
	c.height = height
	c.committed(txs)
	return nil
}

// reach fetches the blocks after the last one, up to height. It skips blocks before the first
// stream: no client waits for them.
func (c *chain) reach(ctx context.Context, height int64) error {
	if c.height == 0 {
		c.height = height
	}
	for c.height < height {
		txs, err := c.fetch(ctx, c.height+1)
		if err != nil {
			return err
		}
		c.height++
		c.committed(txs)
	}
	return nil
}
