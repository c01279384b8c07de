package transport

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"assay.dev/assay/systems/basil/internal/wire"
)

// queue holds frames for one connection.
type queue struct{ frames chan []byte }

func newQueue() *queue { return &queue{frames: make(chan []byte, queueLength)} }

// put drops the frame if the queue is full: the receiver is silent or far behind, and the sender
// resends the frame if it still matters.
func (q *queue) put(frame []byte) {
	select {
	case q.frames <- frame:
	default:
	}
}

func (q *queue) drain() {
	for {
		select {
		case <-q.frames:
		default:
			return
		}
	}
}

func encodeFrame(m wire.Message) []byte {
	b := wire.Marshal(make([]byte, 4, 512), m)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

func readFrame(r *bufio.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return nil, fmt.Errorf("frame of %d bytes: %w", n, wire.ErrMalformed)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}

var (
	pingFrame = encodeFrame(&wire.Ping{})
	pongFrame = encodeFrame(&wire.Pong{})
)

// serve sends and receives frames until the connection breaks or stop is closed. With ping, this
// end checks whether the other is alive.
func serve(conn net.Conn, q *queue, ping bool, stop <-chan struct{}, handle func(wire.Message)) {
	ended := make(chan struct{})
	var writer sync.WaitGroup
	writer.Add(1)
	go func() {
		defer writer.Done()
		write(conn, q, ping, stop, ended)
		conn.Close()
	}()
	timeout := idleTimeout
	if ping {
		timeout = readTimeout
	}
	r := bufio.NewReaderSize(conn, 64<<10)
	for {
		if r.Buffered() == 0 {
			conn.SetReadDeadline(time.Now().Add(timeout))
		}
		b, err := readFrame(r)
		if err != nil {
			break
		}
		m, err := wire.Unmarshal(b)
		if err != nil {
			break // not our protocol: reconnect
		}
		switch m.(type) {
		case *wire.Ping:
			q.put(pongFrame)
		case *wire.Pong:
		default:
			handle(m)
		}
	}
	close(ended)
	conn.Close()
	writer.Wait()
}

func write(conn net.Conn, q *queue, ping bool, stop, ended <-chan struct{}) {
	w := bufio.NewWriterSize(conn, 64<<10)
	var tick <-chan time.Time
	if ping {
		t := time.NewTicker(pingInterval)
		defer t.Stop()
		tick = t.C
	}
	for {
		var frame []byte
		select {
		case frame = <-q.frames:
		case <-tick:
			frame = pingFrame
		case <-stop:
			return
		case <-ended:
			return
		}
		conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := w.Write(frame); err != nil {
			return
		}
		if len(q.frames) > 0 {
			continue // one system call for all queued frames
		}
		if err := w.Flush(); err != nil {
			return
		}
	}
}
