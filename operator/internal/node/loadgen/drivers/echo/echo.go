// Package echo is a driver that sends messages to a TCP echo server and waits for their return: the
// smallest possible request. It calibrates the generator and the network.
//
// A message is the length of its body in 4 bytes, big-endian, and the body; a request's body is 32
// bytes. Every client has one connection, and makes a new one after an error.
package echo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/node/loadgen"
)

const (
	headerSize = 4
	bodySize   = 32
	// MaxBody is the longest body that the server accepts.
	MaxBody = 1 << 20
)

// Driver is the echo driver.
type Driver struct {
	address string
	timeout time.Duration
	ctx     context.Context // ends dialing
	cancel  context.CancelFunc

	mu       sync.Mutex
	sessions []*session
	closed   bool
}

// New returns a driver for the server at address, host:port. A request that takes longer than the
// timeout counts as timed out.
func New(address string, timeout time.Duration) *Driver {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // it ends with Close
	return &Driver{address: address, timeout: timeout, ctx: ctx, cancel: cancel}
}

// Session connects a client.
func (d *Driver) Session(client int32) (loadgen.Session, error) {
	s := &session{driver: d}
	binary.BigEndian.PutUint32(s.out[:], bodySize)
	binary.BigEndian.PutUint32(s.out[headerSize:], uint32(client))
	if err := s.connect(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions = append(d.sessions, s)
	return s, nil
}

// Err is nil: the driver has no state that could fail.
func (d *Driver) Err() error { return nil }

// Close closes all connections.
func (d *Driver) Close() (map[string]int64, error) {
	d.cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, s := range d.sessions {
		if s.conn != nil {
			_ = s.conn.Close()
		}
	}
	return nil, nil
}

// session is one client's connection. conn is written under the driver's lock, since Close reads
// it.
type session struct {
	driver *Driver
	conn   net.Conn
	// expires is the connection's deadline.
	expires  time.Time
	requests uint64
	out, in  [headerSize + bodySize]byte
}

// Do sends a message and waits for it to come back.
func (s *session) Do(loadgen.Request) loadgen.Result {
	if s.conn == nil {
		if err := s.connect(); err != nil {
			return s.failed(err)
		}
	}
	if err := s.extendDeadline(); err != nil {
		return s.failed(err)
	}
	s.requests++
	binary.BigEndian.PutUint64(s.out[headerSize+4:], s.requests)
	if _, err := s.conn.Write(s.out[:]); err != nil {
		return s.failed(err)
	}
	if _, err := io.ReadFull(s.conn, s.in[:]); err != nil {
		return s.failed(err)
	}
	if s.in != s.out {
		return s.failed(errors.New("another message came back than was sent"))
	}
	return loadgen.Result{}
}

// extendDeadline keeps the connection's deadline between 1 and 17/16 timeouts away. Setting it for
// each request would cost more than all other measuring. The caller counts a reply after the
// timeout as timed out anyway.
func (s *session) extendDeadline() error {
	if time.Until(s.expires) >= s.driver.timeout {
		return nil
	}
	s.expires = time.Now().Add(s.driver.timeout + s.driver.timeout/16)
	return s.conn.SetDeadline(s.expires)
}

// failed drops the connection: otherwise the next request could get a late reply of this one.
func (s *session) failed(err error) loadgen.Result {
	if s.conn != nil {
		_ = s.conn.Close()
		s.setConn(nil)
	}
	outcome := loadgen.Error
	if errors.Is(err, os.ErrDeadlineExceeded) {
		outcome = loadgen.Timeout
	}
	return loadgen.Result{Outcome: outcome, Detail: err.Error()}
}

func (s *session) connect() error {
	dialer := net.Dialer{Timeout: s.driver.timeout}
	conn, err := dialer.DialContext(s.driver.ctx, "tcp", s.driver.address)
	if err != nil {
		return fmt.Errorf("connect to the echo server: %w", err)
	}
	s.expires = time.Time{}
	if !s.setConn(conn) {
		_ = conn.Close()
		return net.ErrClosed
	}
	return nil
}

func (s *session) setConn(conn net.Conn) bool {
	s.driver.mu.Lock()
	defer s.driver.mu.Unlock()
	if s.driver.closed && conn != nil {
		return false
	}
	s.conn = conn
	return true
}
