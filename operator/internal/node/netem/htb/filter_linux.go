package htb

import (
	"encoding/binary"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/model/shaping"
)

// family describes IPv4 or IPv6 for u32: where in the header the destination is, and which hash
// table has its peers.
type family struct {
	protocol    uint16 // Ethernet's
	priority    uint16 // of the filter; u32 has one for each protocol
	table       uint32 // 256 buckets
	destination int32  // offset in the header
	words       int    // how many words of four bytes an address has
}

var families = []family{
	{protocol: unix.ETH_P_IP, priority: 1, table: 1 << 20, destination: 16, words: 1},
	{protocol: unix.ETH_P_IPV6, priority: 2, table: 2 << 20, destination: 24, words: 4},
}

func familyOf(a netip.Addr) family {
	if a.Is4() {
		return families[0]
	}
	return families[1]
}

func (s *Shaper) filter(f family) netlink.FilterAttrs {
	return netlink.FilterAttrs{LinkIndex: int(s.index()), Parent: rootOurs, Priority: f.priority, Protocol: f.protocol}
}

// buckets is the hash table of a family.
func (s *Shaper) buckets(f family) *netlink.U32 {
	u := &netlink.U32{FilterAttrs: s.filter(f), Divisor: 256}
	u.Handle = f.table
	return u
}

// entrance sends all packets of the protocol to the bucket of their destination's last byte.
func (s *Shaper) entrance(f family) *netlink.U32 {
	last := f.destination + int32(f.words-1)*4
	return &netlink.U32{FilterAttrs: s.filter(f), Link: f.table, Sel: &netlink.TcU32Sel{Keys: []netlink.TcU32Key{{}}, Hmask: 0xff, Hoff: int16(last)}}
}

// key matches one destination. With the handle of an existing key, it replaces that key at once.
func (s *Shaper) key(to pointing, handle uint32, counter int) *netlink.U32 {
	f := familyOf(to.address)
	u := &netlink.U32{FilterAttrs: s.filter(f), ClassId: rootOurs | uint32(to.minor), Sel: selectorOf(to.address)}
	if u.Handle = handle; handle == 0 {
		bytes := to.address.AsSlice()
		u.Hash = f.table | uint32(bytes[len(bytes)-1])<<12
	}
	if to.policed != 0 {
		u.Actions = append(u.Actions, policer(to.policed))
	}
	// The index makes the old and the new key share the action, so its counters continue.
	u.Actions = append(u.Actions, &netlink.GenericAction{ActionAttrs: netlink.ActionAttrs{Index: counter, Action: netlink.TC_ACT_OK}})
	return u
}

// policer drops packets that would not fit into a queue of MaxBacklog at this rate.
func policer(rate uint64) *netlink.PoliceAction {
	a := netlink.NewPoliceAction()
	a.Rate = uint32(rate)
	a.Burst = uint32(max(rate*uint64(shaping.MaxBacklog.Milliseconds())/1000, minBurst))
	a.Mtu = mtu
	a.ExceedAction, a.NotExceedAction = netlink.TC_POLICE_SHOT, netlink.TC_POLICE_PIPE
	return a
}

const (
	mtu      = 1 << 16 // it would drop longer packets, but no interface sends any
	minBurst = 2 * 1518
)

func selectorOf(a netip.Addr) *netlink.TcU32Sel {
	f, bytes := familyOf(a), a.AsSlice()
	sel := &netlink.TcU32Sel{Flags: netlink.TC_U32_TERMINAL}
	for i := range f.words {
		sel.Keys = append(sel.Keys, netlink.TcU32Key{Mask: 1<<32 - 1, Val: binary.BigEndian.Uint32(bytes[i*4:]), Off: f.destination + int32(i)*4})
	}
	return sel
}

// addressOf returns the address of a selector; false if it is not one of ours.
func addressOf(sel *netlink.TcU32Sel) (netip.Addr, bool) {
	if sel == nil || sel.Flags&netlink.TC_U32_TERMINAL == 0 {
		return netip.Addr{}, false
	}
	var bytes []byte
	for _, k := range sel.Keys {
		bytes = binary.BigEndian.AppendUint32(bytes, k.Val)
	}
	return netip.AddrFromSlice(bytes)
}
