package machine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// ServerOptions of a machine's SSH server.
type ServerOptions struct {
	// HostKey of the machine, and AuthorizedKey, the only key that it accepts.
	HostKey       ssh.Signer
	AuthorizedKey ssh.PublicKey
	// User is the only user name that it accepts. All processes have the numeric user of the
	// server.
	User string
	// Home is the directory that commands start in.
	Home string
	// Shell runs commands.
	Shell string
	// Env of commands, NAME=value. HOME, USER, LOGNAME, SHELL and the variables of SSH itself are
	// added.
	Env []string
	// Recorder gets every session. Record is the file that it writes to, and other machines may ask
	// for it. Empty: they may not.
	Recorder *Recorder
	Record   string
}

// Server answers SSH as OpenSSH's sshd does: exec, shell, pty, environment, signals, exit status,
// sftp, and forwarding of ports.
type Server struct {
	options ServerOptions
	config  *ssh.ServerConfig

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	over  bool
}

// GarbagePercent is for runtime/debug.SetGCPercent in the process of a server: how far its heap may
// grow beyond the live data.
const GarbagePercent = 400

// loginGrace is how long a client may take to log in, as with sshd.
const loginGrace = 2 * time.Minute

// errRefused is the error of a connection that is not accepted. The client gets no other reason, as
// from sshd.
var errRefused = errors.New("permission denied")

// NewServer makes a server.
func NewServer(options ServerOptions) *Server {
	s := &Server{options: options, conns: map[net.Conn]struct{}{}}
	accepted := options.AuthorizedKey.Marshal()
	s.config = &ssh.ServerConfig{
		ServerVersion: "SSH-2.0-Assay",
		MaxAuthTries:  6, // as sshd
		PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if meta.User() != options.User || !slices.Equal(key.Marshal(), accepted) {
				return nil, fmt.Errorf("%w to %s with the key %s", errRefused, meta.User(), ssh.FingerprintSHA256(key))
			}
			return &ssh.Permissions{}, nil
		},
	}
	s.config.AddHostKey(options.HostKey)
	return s
}

// Serve accepts connections until ctx is done. Then it closes them, and does not stop processes.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() {
		listener.Close()
		s.closeAll()
	})
	defer stop()
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept SSH: %w", err)
		case err != nil:
			continue // such as too many open files: the next attempt may succeed
		}
		if !s.track(conn) {
			conn.Close()
			return nil
		}
		go s.converse(conn)
	}
}

func (s *Server) track(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.conns[conn] = struct{}{}
	return true
}

func (s *Server) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for conn := range s.conns {
		conn.Close()
	}
}

// converse handles one connection from its beginning to its end.
func (s *Server) converse(conn net.Conn) {
	defer func() {
		s.mu.Lock()
		delete(s.conns, conn)
		s.mu.Unlock()
		conn.Close()
	}()
	_ = conn.SetDeadline(time.Now().Add(loginGrace))
	client, channels, requests, err := ssh.NewServerConn(ahead{Conn: conn, buffer: bufio.NewReaderSize(conn, readAhead)}, s.config)
	if err != nil {
		// A port scan does not try to log in, and neither does a gate that only checks whether the
		// port is open.
		var refused *ssh.ServerAuthError
		if errors.As(err, &refused) && len(refused.Errors) > 0 {
			s.options.Recorder.refused(conn.RemoteAddr(), offered(refused))
		}
		return
	}
	_ = conn.SetDeadline(time.Time{})
	c := &connection{server: s, conn: client, forwards: map[string]net.Listener{}}
	var parts sync.WaitGroup
	defer parts.Wait()
	defer c.closeForwards()
	parts.Go(func() { c.answer(requests) })
	for offer := range channels {
		parts.Go(func() { c.open(offer) })
	}
}

// readAhead is how many bytes of a connection are read at once: some packets of a copy.
const readAhead = 128 << 10

// ahead is a connection that is read in large parts. Package ssh makes two reads for each packet.
type ahead struct {
	net.Conn
	buffer *bufio.Reader
}

func (c ahead) Read(to []byte) (int, error) { return c.buffer.Read(to) }

// offered is the last login attempt of a client.
func offered(err *ssh.ServerAuthError) string {
	for _, e := range slices.Backward(err.Errors) {
		if errors.Is(e, errRefused) {
			return strings.TrimPrefix(e.Error(), errRefused.Error()+" ")
		}
	}
	return "without a key"
}

// connection of one client.
type connection struct {
	server *Server
	conn   *ssh.ServerConn

	mu       sync.Mutex
	forwards map[string]net.Listener // for ports that the client has asked for, by address
	closed   bool
}

// open answers a channel that the client opens.
func (c *connection) open(offer ssh.NewChannel) {
	switch offer.ChannelType() {
	case "session":
		channel, requests, err := offer.Accept()
		if err != nil {
			return
		}
		newSession(c, channel).serve(requests)
	case "direct-tcpip":
		c.direct(offer)
	case "direct-streamlocal@openssh.com":
		c.directUnix(offer)
	case recordChannel:
		c.tellRecord(offer)
	default:
		_ = offer.Reject(ssh.UnknownChannelType, "this machine does not know this type of channel")
	}
}

// answer answers requests about the connection as a whole.
func (c *connection) answer(requests <-chan *ssh.Request) {
	for r := range requests {
		var ok bool
		var payload []byte
		switch r.Type {
		case "tcpip-forward":
			ok, payload = c.listen(r.Payload)
		case "cancel-tcpip-forward":
			ok = c.unlisten(r.Payload)
		case "keepalive@openssh.com":
			ok = true
		}
		if r.WantReply {
			_ = r.Reply(ok, payload)
		}
	}
}

// tellRecord sends the machine's record to the machine that asks.
func (c *connection) tellRecord(offer ssh.NewChannel) {
	c.server.options.Recorder.count()
	text, err := os.ReadFile(c.server.options.Record)
	if err != nil {
		_ = offer.Reject(ssh.ConnectionFailed, "this machine has no record")
		return
	}
	channel, requests, err := offer.Accept()
	if err != nil {
		return
	}
	defer channel.Close()
	go ssh.DiscardRequests(requests)
	_, _ = channel.Write(text)
}
