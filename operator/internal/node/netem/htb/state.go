package htb

import "net/netip"

// The objects of this package on an interface.
const (
	major    = 0xa55a
	rootOurs = major << 16
)

// state is the kernel's description of the interface.
type state struct {
	rootKind   string
	rootHandle uint32 // 0: the kernel's default qdisc, which no program has set
	queued     uint32 // packets in the whole tree

	memory   bool // the class that keeps segments exists
	segments uint32

	minors map[uint16]bool // classes, also those without a leaf
	leaves map[uint16]leaf // netem qdiscs by the minor of their class
	tables map[uint32]bool // our hash tables of u32
	links  map[uint32]bool // the tables to which a filter sends packets
	peers  map[netip.Addr]peer
	passed map[netip.Addr]statistics // counted by the filter
	capped map[netip.Addr]uint64     // dropped by the policer
}

func (st state) ours() bool { return st.rootKind == "htb" && st.rootHandle == rootOurs }

// leaf is the present state of a netem qdisc.
type leaf struct {
	class class
	limit uint32
	statistics
}

// statistics of a qdisc or an action.
type statistics struct {
	packets, bytes, drops uint64
	queued                uint32
}
