package echo

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

// Serve sends every message on the listener's connections back, until the context ends.
func Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept a connection: %w", err)
		}
		go serveConn(ctx, conn)
	}
}

// serveConn sends one connection's messages back. It ends at the first error, which the client
// notices.
func serveConn(ctx context.Context, conn net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 4<<10)
	buf := make([]byte, headerSize+bodySize)
	for {
		header, err := in.Peek(headerSize)
		if err != nil {
			return
		}
		n := headerSize + int(binary.BigEndian.Uint32(header))
		if n > headerSize+MaxBody {
			return
		}
		if n > len(buf) {
			buf = make([]byte, n)
		}
		if _, err := io.ReadFull(in, buf[:n]); err != nil {
			return
		}
		if _, err := conn.Write(buf[:n]); err != nil {
			return
		}
	}
}
