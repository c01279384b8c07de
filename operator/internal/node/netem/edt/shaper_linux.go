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
	// drainEvery is how often Remove checks for packets in flight.
	drainEvery = 2 * time.Millisecond
)

// Shaper is the backend EDT for one device.
type Shaper struct {
	name   string
	device int
	handle *netlink.Handle
	tc     tc

	program *program // nil before the first Apply
	// before and original are the device's qdiscs and gso_max_segs before the first Apply. before
	// is nil when the device was already shaped.
	before   []qdisc
	original uint32
	// carried are the counters of links from earlier programs of this process.
	carried map[netip.Addr]countersValue
}

var _ netem.Shaper = (*Shaper)(nil)

// Open finds the device in the network namespace of the calling thread. The Shaper belongs to that
// namespace. Open changes nothing yet.
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

// Close releases the files of this process. The device stays shaped.
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

// Apply implements netem.Shaper. It uses Out of each Peer. Packets in flight keep their time,
// unless another program has removed a qdisc of this package.
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
	// The clsact is added second and removed first. So a clsact without our fq never is one of
	// ours.
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

// run makes the filter run a program with this table. The maps are complete before the filter is
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

// prove reads the applied table back.
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

// segments sets the device's gso_max_segs for the table.
func (s *Shaper) segments(link netlink.Link, table shaping.Table, original uint32) error {
	want := original
	if single(table) {
		want = 1
	}
	// Kernels before Linux 3.14 report no such limit and cannot set it.
	if now := link.Attrs().GSOMaxSegs; now == want || want == 0 {
		return nil
	}
	if err := s.handle.LinkSetGSOMaxSegs(link, int(want)); err != nil {
		return usable(fmt.Sprintf("set gso_max_segs to %d", want), err)
	}
	return nil
}

// segmentsBefore is the device's gso_max_segs before this package changed it.
func (s *Shaper) segmentsBefore(t tree) uint32 {
	if s.before != nil {
		return s.original
	}
	return t.original()
}

// single reports whether packets have to pass one by one. They have to if each may be lost
// separately, or if a super-packet would exceed the rate.
func single(table shaping.Table) bool {
	return slices.ContainsFunc(table, func(peer shaping.Peer) bool {
		return peer.Out.Loss > 0 || peer.Out.RateOrDefault() != shaping.DefaultRate
	})
}

// outgoing is the part of a table that this backend uses, in the form that Read returns.
func outgoing(table shaping.Table) shaping.Table {
	out := make(shaping.Table, 0, len(table))
	for _, peer := range table.Normalized() {
		out = append(out, shaping.Peer{Address: peer.Address, Out: peer.Out})
	}
	return out
}

// Read implements netem.Shaper. It reads the links from the map. It returns an error when a qdisc,
// the filter, its program or gso_max_segs differs from the state after Apply. It also returns an
// error for a device that another process has shaped and Apply has not adopted.
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

// Counters implements netem.Shaper. The counters of a link begin when this process first applies
// it, and end when it leaves the table.
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

// Health implements netem.Shaper. It counts since the creation of the fq qdisc, perhaps by an
// earlier process. The kernel does not report how late it releases packets.
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

// Remove implements netem.Shaper. It leaves the objects of other programs alone. If the device is
// gone, there is nothing to restore.
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
		return nil // the device is as this process found it
	}
	if err := s.proveRemoved(original); err != nil {
		return err
	}
	s.before = nil
	return nil
}

// takeDown removes the objects of this package in the order that loses the fewest packets. Without
// the filter, the kernel delays no more packets. When the packets in flight have left, takeDown
// removes the rest. Deleting a clsact empties the root qdisc, so takeDown does that only then.
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

// drain waits until fq has sent all its packets, at most for the longest time that it can keep one.
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
// process knows that state.
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
