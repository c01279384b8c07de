package edt

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/netem"
)

const (
	// answerWithin is how long the kernel may take for one answer.
	answerWithin = 10 * time.Second
	// drainEvery is how often Remove looks whether packets are still in flight.
	drainEvery = 2 * time.Millisecond
)

// Shaper is the backend EDT for one device.
type Shaper struct {
	name   string
	device int
	handle *netlink.Handle
	tc     tc

	program *program // nil before the first Apply
	// before and original are the device's qdiscs and gso_max_segs before the first Apply; nil when
	// it found a shaped device.
	before   []qdisc
	original uint32
	// carried are the counters of links from programs that this one's program replaced.
	carried map[netip.Addr]countersValue
}

var _ netem.Shaper = (*Shaper)(nil)

// Open finds the device in the network namespace of the calling thread, to which the Shaper then
// belongs. Nothing is changed yet.
func Open(device string) (*Shaper, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	socket, err := nl.GetNetlinkSocketAt(netns.None(), netns.None(), unix.NETLINK_ROUTE)
	if err != nil {
		handle.Close()
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	s := &Shaper{
		name: device, handle: handle, tc: tc{sockets: map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: socket}}}, carried: map[netip.Addr]countersValue{},
	}
	limit := unix.NsecToTimeval(int64(answerWithin))
	if err := errors.Join(handle.SetSocketTimeout(answerWithin), socket.SetReceiveTimeout(&limit), socket.SetSendTimeout(&limit)); err != nil {
		s.Close()
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	link, err := handle.LinkByName(device)
	switch {
	case err != nil:
		s.Close()
		return nil, fmt.Errorf("device %s: %w", device, err)
	case link.Attrs().RawFlags&unix.IFF_LOOPBACK != 0:
		s.Close()
		return nil, fmt.Errorf("device %s is the loopback device, which carries nothing to other pods", device)
	}
	s.device = link.Attrs().Index
	return s, nil
}

// Backend is EDT.
func (s *Shaper) Backend() shaping.Backend { return shaping.EDT }

// Close gives up the process's hold. The device stays shaped.
func (s *Shaper) Close() error {
	if s.program != nil {
		s.program.close()
		s.program = nil
	}
	s.handle.Close()
	for _, socket := range s.tc.sockets {
		socket.Close()
	}
	return nil
}

// Apply implements netem.Shaper. It uses each Peer's Out. Packets in flight keep their time, except
// where another program removed a qdisc of ours.
func (s *Shaper) Apply(table shaping.Table) error {
	if err := table.Validate(); err != nil {
		return err
	}
	want := outgoing(table)
	t, err := s.look()
	if err != nil {
		return err
	}
	if err := t.foreign(); err != nil {
		return err
	}
	if t.untouched() {
		s.before, s.original = t.qdiscs, t.link.Attrs().GSOMaxSegs
	}
	original := s.segmentsBefore(t)
	// The clsact comes second and goes first, so that one without our fq is never ours.
	if !t.fq() || t.root.wrong() != nil {
		if err := s.tc.setFQ(s.device, t.fq()); err != nil {
			return fmt.Errorf("device %s: %w", s.name, err)
		}
	}
	if t.ingress == nil {
		if err := s.addClsact(); err != nil {
			return fmt.Errorf("device %s: %w", s.name, err)
		}
	}
	if err := s.segments(t.link, want, original); err != nil {
		return fmt.Errorf("device %s: %w", s.name, err)
	}
	if err := s.run(t, want, original); err != nil {
		return fmt.Errorf("device %s: %w", s.name, err)
	}
	return s.prove(want)
}

// run makes the filter run a program that holds the table. The maps are complete before a filter is
// attached.
func (s *Shaper) run(t tree, want shaping.Table, original uint32) error {
	p := s.program
	if p == nil || p.capacity < len(want) {
		var err error
		if p, err = load(len(want)); err != nil {
			return err
		}
	}
	if err := p.write(want); err != nil {
		if p != s.program {
			p.close()
		}
		return err
	}
	if t.filter == nil || t.filter.Id != int(p.id) || !t.filter.DirectAction {
		if err := s.attach(p, original); err != nil {
			if p != s.program {
				p.close()
			}
			return err
		}
	}
	if old := s.program; old != nil && old != p {
		defer old.close()
		counted, err := old.counters()
		if err != nil {
			return err
		}
		for address, c := range counted {
			s.carried[address] = s.carried[address].plus(c)
		}
	}
	s.program = p
	for address := range s.carried {
		if !slices.ContainsFunc(want, func(peer shaping.Peer) bool { return peer.Address == address }) {
			delete(s.carried, address)
		}
	}
	return nil
}

// prove reads back what was applied.
func (s *Shaper) prove(want shaping.Table) error {
	got, err := s.Read()
	if err != nil {
		return fmt.Errorf("read back what was applied: %w", err)
	}
	for i := range want {
		want[i].Out = valueOf(want[i].Out).link()
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("device %s: read back %v after %v was applied", s.name, got, want)
	}
	return nil
}

// segments sets the device's gso_max_segs to what the table needs.
func (s *Shaper) segments(link netlink.Link, table shaping.Table, original uint32) error {
	want := original
	if single(table) {
		want = 1
	}
	// A kernel that does not tell, before Linux 3.14, has none to set.
	if now := link.Attrs().GSOMaxSegs; now == want || want == 0 {
		return nil
	}
	if err := s.handle.LinkSetGSOMaxSegs(link, int(want)); err != nil {
		return usable(fmt.Sprintf("set gso_max_segs to %d", want), err)
	}
	return nil
}

// segmentsBefore is the device's gso_max_segs before us.
func (s *Shaper) segmentsBefore(t tree) uint32 {
	if s.before != nil {
		return s.original
	}
	return t.original()
}

// single reports whether packets have to pass one by one: where each is lost by itself, or a rate
// is asked for that a super-packet would overshoot.
func single(table shaping.Table) bool {
	return slices.ContainsFunc(table, func(peer shaping.Peer) bool {
		return peer.Out.Loss > 0 || peer.Out.RateOrDefault() != shaping.DefaultRate
	})
}

// outgoing is what of a table this backend uses, in the form in which Read returns it.
func outgoing(table shaping.Table) shaping.Table {
	out := make(shaping.Table, 0, len(table))
	for _, peer := range table.Normalized() {
		out = append(out, shaping.Peer{Address: peer.Address, Out: peer.Out})
	}
	return out
}

// Read implements netem.Shaper: links from the map, and an error when a qdisc, the filter, its
// program or the device's gso_max_segs is not as Apply left it. A device that another process
// shaped, and that was not adopted by Apply, is an error.
func (s *Shaper) Read() (shaping.Table, error) {
	t, err := s.look()
	if err != nil {
		return nil, err
	}
	if t.untouched() {
		return nil, nil
	}
	if err := errors.Join(t.foreign(), t.missing(s.program)); err != nil {
		return nil, err
	}
	held, err := s.program.held()
	if err != nil {
		return nil, err
	}
	table := make(shaping.Table, 0, len(held))
	for address, value := range held {
		table = append(table, shaping.Peer{Address: address, Out: value.link()})
	}
	if now := t.link.Attrs().GSOMaxSegs; single(table) && now > 1 {
		return nil, fmt.Errorf("device %s: gso_max_segs is %d instead of 1", s.name, now)
	}
	return outgoing(table), nil
}

// Counters implements netem.Shaper. They begin when a link is first applied by this process, and
// end when it leaves the table.
func (s *Shaper) Counters() (map[netip.Addr]netem.Counters, error) {
	counted, err := s.count()
	if err != nil {
		return nil, err
	}
	counters := map[netip.Addr]netem.Counters{}
	for address, c := range counted {
		counters[address] = netem.Counters{Packets: c.Packets, Bytes: c.Bytes, Lost: c.Lost, Overlimit: c.Overlimit}
	}
	return counters, nil
}

func (s *Shaper) count() (map[netip.Addr]countersValue, error) {
	if s.program == nil {
		return nil, nil
	}
	counted, err := s.program.counters()
	if err != nil {
		return nil, err
	}
	for address, c := range counted {
		counted[address] = c.plus(s.carried[address])
	}
	return counted, nil
}

// Health implements netem.Shaper. It counts since the fq qdisc was created; that is, what happened
// under a process before this one, too. The kernel does not say how late it releases packets.
func (s *Shaper) Health() (netem.Health, error) {
	t, err := s.look()
	if err != nil {
		return netem.Health{}, err
	}
	if !t.fq() {
		return netem.Health{}, fmt.Errorf("device %s: our root qdisc fq is missing", s.name)
	}
	statistics, err := t.root.fqStatistics()
	if err != nil {
		return netem.Health{}, fmt.Errorf("device %s: %w", s.name, err)
	}
	counted, err := s.count()
	if err != nil {
		return netem.Health{}, err
	}
	var failed uint64
	for _, c := range counted {
		failed += c.Failed
	}
	var why []string
	for _, counter := range []struct {
		name  string
		value uint64
	}{
		{"fq dropped", uint64(statistics.dropped)},
		{"of these flows_plimit", statistics.flowLimit},
		{"horizon_drops", statistics.horizonDrop},
		{"sent at once for want of memory", statistics.allocationErrors},
		{"no memory for a copy", failed},
	} {
		if counter.value > 0 {
			why = append(why, fmt.Sprintf("%s %d", counter.name, counter.value))
		}
	}
	return netem.Health{Dropped: uint64(statistics.dropped) + statistics.allocationErrors + failed, DroppedWhy: strings.Join(why, ", ")}, nil
}

// Remove implements netem.Shaper. It leaves alone what is not ours. A device that is gone has
// nothing to restore.
func (s *Shaper) Remove() error {
	t, err := s.look()
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil {
		return err
	}
	original := s.segmentsBefore(t)
	if !t.untouched() {
		if err := s.takeDown(t, original); err != nil {
			return fmt.Errorf("device %s: %w", s.name, err)
		}
	}
	if s.program != nil {
		s.program.close()
		s.program = nil
	}
	clear(s.carried)
	if t.untouched() && s.before == nil {
		return nil // as this process found it
	}
	if err := s.proveRemoved(original); err != nil {
		return err
	}
	s.before = nil
	return nil
}

// takeDown removes what is ours, in the order that loses the least. Without the filter, packets are
// not delayed any more; when those in flight have left, the rest can go. Deleting a clsact empties
// the root qdisc, so it would be too early before.
func (s *Shaper) takeDown(t tree, original uint32) error {
	if t.filter != nil {
		if err := s.handle.FilterDel(t.filter); err != nil {
			return usable("delete the filter", err)
		}
	}
	if err := s.segments(t.link, nil, original); err != nil {
		return err
	}
	if t.fq() {
		if err := s.drain(); err != nil {
			return err
		}
	}
	if t.ingress != nil && t.ingress.kind == "clsact" && len(t.others) == 0 {
		if err := s.tc.remove(s.device, *t.ingress); err != nil {
			return err
		}
	}
	if t.fq() {
		return s.tc.remove(s.device, *t.root)
	}
	return nil
}

// drain waits until fq has sent what it keeps: no longer than any packet can be kept.
func (s *Shaper) drain() error {
	deadline := time.Now().Add(shaping.MaxDelay + shaping.MaxBacklog)
	for time.Now().Before(deadline) {
		qdiscs, err := s.tc.qdiscs(s.device)
		if err != nil {
			return err
		}
		fq := slices.IndexFunc(qdiscs, qdisc.ours)
		if fq < 0 {
			return nil
		}
		statistics, err := qdiscs[fq].fqStatistics()
		if err != nil || statistics.queued == 0 {
			return err
		}
		time.Sleep(drainEvery)
	}
	return nil
}

// proveRemoved reads back that the device is as it was before the first Apply, as far as this
// process saw it then.
func (s *Shaper) proveRemoved(original uint32) error {
	t, err := s.look()
	if err != nil {
		return err
	}
	var wrong []error
	if !t.plain() {
		wrong = append(wrong, fmt.Errorf("its root qdisc is %v and not the kernel's default", t.root))
	}
	if t.ingress != nil {
		wrong = append(wrong, fmt.Errorf("it has a qdisc %v", t.ingress))
	}
	if s.before != nil && !slices.EqualFunc(s.before, t.qdiscs, qdisc.equal) {
		wrong = append(wrong, fmt.Errorf("its qdiscs are %v and were %v", t.qdiscs, s.before))
	}
	if now := t.link.Attrs().GSOMaxSegs; now != original {
		wrong = append(wrong, fmt.Errorf("its gso_max_segs is %d and was %d", now, original))
	}
	if err := t.wrap(wrong); err != nil {
		return fmt.Errorf("after the removal: %w", err)
	}
	return nil
}
