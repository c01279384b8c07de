package launcher

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
)

// ErrGone says that the launcher's end of the socket is closed.
var ErrGone = errors.New("the launcher is gone")

// Client is the agent's end of a launcher's socket, and of the permit beside it.
type Client struct {
	conn    net.Conn
	permit  *permit
	onState func(State)

	mu      sync.Mutex
	encoder *json.Encoder
	next    int64
	waiting map[int64]chan Response
	gone    chan struct{}
}

// Dial connects to the launcher that listens at path. onState is called for every state, the first
// one before Dial returns, always from one goroutine.
func Dial(ctx context.Context, path string, onState func(State)) (*Client, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	word, err := openPermit(strings.TrimSuffix(path, filepath.Ext(path))+permitSuffix, 0)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("share memory with the launcher: %w", err)
	}
	c := &Client{conn: conn, permit: word, onState: onState, encoder: json.NewEncoder(conn), waiting: map[int64]chan Response{}, gone: make(chan struct{})}
	go c.read()
	response, err := c.Call(ctx, Request{Look: &Look{}})
	if err != nil {
		c.Close()
		return nil, err
	}
	if response.State == nil {
		c.Close()
		return nil, fmt.Errorf("the launcher at %s does not tell its state", path)
	}
	return c, nil
}

// Gone is closed when the connection is.
func (c *Client) Gone() <-chan struct{} { return c.gone }

// Close ends the connection. The launcher still carries out its orders.
func (c *Client) Close() error {
	c.permit.close()
	return c.conn.Close()
}

// Permit allows every kill whose instant, on CLOCK_MONOTONIC, is not after this one. It takes no
// time and wakes no process. A closed client permits nothing.
func (c *Client) Permit(instant int64) { c.permit.give(instant) }

// Call sends a request and waits for its answer. An answer that reports an error is returned as
// that error.
func (c *Client) Call(ctx context.Context, request Request) (Response, error) {
	answer := make(chan Response, 1)
	c.mu.Lock()
	c.next++
	request.ID = c.next
	c.waiting[request.ID] = answer
	err := c.encoder.Encode(request)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, request.ID)
		c.mu.Unlock()
	}()
	if err != nil {
		return Response{}, fmt.Errorf("%w: %w", ErrGone, err)
	}
	select {
	case response := <-answer:
		if response.Error != "" {
			return response, errors.New(response.Error)
		}
		return response, nil
	case <-c.gone:
		return Response{}, ErrGone
	case <-ctx.Done():
		return Response{}, ctx.Err()
	}
}

// messageLimit bounds one message. A launcher's messages have some KiB. A process of the system
// could take the socket's place and send any amount, and must not fill the agent's memory.
const messageLimit = 1 << 20

func (c *Client) read() {
	defer close(c.gone)
	limited := &io.LimitedReader{R: c.conn}
	for decoder := json.NewDecoder(bufio.NewReader(limited)); ; {
		limited.N = messageLimit
		var response Response
		if err := decoder.Decode(&response); err != nil {
			return
		}
		if response.State != nil {
			c.onState(*response.State)
		}
		if response.ID == 0 {
			continue
		}
		c.mu.Lock()
		answer := c.waiting[response.ID]
		c.mu.Unlock()
		if answer != nil {
			answer <- response
		}
	}
}
