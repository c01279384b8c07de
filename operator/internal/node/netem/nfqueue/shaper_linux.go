package nfqueue

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/netem"
	"golang.org/x/sys/unix"
)

// The objects of this package in a network namespace.
const (
	tableName   = "assay_delay"
	queueNumber = 42330 // 0xa55a
)

// adoptWithin is how long Apply waits for the queue of a shaper that is about to end.
const adoptWithin = time.Second

// Shaper is netem's backend NFQueue. Its methods are not safe for concurrent use.
type Shaper struct {
	log     *slog.Logger
	rules   *rules
	status  *statusFile
	process *process
	bound   bool // the process has the queue
	closed  bool
}

var _ netem.Shaper = (*Shaper)(nil)

var errClosed = errors.New("the shaper is closed")

// Open opens what the Shaper needs in the network namespace of the calling thread, and starts the
// process that will delay packets. It changes nothing yet. The log gets one line when that process
// may not run at real-time priority.
func Open(log *slog.Logger) (*Shaper, error) { return open(tableName, queueNumber, log) }

func open(table string, number uint16, log *slog.Logger) (*Shaper, error) {
	r, err := openRules(table, number)
	if err != nil {
		return nil, err
	}
	status, err := openStatus(number)
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	p, err := start(number)
	if err != nil {
		return nil, errors.Join(err, r.close(), status.close())
	}
	return &Shaper{log: log, rules: r, status: status, process: p}, nil
}

// Backend implements netem.Shaper.
func (s *Shaper) Backend() shaping.Backend { return shaping.NFQueue }

// Apply implements netem.Shaper. It binds the queue before the rules send packets to it. It keeps
// the link of a former peer until its packets in flight have arrived.
func (s *Shaper) Apply(table shaping.Table) error {
	if err := table.Validate(); err != nil {
		return err
	}
	return s.apply(table)
}

func (s *Shaper) apply(table shaping.Table) error {
	if s.closed {
		return errClosed
	}
	asked, addresses := make(map[netip.Addr]shaping.Link, len(table)), make([]netip.Addr, 0, len(table))
	for _, peer := range table.Normalized() {
		asked[peer.Address] = peer.In
		addresses = append(addresses, peer.Address)
	}
	if err := s.bind(); err != nil {
		return err
	}
	if _, err := s.process.ask(request{Do: doLinks, Links: asked}); err != nil {
		return err
	}
	return s.rules.install(addresses)
}

// bind binds the queue to the process, unless it is bound already. The process of a shaper that was
// killed a moment ago may still have it.
func (s *Shaper) bind() error {
	if s.bound {
		return nil
	}
	for wait := time.Duration(0); ; wait += adoptWithin / 50 {
		answer, err := s.process.ask(request{Do: doBind})
		if err == nil {
			s.bound = true
			if answer.WhyNoPriority != "" {
				s.log.Warn("Packets are delayed without real-time priority; on a busy machine they may be released late", "has", answer.Scheduling, "why", answer.WhyNoPriority)
			}
			return nil
		}
		status, known, _ := s.status.read()
		if taken := known && status.port != answer.Port; !taken || !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EBUSY) {
			return usable(fmt.Errorf("packet queue %d: %w", s.status.number, err))
		}
		if wait >= adoptWithin {
			return fmt.Errorf("packet queue %d: bound by netlink port %d; is there another agent in this pod?", s.status.number, status.port)
		}
		time.Sleep(adoptWithin / 50)
	}
}

// Read implements netem.Shaper. It returns the table in force, if the kernel has its rules and its
// set, and our process has the queue. An error says what is missing, or which part another program
// has changed.
func (s *Shaper) Read() (shaping.Table, error) {
	if s.closed {
		return nil, errClosed
	}
	set, there, wrong, err := s.inKernel()
	if err != nil {
		return nil, err
	}
	if !s.bound {
		if there {
			wrong = append(wrong, fmt.Errorf("table %s is here, but packet queue %d is not bound by this agent: packets of %d peers are dropped until Apply or Remove",
				s.rules.name, s.status.number, len(set)))
		}
		return nil, errors.Join(wrong...)
	}
	answer, err := s.process.ask(request{Do: doReport})
	if err != nil {
		return nil, err
	}
	status, known, err := s.status.read()
	switch {
	case err != nil:
		return nil, err
	case !known:
		wrong = append(wrong, fmt.Errorf("packet queue %d has no listener: packets of peers are dropped", s.status.number))
	case status.port != answer.Port:
		wrong = append(wrong, fmt.Errorf("packet queue %d is bound by netlink port %d, want %d", s.status.number, status.port, answer.Port))
	}
	for _, peer := range answer.Table {
		if !set[peer.Address] {
			wrong = append(wrong, fmt.Errorf("peer %s is not in the kernel's set: its packets are not delayed", peer.Address))
		}
		delete(set, peer.Address)
	}
	for address := range set {
		wrong = append(wrong, fmt.Errorf("address %s is in the kernel's set and in no table: its packets are dropped", address))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return answer.Table, nil
}

// inKernel returns the addresses whose packets are queued, whether any table of ours exists, and
// its errors.
func (s *Shaper) inKernel() (set map[netip.Addr]bool, there bool, wrong []error, err error) {
	set = map[netip.Addr]bool{}
	for _, f := range families {
		is, err := s.rules.find(f)
		if err != nil {
			return nil, false, nil, err
		}
		there = there || is.table
		wrong = append(wrong, is.wrong)
		for address := range is.addresses {
			set[address] = true
		}
	}
	return set, there, wrong, nil
}

// Counters implements netem.Shaper.
func (s *Shaper) Counters() (map[netip.Addr]netem.Counters, error) {
	if s.closed {
		return nil, errClosed
	}
	answer, err := s.process.ask(request{Do: doReport})
	return answer.Counters, err
}

// Health implements netem.Shaper.
func (s *Shaper) Health() (netem.Health, error) {
	if s.closed {
		return netem.Health{}, errClosed
	}
	answer, err := s.process.ask(request{Do: doReport})
	if err != nil {
		return netem.Health{}, err
	}
	status, _, err := s.status.read()
	if err != nil {
		return netem.Health{}, err
	}
	h := netem.Health{LateP99: answer.LateP99, Late: answer.Late}
	var why []string
	for _, c := range []struct {
		what  string
		count uint64
	}{
		{"the queue was full", status.queueFull},
		{"the socket's buffer was full", status.bufferFull},
		{"in flight when a chain or an interface was removed", answer.Flushed},
		{"from an address in no table", answer.Unknown},
		{"too many in flight", answer.Crowded},
		{"not understood", answer.Malformed},
	} {
		if h.Dropped += c.count; c.count > 0 {
			why = append(why, fmt.Sprintf("%s: %d", c.what, c.count))
		}
	}
	h.DroppedWhy = strings.Join(why, "; ")
	return h, nil
}

// Remove implements netem.Shaper. It first removes the rules. When the packets in flight have
// arrived, it removes the tables and the queue.
func (s *Shaper) Remove() error {
	if s.closed {
		return errClosed
	}
	if err := s.rules.stop(); err != nil {
		return err
	}
	if s.bound {
		if err := s.drain(); err != nil {
			return err
		}
	}
	if err := s.rules.remove(); err != nil {
		return err
	}
	if !s.bound || s.process.ended() {
		s.bound = false
		return nil
	}
	for _, r := range []request{{Do: doLinks}, {Do: doUnbind}} {
		if _, err := s.process.ask(r); err != nil {
			return err
		}
	}
	if status, known, err := s.status.read(); err != nil || known {
		return errors.Join(err, fmt.Errorf("packet queue %d is still bound, by netlink port %d, after its removal", s.status.number, status.port))
	}
	s.bound = false
	return nil
}

// drain waits until no packet is in flight; no rule sends more. If no process is left to release
// packets, the removal of the queue drops them.
func (s *Shaper) drain() error {
	const longest = shaping.MaxDelay + shaping.MaxBacklog + answerWithin // of any table, since packets in flight may come from an earlier one
	late := time.After(longest)
	for {
		status, _, err := s.status.read()
		if err != nil || status.waiting == 0 {
			return err
		}
		select {
		case <-s.process.gone:
			return nil
		case <-late:
			return fmt.Errorf("%d packets are still in packet queue %d after %v", status.waiting, s.status.number, longest)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Close implements netem.Shaper. From now on the kernel drops the packets of peers, even those in
// flight, unless Remove came before.
func (s *Shaper) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(s.process.stop(), s.rules.close(), s.status.close())
}
