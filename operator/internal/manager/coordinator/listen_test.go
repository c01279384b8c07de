package coordinator

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
)

// Each connection once kept a buffer as large as its agent's largest report. Now the coordinator
// allows no frames larger than HTTP/2 demands.
func TestConnectionsKeepSmallBuffers(t *testing.T) {
	lender := httptest.NewTLSServer(http.NotFoundHandler()) // lends its certificate
	defer lender.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	s := &Server{Handler: http.NotFoundHandler(), Listener: listener, Log: logr.Discard(), GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return &lender.TLS.Certificates[0], nil
	}}
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	// This is the preface of HTTP/2, and settings that change nothing.
	if _, err := conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
		t.Fatal(err)
	}
	const header, initialWindowSize, maxFrameSize = 9, 4, 5
	head := make([]byte, header)
	if _, err := io.ReadFull(conn, head); err != nil {
		t.Fatal(err)
	}
	settings := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	if _, err := io.ReadFull(conn, settings); err != nil {
		t.Fatal(err)
	}
	frame, window := uint32(1<<14), uint32(1<<16-1) // the defaults of HTTP/2
	for ; len(settings) >= 6; settings = settings[6:] {
		switch value := binary.BigEndian.Uint32(settings[2:]); binary.BigEndian.Uint16(settings) {
		case maxFrameSize:
			frame = value
		case initialWindowSize:
			window = value
		}
	}
	if frame > frameLimit {
		t.Errorf("a frame may have %d bytes, and each connection keeps as many; want %d at most", frame, frameLimit)
	}
	if window > unreadLimit/2 {
		t.Errorf("an agent may send %d bytes of a report that nobody reads yet; want %d at most", window, unreadLimit/2)
	}
}
