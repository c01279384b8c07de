package coordinator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
)

// Server listens for the agents. It runs in every manager: a manager that does not lead then
// answers that it does not, instead of giving no answer.
type Server struct {
	Handler http.Handler
	// Address to listen on. If Listener is set, the server uses it instead.
	Address  string
	Listener net.Listener
	// GetCertificate returns the certificate for a new connection. Connections stay open when the
	// certificate is renewed.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Log            logr.Logger
}

// NeedLeaderElection returns false: see Server.
func (s *Server) NeedLeaderElection() bool { return false }

// shutdownTimeout is how long a stopping manager waits for answers that are being written. Held
// answers are dropped: their agents ask again.
const shutdownTimeout = 2 * time.Second

const (
	// frameLimit is the smallest limit that HTTP/2 allows. Each connection keeps a buffer of its
	// largest frame, which by default may be as large as a report. The buffers of all agents of a
	// trial would grow with the square of the number of its pods.
	frameLimit = 16 << 10
	// unreadLimit is how much of a report an agent may send before the manager reads it. The
	// default is a megabyte, and all agents of a trial send at once.
	unreadLimit = 64 << 10
)

// Start serves until the context ends.
func (s *Server) Start(ctx context.Context) error {
	server := &http.Server{
		Addr: s.Address, Handler: s.Handler, ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{GetCertificate: s.GetCertificate, MinVersion: tls.VersionTLS13},
		HTTP2:     &http.HTTP2Config{MaxReadFrameSize: frameLimit, MaxReceiveBufferPerConnection: unreadLimit, MaxReceiveBufferPerStream: unreadLimit / 2},
	}
	serving := make(chan error, 1)
	go func() {
		if s.Listener != nil {
			serving <- server.ServeTLS(s.Listener, "", "")
			return
		}
		serving <- server.ListenAndServeTLS("", "")
	}()
	s.Log.Info("Listening for agents", "address", s.Address)
	select {
	case err := <-serving:
		return fmt.Errorf("listen for agents: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(stop); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stop the coordinator: %w", err)
	}
	return server.Close()
}
