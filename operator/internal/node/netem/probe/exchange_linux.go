package probe

import (
	crand "crypto/rand"
	"encoding/binary"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/node/launcher"
)

// exchange is one socket that asks many peers and one thread that reads their answers.
type exchange struct {
	config  Config
	host    uint64
	socket  *socket
	session uint64 // the reader ignores answers to the probes of an earlier session
	peers   []unix.Sockaddr
	index   map[netip.AddrPort]int
	reader  sync.WaitGroup
}

// openExchange opens a socket for these peers. The reader's thread calls take for every answer from
// the peer with this index. A peer may answer twice.
func openExchange(config Config, peers []netip.Addr, take func(peer int, sequence uint64, t trip, back int64)) (*exchange, error) {
	host, err := hostDigest()
	if err != nil {
		return nil, err
	}
	s, err := openSocket(0)
	if err != nil {
		return nil, err
	}
	var session [8]byte
	_, _ = crand.Read(session[:]) // it never fails
	e := &exchange{config: config, host: host, socket: s, session: binary.BigEndian.Uint64(session[:]), index: make(map[netip.AddrPort]int, len(peers))}
	for i, peer := range peers {
		target := netip.AddrPortFrom(peer.Unmap(), config.port())
		to, err := s.sockaddr(target)
		if err != nil {
			s.close()
			return nil, err
		}
		e.peers = append(e.peers, to)
		e.index[target] = i
	}
	e.reader.Go(func() { e.read(take) })
	return e, nil
}

// close returns when take is not called any more.
func (e *exchange) close() {
	e.socket.shutdown()
	e.reader.Wait()
	e.socket.close()
}

// send a probe.
func (e *exchange) send(peer int, sequence uint64) error {
	var buffer [packetSize]byte
	q := packet{kind: request, session: e.session, sequence: sequence, sent: launcher.Monotonic()}
	q.encode(&buffer, &e.config.Key)
	return e.socket.send(buffer[:], nil, e.peers[peer])
}

func (e *exchange) read(take func(peer int, sequence uint64, t trip, back int64)) {
	ownThread()
	var buffer [packetSize + 1]byte // one byte more, to recognise a longer packet
	var a packet
	for {
		n, from := e.socket.receive(buffer[:], nil)
		if n < 0 {
			return
		}
		back := launcher.Monotonic()
		if !a.decode(buffer[:n], answer, &e.config.Key) || a.session != e.session {
			continue
		}
		if peer, known := e.index[addressOf(from)]; known {
			take(peer, a.sequence, tripOf(&a, back, e.host, e.config.clock()), back)
		}
	}
}
