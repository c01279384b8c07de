package htb

import (
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// The library lacks these values of enum TCA_NETEM_* (linux/pkt_sched.h): times in nanoseconds,
// which are finer than the ticks of 64 ns.
const (
	netemLatency64 = 10
	netemJitter64  = 11
)

// For classes: HTB must never be the limit, and its quantum must cause no warnings.
const (
	classRate    = 100_000_000_000 // bits per second
	classQuantum = 200_000
)

// execute sends one request in the Shaper's namespace.
func (s *Shaper) execute(kind, flags int, answer uint16, header *nl.TcMsg, data ...nl.NetlinkRequestData) ([][]byte, error) {
	request := nl.NewNetlinkRequest(kind, flags)
	request.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: s.socket}}
	request.AddData(header)
	for _, d := range data {
		request.AddData(d)
	}
	return request.Execute(unix.NETLINK_ROUTE, answer)
}

// setLeaf creates the netem qdisc of a class, or changes it. Packets in the queue keep the time
// that they were given.
func (s *Shaper) setLeaf(minor uint16, c class, create bool) error {
	flags := unix.NLM_F_ACK
	if create {
		flags |= unix.NLM_F_CREATE | unix.NLM_F_EXCL
	}
	header := &nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: s.index(), Parent: rootOurs | uint32(minor)}
	qopt := nl.TcNetemQopt{Limit: leafLimit, Loss: c.loss}
	options := nl.NewRtAttr(nl.TCA_OPTIONS, qopt.Serialize())
	options.AddRtAttr(netemLatency64, nl.Uint64Attr(uint64(c.delay)))
	options.AddRtAttr(netemJitter64, nl.Uint64Attr(uint64(c.jitter)))
	// Always sent: a rate of zero removes an earlier rate.
	rate := nl.TcNetemRate{Rate: uint32(min(c.rate, 1<<32-1))}
	if c.rate > 1<<32-1 {
		options.AddRtAttr(nl.TCA_NETEM_RATE64, nl.Uint64Attr(c.rate))
	}
	options.AddRtAttr(nl.TCA_NETEM_RATE, rate.Serialize())
	_, err := s.execute(unix.RTM_NEWQDISC, flags, 0, header, nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("netem")), options)
	return err
}

// segments is the interface's gso_max_segs: how many segments a super-packet may have.
func (s *Shaper) segments() (uint32, error) {
	link, err := s.netlink.LinkByIndex(int(s.index()))
	if err != nil {
		return 0, err
	}
	return link.Attrs().GSOMaxSegs, nil
}

func (s *Shaper) class(minor uint16, quantum uint32) *netlink.HtbClass {
	attributes := netlink.ClassAttrs{LinkIndex: int(s.index()), Parent: rootOurs, Handle: rootOurs | uint32(minor)}
	return netlink.NewHtbClass(attributes, netlink.HtbClassAttrs{Rate: classRate, Ceil: classRate, Quantum: quantum})
}

func (s *Shaper) root() *netlink.Htb {
	return netlink.NewHtb(netlink.QdiscAttrs{LinkIndex: int(s.index()), Parent: netlink.HANDLE_ROOT, Handle: rootOurs})
}
