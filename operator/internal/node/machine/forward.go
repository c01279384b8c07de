package machine

import (
	"io"
	"net"
	"strconv"
	"sync"

	"golang.org/x/crypto/ssh"
)

// target of a direct-tcpip channel, as in RFC 4254, 7.2.
type target struct {
	Host       string
	Port       uint32
	OriginHost string
	OriginPort uint32
}

// direct connects the client to a port: ssh -L, -W, -J and -D.
func (c *connection) direct(offer ssh.NewChannel) {
	var to target
	if err := ssh.Unmarshal(offer.ExtraData(), &to); err != nil {
		_ = offer.Reject(ssh.ConnectionFailed, "the request cannot be read")
		return
	}
	c.dial(offer, "tcp", net.JoinHostPort(to.Host, strconv.FormatUint(uint64(to.Port), 10)))
}

// directUnix connects the client to a Unix socket.
func (c *connection) directUnix(offer ssh.NewChannel) {
	var to struct {
		Path     string
		Reserved string
		Port     uint32
	}
	if err := ssh.Unmarshal(offer.ExtraData(), &to); err != nil {
		_ = offer.Reject(ssh.ConnectionFailed, "the request cannot be read")
		return
	}
	c.dial(offer, "unix", to.Path)
}

func (c *connection) dial(offer ssh.NewChannel, network, address string) {
	conn, err := net.Dial(network, address)
	if err != nil {
		_ = offer.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	channel, requests, err := offer.Accept()
	if err != nil {
		conn.Close()
		return
	}
	go ssh.DiscardRequests(requests)
	join(channel, conn)
}

// forwardBuffer is how many bytes of a channel are copied at once. After each read, package ssh may
// announce to the client that it has room again.
const forwardBuffer = 256 << 10

// join copies both ways until both have ended. When one way ends, join passes only this end on: the
// other way may continue.
func join(channel ssh.Channel, conn net.Conn) {
	defer channel.Close()
	defer conn.Close()
	var ways sync.WaitGroup
	ways.Go(func() {
		_, _ = io.Copy(channel, conn)
		_ = channel.CloseWrite()
	})
	ways.Go(func() {
		// This hides a method of the connection that would copy with a buffer of its own.
		_, _ = io.CopyBuffer(struct{ io.Writer }{conn}, channel, make([]byte, forwardBuffer))
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	})
	ways.Wait()
}

// bound is the address of a tcpip-forward request, as in RFC 4254, 7.1.
type bound struct {
	Host string
	Port uint32
}

// listen opens a port for the client: ssh -R. Without an address, and for localhost, only the
// machine itself can reach the port, as with sshd's GatewayPorts no.
func (c *connection) listen(payload []byte) (ok bool, reply []byte) {
	var at bound
	if ssh.Unmarshal(payload, &at) != nil {
		return false, nil
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("localhost", strconv.FormatUint(uint64(at.Port), 10)))
	if err != nil {
		return false, nil
	}
	asked := at
	if address, isTCP := listener.Addr().(*net.TCPAddr); isTCP && at.Port == 0 {
		at.Port = uint32(address.Port)
		reply = ssh.Marshal(struct{ Port uint32 }{at.Port})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		listener.Close()
		return false, nil
	}
	c.forwards[key(at)] = listener
	go c.forward(listener, bound{Host: asked.Host, Port: at.Port})
	return true, reply
}

func (c *connection) unlisten(payload []byte) bool {
	var at bound
	if ssh.Unmarshal(payload, &at) != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	listener, ok := c.forwards[key(at)]
	if ok {
		listener.Close()
		delete(c.forwards, key(at))
	}
	return ok
}

func key(at bound) string { return net.JoinHostPort(at.Host, strconv.FormatUint(uint64(at.Port), 10)) }

func (c *connection) closeForwards() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, listener := range c.forwards {
		listener.Close()
	}
}

// forward passes every connection to the port on to the client.
func (c *connection) forward(listener net.Listener, at bound) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		from := target{Host: at.Host, Port: at.Port}
		if address, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
			from.OriginHost, from.OriginPort = address.IP.String(), uint32(address.Port)
		}
		go func() {
			channel, requests, err := c.conn.OpenChannel("forwarded-tcpip", ssh.Marshal(from))
			if err != nil {
				conn.Close()
				return
			}
			go ssh.DiscardRequests(requests)
			join(channel, conn)
		}()
	}
}
