package htb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// read asks the kernel for the whole state. If a root qdisc is not ours, it reads only the kind of
// that qdisc.
func (s *Shaper) read() (state, error) {
	st := state{
		minors: map[uint16]bool{}, leaves: map[uint16]leaf{}, tables: map[uint32]bool{}, links: map[uint32]bool{},
		peers: map[netip.Addr]peer{}, passed: map[netip.Addr]statistics{}, capped: map[netip.Addr]uint64{},
	}
	if err := s.readQdiscs(&st); err != nil || !st.ours() {
		return st, err
	}
	list, err := s.netlink.ClassList(s.link, 0)
	if err != nil {
		return st, fmt.Errorf("list classes: %w", err)
	}
	for _, c := range list {
		minor := uint16(c.Attrs().Handle)
		st.minors[minor] = true
		if h, is := c.(*netlink.HtbClass); is && minor == memoryMinor {
			st.memory, st.segments = true, h.Quantum
		}
	}
	filters, err := s.netlink.FilterList(s.link, rootOurs)
	if err != nil {
		return st, fmt.Errorf("list filters: %w", err)
	}
	for _, f := range filters {
		if u, is := f.(*netlink.U32); is {
			st.addFilter(u)
		}
	}
	return st, s.readTables(&st)
}

// readQdiscs makes its own dump: the library does not know netem's times in nanoseconds.
func (s *Shaper) readQdiscs(st *state) error {
	messages, err := s.execute(unix.RTM_GETQDISC, unix.NLM_F_DUMP, unix.RTM_NEWQDISC, &nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: s.index()})
	if err != nil {
		return fmt.Errorf("list qdiscs: %w", err)
	}
	for _, m := range messages {
		header := nl.DeserializeTcMsg(m)
		if header.Ifindex != s.index() {
			continue
		}
		attributes, err := attributesOf(m[header.Len():])
		if err != nil {
			return fmt.Errorf("read a qdisc: %w", err)
		}
		kind := nl.BytesToString(attributes[nl.TCA_KIND])
		stats, err := statisticsOf(attributes[nl.TCA_STATS2])
		if err != nil {
			return fmt.Errorf("read the statistics of a qdisc: %w", err)
		}
		switch {
		case header.Parent == netlink.HANDLE_ROOT:
			st.rootKind, st.rootHandle, st.queued = kind, header.Handle, stats.queued
		case header.Parent>>16 == major && kind == "netem":
			l, err := leafOf(attributes[nl.TCA_OPTIONS])
			if err != nil {
				return fmt.Errorf("read netem's options: %w", err)
			}
			l.statistics = stats
			st.leaves[uint16(header.Parent)] = l
		}
	}
	return nil
}

// readTables dumps the filters a second time, since the library leaves out hash tables.
func (s *Shaper) readTables(st *state) error {
	messages, err := s.execute(unix.RTM_GETTFILTER, unix.NLM_F_DUMP, unix.RTM_NEWTFILTER,
		&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: s.index(), Parent: rootOurs})
	if err != nil {
		return fmt.Errorf("list filters: %w", err)
	}
	for _, m := range messages {
		if handle := nl.DeserializeTcMsg(m).Handle; handle&0xfffff == 0 {
			st.tables[handle] = true
		}
	}
	return nil
}

func (st *state) addFilter(u *netlink.U32) {
	if u.Link != 0 {
		st.links[u.Link] = true
		return
	}
	address, is := addressOf(u.Sel)
	if !is {
		return
	}
	p := peer{handle: u.Handle, minor: uint16(u.ClassId)}
	for _, action := range u.Actions {
		switch a := action.(type) {
		case *netlink.GenericAction:
			p.counter = a.Index
			if stats := a.Attrs().Statistics; stats != nil && stats.Basic != nil {
				st.passed[address] = statistics{packets: uint64(stats.Basic.Packets), bytes: stats.Basic.Bytes}
			}
		case *netlink.PoliceAction:
			p.policed = uint64(a.Rate)
			if stats := a.Attrs().Statistics; stats != nil && stats.Queue != nil {
				st.capped[address] = uint64(stats.Queue.Drops)
			}
		}
	}
	st.peers[address] = p
}

// leafOf parses netem's options: struct tc_netem_qopt, then attributes.
func leafOf(options []byte) (leaf, error) {
	if len(options) < nl.SizeofTcNetemQopt {
		return leaf{}, errors.New("too short")
	}
	q := nl.DeserializeTcNetemQopt(options)
	attributes, err := attributesOf(options[nl.SizeofTcNetemQopt:])
	if err != nil {
		return leaf{}, err
	}
	l := leaf{limit: q.Limit, class: class{loss: q.Loss}}
	l.class.delay = time.Duration(number(attributes[netemLatency64]))
	l.class.jitter = time.Duration(number(attributes[netemJitter64]))
	if rate := attributes[nl.TCA_NETEM_RATE]; len(rate) >= 4 {
		l.class.rate = number(rate[:4])
	}
	if rate := attributes[nl.TCA_NETEM_RATE64]; rate != nil {
		l.class.rate = number(rate)
	}
	return l, nil
}

// statisticsOf parses TCA_STATS2: struct gnet_stats_basic and gnet_stats_queue.
func statisticsOf(b []byte) (statistics, error) {
	attributes, err := attributesOf(b)
	if err != nil {
		return statistics{}, err
	}
	var s statistics
	if basic := attributes[nl.TCA_STATS_BASIC]; len(basic) >= 12 {
		s.bytes, s.packets = number(basic[:8]), number(basic[8:12])
	}
	if queue := attributes[nl.TCA_STATS_QUEUE]; len(queue) >= 12 {
		s.queued, s.drops = uint32(number(queue[:4])), number(queue[8:12])
	}
	return s, nil
}

func attributesOf(b []byte) (map[int][]byte, error) {
	list, err := nl.ParseRouteAttr(b)
	if err != nil {
		return nil, err
	}
	m := map[int][]byte{}
	for _, a := range list {
		m[int(a.Attr.Type&nl.NLA_TYPE_MASK)] = a.Value
	}
	return m, nil
}

// number is a u32 or u64 in the machine's byte order; 0 if there is none.
func number(b []byte) uint64 {
	switch len(b) {
	case 4:
		return uint64(binary.NativeEndian.Uint32(b))
	case 8:
		return binary.NativeEndian.Uint64(b)
	}
	return 0
}
