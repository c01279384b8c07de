package htb

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/netem"
)

// answerWithin is how long the kernel may take for one answer.
const answerWithin = 10 * time.Second

// Shaper is netem's backend Netem for one interface. Its methods are not safe for concurrent use.
type Shaper struct {
	link    netlink.Link
	netlink *netlink.Handle
	socket  *nl.NetlinkSocket // the same, for calls that the library lacks

	// The counters' values before they restarted, because a link changed its class. They are lost
	// with the process.
	before  map[netip.Addr]netem.Counters
	dropped uint64
	// original is the interface's gso_max_segs before the first Apply, and 0 until then. Our qdisc
	// holds a copy, which is lost if another program deletes the qdisc.
	original uint32
}

var _ netem.Shaper = (*Shaper)(nil)

// Open opens the Shaper's sockets in the network namespace of the calling thread; device is the
// interface to shape. It changes nothing yet.
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
	s := &Shaper{netlink: handle, socket: socket, before: map[netip.Addr]netem.Counters{}}
	limit := unix.NsecToTimeval(int64(answerWithin))
	if err := errors.Join(handle.SetSocketTimeout(answerWithin), socket.SetReceiveTimeout(&limit), socket.SetSendTimeout(&limit)); err != nil {
		return nil, errors.Join(fmt.Errorf("open netlink: %w", err), s.Close())
	}
	if s.link, err = handle.LinkByName(device); err != nil {
		return nil, errors.Join(fmt.Errorf("find interface %s: %w", device, err), s.Close())
	}
	return s, nil
}

func (s *Shaper) index() int32 { return int32(s.link.Attrs().Index) }

func (s *Shaper) name() string { return s.link.Attrs().Name }

// Backend implements netem.Shaper.
func (s *Shaper) Backend() shaping.Backend { return shaping.Netem }

// Close implements netem.Shaper. The interface stays shaped.
func (s *Shaper) Close() error {
	s.netlink.Close()
	s.socket.Close()
	return nil
}

// Apply implements netem.Shaper. It rounds a rate to whole bytes per second, and a loss to nine
// digits. Jitter is at most 2.147483647 s.
func (s *Shaper) Apply(table shaping.Table) error {
	if err := table.Validate(); err != nil {
		return err
	}
	wanted, err := classes(table)
	if err != nil {
		return err
	}
	have, err := s.prepare()
	if err != nil {
		return err
	}
	p, err := makePlan(have, wanted)
	if err != nil {
		return err
	}
	if err := s.perform(have, p, wanted); err != nil {
		return err
	}
	return s.tidy(have)
}

// prepare sets up the missing objects that do not depend on the table, and returns the state after
// that.
func (s *Shaper) prepare() (state, error) {
	have, err := s.read()
	if err != nil {
		return have, err
	}
	if !have.ours() {
		if have.rootHandle != 0 {
			return have, fmt.Errorf("interface %s has a root qdisc of another program: %s %x:; no other program may shape this pod", s.name(), have.rootKind, have.rootHandle>>16)
		}
		if err := s.netlink.QdiscAdd(s.root()); err != nil {
			return have, missing("add qdisc htb to "+s.name(), "sch_htb", err)
		}
	}
	if have.memory {
		s.original = have.segments
	} else if err := s.remember(); err != nil { // before the first change of it
		return have, err
	}
	for _, f := range families {
		if !have.tables[f.table] {
			// The table may exist and not be listed, because a user deleted the filter of its
			// protocol. It is listed again with the entrance.
			if err := s.netlink.FilterAdd(s.buckets(f)); err != nil && !errors.Is(err, unix.EEXIST) {
				return have, missing("add filter u32", "cls_u32", err)
			}
		}
		if !have.links[f.table] {
			if err := s.netlink.FilterAdd(s.entrance(f)); err != nil {
				return have, fmt.Errorf("add the entrance of filter u32: %w", err)
			}
		}
	}
	return s.read()
}

// remember stores gso_max_segs where the next process finds it.
func (s *Shaper) remember() error {
	if s.original == 0 {
		var err error
		if s.original, err = s.segments(); err != nil {
			return fmt.Errorf("read gso_max_segs of %s: %w", s.name(), err)
		}
	}
	if err := s.netlink.ClassAdd(s.class(memoryMinor, s.original)); err != nil {
		return fmt.Errorf("add the class that keeps gso_max_segs: %w", err)
	}
	return nil
}

// missing explains the kernel's error when it lacks a module, or the process lacks a capability.
func missing(what, module string, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("%s: the kernel has no %s, which is a module that a node may have to load: %w", what, module, err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%s: it needs the capability NET_ADMIN: %w", what, err)
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}

func (s *Shaper) perform(have state, p plan, wanted map[netip.Addr]class) error {
	for minor, c := range p.create {
		if err := s.netlink.ClassAdd(s.class(minor, classQuantum)); err != nil {
			return fmt.Errorf("add class %x:%x: %w", major, minor, err)
		}
		if err := s.setLeaf(minor, c, true); err != nil {
			return missing(fmt.Sprintf("add netem to class %x:%x", major, minor), "sch_netem", err)
		}
	}
	single := false
	for _, c := range wanted {
		single = single || !c.shared()
	}
	want := s.original
	if single {
		want = 1
	}
	if err := s.setSegments(want); err != nil {
		return err
	}
	for minor, c := range p.change {
		if err := s.setLeaf(minor, c, false); err != nil {
			return fmt.Errorf("change netem of class %x:%x: %w", major, minor, err)
		}
	}
	counters := counterIndexes(have)
	for _, to := range p.point {
		was := have.peers[to.address]
		counter := was.counter
		if to.minor != was.minor { // the counters of each class begin anew: see keep
			counter = counters()
		}
		if err := s.netlink.FilterReplace(s.key(to, was.handle, counter)); err != nil {
			return missing(fmt.Sprintf("peer %s: set its key in filter u32", to.address), "act_gact, or act_police", err)
		}
	}
	for _, address := range p.release {
		if err := s.deleteKey(address, have.peers[address]); err != nil {
			return err
		}
		delete(s.before, address)
	}
	return nil
}

// setSegments makes the interface send super-packets of so many segments, if it does not do so
// already.
func (s *Shaper) setSegments(want uint32) error {
	segments, err := s.segments()
	if err != nil {
		return fmt.Errorf("read gso_max_segs of %s: %w", s.name(), err)
	}
	if segments == want {
		return nil
	}
	if err := s.netlink.LinkSetGSOMaxSegs(s.link, int(want)); err != nil {
		return fmt.Errorf("set gso_max_segs of %s to %d: %w", s.name(), want, err)
	}
	return nil
}

// counterIndexes returns a function that returns unused indexes of counting actions.
func counterIndexes(have state) func() int {
	const base = major << 16 // other programs number theirs from 1
	taken := map[int]bool{}
	for _, p := range have.peers {
		taken[p.counter] = true
	}
	next := base
	return func() int {
		for next++; taken[next]; next++ {
		}
		return next
	}
}

func (s *Shaper) deleteKey(address netip.Addr, p peer) error {
	key := &netlink.U32{FilterAttrs: s.filter(familyOf(address))}
	key.Handle = p.handle
	if err := s.netlink.FilterDel(key); err != nil {
		return fmt.Errorf("peer %s: delete its key in filter u32: %w", address, err)
	}
	return nil
}

// tidy deletes the classes without a filter and without packets. It keeps the counters that
// restarted since the state had.
func (s *Shaper) tidy(had state) error {
	have, err := s.read()
	if err != nil {
		return err
	}
	used := map[uint16]bool{memoryMinor: true}
	for address, p := range have.peers {
		used[p.minor] = true
		s.keep(address, had, p)
	}
	for minor := range have.minors {
		l := have.leaves[minor]
		if used[minor] || l.queued > 0 {
			continue
		}
		if err := s.netlink.ClassDel(s.class(minor, classQuantum)); err != nil {
			return fmt.Errorf("delete class %x:%x, which is not used any more: %w", major, minor, err)
		}
		s.dropped += l.unasked()
	}
	return nil
}

// keep adds the counters of a link from before a change that restarted them, to another class or
// another policer.
func (s *Shaper) keep(address netip.Addr, had state, is peer) {
	was, k, c := had.peers[address], s.before[address], had.counters(address)
	if was.minor != is.minor {
		k.Packets, k.Bytes, k.Lost = k.Packets+c.Packets, k.Bytes+c.Bytes, k.Lost+c.Lost
	}
	if was.minor != is.minor || was.policed != is.policed {
		k.Overlimit += c.Overlimit
	}
	s.before[address] = k
}

// Read implements netem.Shaper. It returns an error when the state differs from the state after
// Apply.
func (s *Shaper) Read() (shaping.Table, error) {
	have, err := s.read()
	if err != nil || !have.ours() {
		return nil, err
	}
	var wrong []error
	table, single := shaping.Table{}, false
	for address, p := range have.peers {
		l, is := have.leaves[p.minor]
		switch {
		case !is || !have.links[familyOf(address).table]:
			wrong = append(wrong, fmt.Errorf("peer %s: the way of its packets ends at class %x:%x", address, major, p.minor))
		case l.limit != leafLimit:
			wrong = append(wrong, fmt.Errorf("peer %s: its netem has limit %d instead of %d", address, l.limit, leafLimit))
		case l.class.policed() != p.policed:
			wrong = append(wrong, fmt.Errorf("peer %s: its policer lets %d bytes per second pass instead of %d", address, p.policed, l.class.policed()))
		}
		single = single || is && !l.class.shared()
		table = append(table, shaping.Peer{Address: address, Out: l.class.link()})
	}
	segments, err := s.segments()
	if err != nil {
		return nil, fmt.Errorf("read gso_max_segs of %s: %w", s.name(), err)
	}
	if single && segments != 1 {
		wrong = append(wrong, fmt.Errorf("gso_max_segs is %d instead of 1", segments))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, fmt.Errorf("interface %s: %w", s.name(), err)
	}
	return onlyOut(table.Normalized()), nil
}

// onlyOut removes the values that Normalized has filled into the half that this backend does not
// use.
func onlyOut(t shaping.Table) shaping.Table {
	for i := range t {
		t[i].In = shaping.Link{}
	}
	return t
}

// Counters implements netem.Shaper. It counts packets and bytes of a link without jitter, loss and
// rate as they enter, and of other links as they leave. It may miss packets in flight while a link
// changes its class.
func (s *Shaper) Counters() (map[netip.Addr]netem.Counters, error) {
	have, err := s.read()
	if err != nil {
		return nil, err
	}
	counters := map[netip.Addr]netem.Counters{}
	for address := range have.peers {
		c, k := have.counters(address), s.before[address]
		counters[address] = netem.Counters{
			Packets: c.Packets + k.Packets, Bytes: c.Bytes + k.Bytes, Lost: c.Lost + k.Lost, Overlimit: c.Overlimit + k.Overlimit,
		}
	}
	return counters, nil
}

// counters of one link, from the kernel.
func (st state) counters(address netip.Addr) netem.Counters {
	l := st.leaves[st.peers[address].minor]
	through := l.statistics
	if l.class.shared() {
		through = st.passed[address]
	}
	c := netem.Counters{Packets: through.packets, Bytes: through.bytes, Overlimit: st.capped[address]}
	if l.class.loss > 0 {
		c.Lost = l.drops
	}
	return c
}

// unasked drops of a leaf: drops of its full queue. If the link has a loss, netem counts both
// together.
func (l leaf) unasked() uint64 {
	if l.class.loss > 0 {
		return 0
	}
	return l.drops
}

// Health implements netem.Shaper. On a link with loss, it counts packets that a full queue drops as
// lost by the link: netem does not distinguish them.
func (s *Shaper) Health() (netem.Health, error) {
	have, err := s.read()
	if err != nil {
		return netem.Health{}, err
	}
	h := netem.Health{Dropped: s.dropped}
	for _, l := range have.leaves {
		h.Dropped += l.unasked()
	}
	if h.Dropped > 0 {
		h.DroppedWhy = fmt.Sprintf("netem queues were full (limit %d): %d", leafLimit, h.Dropped)
	}
	return h, nil
}

// Remove implements netem.Shaper. From its start, new packets are not shaped any more. Packets in
// flight arrive in their time. If the interface is gone, there is nothing to restore.
func (s *Shaper) Remove() error {
	have, err := s.read()
	if err != nil {
		return err
	}
	if have.memory {
		s.original = have.segments
	}
	if have.ours() {
		err = s.removeTree(have)
	}
	if err == nil && s.original != 0 {
		err = s.setSegments(s.original)
	}
	if err != nil && !errors.As(err, &netlink.LinkNotFoundError{}) {
		return err
	}
	s.before, s.dropped, s.original = map[netip.Addr]netem.Counters{}, 0, 0
	return nil
}

func (s *Shaper) removeTree(have state) error {
	for _, f := range families {
		if !have.links[f.table] {
			continue
		}
		if err := s.netlink.FilterDel(&netlink.U32{FilterAttrs: s.filter(f)}); err != nil {
			return fmt.Errorf("delete filter u32: %w", err)
		}
	}
	if err := s.drain(have); err != nil {
		return err
	}
	if have.memory { // before the class that keeps it is deleted
		if err := s.setSegments(have.segments); err != nil {
			return err
		}
	}
	if err := s.netlink.QdiscDel(s.root()); err != nil {
		return fmt.Errorf("delete qdisc htb of %s: %w", s.name(), err)
	}
	now, err := s.read()
	switch {
	case err != nil:
		return err
	case now.rootHandle != 0:
		return fmt.Errorf("after the removal, interface %s has the root qdisc %s %x:, not the kernel's default", s.name(), now.rootKind, now.rootHandle>>16)
	}
	return nil
}

// drain waits until the tree holds no packet, at most for the longest time of a packet in it.
func (s *Shaper) drain(have state) error {
	longest := shaping.MaxBacklog + time.Second // plus a second for a slow machine
	for _, l := range have.leaves {
		longest = max(longest, l.class.delay+l.class.jitter+shaping.MaxBacklog+time.Second)
	}
	deadline := time.NewTimer(longest)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for have.queued > 0 {
		select {
		case <-deadline.C:
			return nil // the remaining packets have a longer delay from before a change
		case <-tick.C:
		}
		var err error
		if have, err = s.read(); err != nil {
			return err
		}
	}
	return nil
}
