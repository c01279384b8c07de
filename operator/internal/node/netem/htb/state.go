package htb

import "net/netip"

// These are ours on an interface.
const (
	major    = 0xa55a
	rootOurs = major << 16
)

// state is what the kernel says about the interface.
type state struct {
	rootKind   string
	rootHandle uint32 // 0: the kernel's default qdisc, which no program has set
	queued     uint32 // packets, of the whole tree

	memory   bool // the class that keeps segments is there
	segments uint32

	minors map[uint16]bool // classes, also those without a leaf
	leaves map[uint16]leaf // netem qdiscs by the minor of their class
	tables map[uint32]bool // u32's hash tables of ours
	links  map[uint32]bool // the tables that packets are led to
	peers  map[netip.Addr]peer
	passed map[netip.Addr]statistics // counted by the filter
	capped map[netip.Addr]uint64     // dropped by the policer
}

func (st state) ours() bool { return st.rootKind == "htb" && st.rootHandle == rootOurs }

// leaf is a netem qdisc as it is.
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
