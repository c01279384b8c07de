package client

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"assay.dev/assay/systems/awkward/internal/wire"
)

// reply is one correct answer, or the reason why a link is useless from now on.
type reply struct {
	seq uint64
	err error
}

// session has one client's connections to all replicas.
type session struct {
	client  int
	quorum  int
	seq     uint64
	links   []net.Conn // nil: given up
	replies chan reply
	done    chan struct{}
}

// dial connects to all replicas, once. A replica that cannot be reached is fatal, as in the
// original systems. The session is nil if the context ended first.
func dial(ctx context.Context, id int, p *process) (*session, error) {
	s := &session{
		client: id, quorum: p.Config.Quorum(),
		replies: make(chan reply, len(p.addrs)), done: make(chan struct{}),
	}
	for i, addr := range p.addrs {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp4", addr.String())
		if err != nil {
			s.close()
			if ctx.Err() != nil {
				return nil, nil //nolint:nilerr // ended before it was connected is an end like any other
			}
			return nil, fmt.Errorf("connect to replica %d: %w", i, err)
		}
		s.links = append(s.links, conn)
		go s.receive(conn, i, p)
	}
	return s, nil
}

func (s *session) close() {
	close(s.done)
	for _, link := range s.links {
		if link != nil {
			link.Close()
		}
	}
}

// receive reads the answers of one replica. A replica answers in order, so the n-th line belongs to
// operation n.
func (s *session) receive(conn net.Conn, replica int, p *process) {
	lines := bufio.NewReaderSize(conn, wire.MaxLine)
	for seq := uint64(1); ; seq++ {
		line, err := lines.ReadString('\n')
		if err != nil {
			return // a replica that is gone gives no answers; the quorum must come from the others
		}
		op := wire.Op{Client: s.client, Seq: seq}
		err = op.CheckReply(strings.TrimSuffix(line, "\n"), replica, p.publics[replica])
		select {
		case s.replies <- reply{seq: seq, err: err}:
		case <-s.done:
			return
		}
		if err != nil {
			return
		}
	}
}

// commit carries out one operation: it is over when a quorum has answered. Any wrong answer is
// fatal.
func (s *session) commit(ctx context.Context) error {
	s.seq++
	request := wire.Op{Client: s.client, Seq: s.seq}.String() + "\n"
	for i, link := range s.links {
		if link == nil {
			continue
		}
		// If a replica does not accept a line of 30 bytes, it has not read for megabytes, and the
		// client gives it up.
		if err := link.SetWriteDeadline(time.Now().Add(opTimeout)); err != nil {
			return fmt.Errorf("set deadline: %w", err)
		}
		if _, err := io.WriteString(link, request); err != nil {
			link.Close()
			s.links[i] = nil
		}
	}
	timeout := time.NewTimer(opTimeout)
	defer timeout.Stop()
	for answers := 0; answers < s.quorum; {
		select {
		case r := <-s.replies:
			if r.err != nil {
				return fmt.Errorf("operation %d: %w", r.seq, r.err)
			}
			if r.seq == s.seq { // other replies are late answers to finished operations
				answers++
			}
		case <-timeout.C:
			return fmt.Errorf("operation %d: only %d of %d replicas answered within %s", s.seq, answers, s.quorum, opTimeout)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
