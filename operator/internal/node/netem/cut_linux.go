package netem

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/model/shaping"
)

const (
	// cutTable holds the cut. Cut changes no other objects.
	cutTable = "assay_cut"
	// cutPriority puts the chain for arriving packets right behind the delay of the NFQueue backend
	// (raw). So a cut also drops packets that were in flight when it began: from that instant on
	// the pod receives nothing.
	cutPriority = nftables.ChainPriority(-290)
	// cutQueue is a packet queue that no program binds: see silently.
	cutQueue = 42328
	// cutChunk of addresses fit into one netlink attribute, which has 64 KB.
	cutChunk = 1000
	// cutBuffer of the netlink socket, in bytes, holds a transaction of shaping.MaxPeers addresses
	// in each direction.
	cutBuffer = 32 << 20
)

// Cut drops packets between this pod and a set of peers, in each direction separately: a partition,
// as this pod sees it.
//
//	table inet assay_cut                     prepared ahead; the cut itself only changes what is in the sets
//	  chain in   (hook prerouting, raw+10)   loopback | IPv6 neighbours -> accept; ip saddr @in4  | ip6 saddr @in6  -> drop
//	  chain out  (hook output, raw)          loopback | IPv6 neighbours -> accept; ip daddr @out4 | ip6 daddr @out6 -> drop
//
// When Remove deletes chains, the kernel drops the packets in all packet queues of the namespace.
// So do not call Remove while the NFQueue backend delays packets that count. The methods are not
// safe for concurrent use.
type Cut struct {
	conn  *nftables.Conn
	table *nftables.Table
}

// OpenCut opens the netlink connection in the network namespace of the calling thread. It changes
// nothing yet.
func OpenCut() (*Cut, error) {
	conn, err := nftables.New(nftables.AsLasting(), nftables.WithSockOptions(func(c *netlink.Conn) error {
		return errors.Join(c.SetReadBuffer(cutBuffer), c.SetWriteBuffer(cutBuffer))
	}))
	if err != nil {
		return nil, usable(fmt.Errorf("open nftables: %w", err))
	}
	return &Cut{conn: conn, table: &nftables.Table{Name: cutTable, Family: nftables.TableFamilyINet}}, nil
}

// Close closes the connection. It leaves an existing table, and a cut, in place.
func (c *Cut) Close() error { return c.conn.CloseLasting() }

// cutSide is one direction and one address family.
type cutSide struct {
	chain, set string
	kind       nftables.SetDatatype
	family     byte
	offset     uint32 // offset of the peer's address in the IP header
}

var cutSides = []cutSide{
	{"in", "in4", nftables.TypeIPAddr, unix.NFPROTO_IPV4, 12},
	{"in", "in6", nftables.TypeIP6Addr, unix.NFPROTO_IPV6, 8},
	{"out", "out4", nftables.TypeIPAddr, unix.NFPROTO_IPV4, 16},
	{"out", "out6", nftables.TypeIP6Addr, unix.NFPROTO_IPV6, 24},
}

func (s cutSide) holds(a netip.Addr) bool { return a.Is4() == (s.family == unix.NFPROTO_IPV4) }

func (c *Cut) set(s cutSide) *nftables.Set {
	// With a size, the kernel never resizes its hash table. A list that is read during a resize
	// would lack elements.
	return &nftables.Set{Name: s.set, Table: c.table, KeyType: s.kind, Size: shaping.MaxPeers}
}

// Prepare installs the table, which cuts nothing. It leaves an existing table as it is, with its
// cut.
func (c *Cut) Prepare() error {
	there, err := c.exists()
	if err != nil || there {
		return err
	}
	for _, drop := range silently() {
		if err = c.prepare(drop); !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.EOPNOTSUPP) && !errors.Is(err, syscall.EINVAL) {
			break
		}
	}
	if err != nil {
		return usable(fmt.Errorf("prepare the cut: %w", err))
	}
	return nil
}

// silently returns the ways to drop a packet at the hook output, best first. The kernel reports a
// plain drop to the sender (EPERM), and TCP then treats the segment as not sent. A machine behind a
// cable that is cut gets no such error. A queue that no program binds loses packets without an
// error. The plain drop is the last way, for kernels without queues.
func silently() []expr.Any {
	info := binary.NativeEndian.AppendUint16(nil, cutQueue) // struct xt_NFQ_info_v3: number, how many, flags; aligned to 8 bytes
	compat := xt.Unknown(append(binary.NativeEndian.AppendUint16(info, 1), 0, 0, 0, 0))
	return []expr.Any{
		&expr.Queue{Num: cutQueue, Total: 1},
		&expr.Target{Name: "NFQUEUE", Rev: 3, Info: &compat},
		&expr.Verdict{Kind: expr.VerdictDrop},
	}
}

func (c *Cut) prepare(dropOut expr.Any) error {
	c.conn.AddTable(c.table)
	accept, after := nftables.ChainPolicyAccept, cutPriority
	chains := map[string]*nftables.Chain{
		"in": c.conn.AddChain(&nftables.Chain{
			Name: "in", Table: c.table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPrerouting, Priority: &after, Policy: &accept,
		}),
		"out": c.conn.AddChain(&nftables.Chain{
			Name: "out", Table: c.table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityRaw, Policy: &accept,
		}),
	}
	pass := func(chain string, match []expr.Any) {
		c.conn.AddRule(&nftables.Rule{Table: c.table, Chain: chains[chain], Exprs: append(match, &expr.Verdict{Kind: expr.VerdictAccept})})
	}
	loopback := binaryutil.NativeEndian.PutUint16(unix.ARPHRD_LOOPBACK)
	pass("in", metaIs(expr.MetaKeyIIFTYPE, loopback))
	pass("in", isNeighbourDiscovery())
	pass("out", metaIs(expr.MetaKeyOIFTYPE, loopback))
	pass("out", isNeighbourDiscovery())
	for _, s := range cutSides {
		set := c.set(s)
		if err := c.conn.AddSet(set, nil); err != nil {
			return err
		}
		drop := dropOut
		if s.chain == "in" {
			drop = &expr.Verdict{Kind: expr.VerdictDrop}
		}
		c.conn.AddRule(&nftables.Rule{Table: c.table, Chain: chains[s.chain], Exprs: append(metaIs(expr.MetaKeyNFPROTO, []byte{s.family}),
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: s.offset, Len: s.kind.Bytes},
			&expr.Lookup{SourceRegister: 1, SetName: set.Name, SetID: set.ID},
			&expr.Counter{},
			drop,
		)})
	}
	return c.conn.Flush()
}

// Set makes the cut exactly this: it drops packets from the addresses of in, and packets to the
// addresses of out. The whole cut begins at one instant, before Set returns. Without addresses the
// cut is healed. The table must be prepared.
func (c *Cut) Set(in, out []netip.Addr) error {
	wanted := map[string][]netip.Addr{}
	for chain, addresses := range map[string][]netip.Addr{"in": in, "out": out} {
		for _, a := range addresses {
			a = a.Unmap().WithZone("")
			if !a.IsValid() || a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() {
				return fmt.Errorf("cut %s: %v is not the address of another pod", chain, a)
			}
			wanted[chain] = append(wanted[chain], a)
		}
		slices.SortFunc(wanted[chain], netip.Addr.Compare)
		if wanted[chain] = slices.Compact(wanted[chain]); len(wanted[chain]) > shaping.MaxPeers {
			return fmt.Errorf("cut %s: %d addresses; at most %d", chain, len(wanted[chain]), shaping.MaxPeers)
		}
	}
	for _, s := range cutSides {
		set, elements := c.set(s), []nftables.SetElement{}
		for _, a := range wanted[s.chain] {
			if s.holds(a) {
				elements = append(elements, nftables.SetElement{Key: a.AsSlice()})
			}
		}
		c.conn.FlushSet(set)
		for chunk := range slices.Chunk(elements, cutChunk) {
			if err := c.conn.SetAddElements(set, chunk); err != nil {
				return fmt.Errorf("cut %s: %w", s.chain, err)
			}
		}
	}
	if err := c.conn.Flush(); errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("change the cut: it is not prepared: %w", err)
	} else if err != nil {
		return usable(fmt.Errorf("change the cut: %w", err))
	}
	return nil
}

// Cut reads from the kernel which addresses are cut off, in order. It returns an error if the table
// exists and differs from the prepared one.
func (c *Cut) Cut() (in, out []netip.Addr, err error) {
	there, err := c.exists()
	if err != nil || !there {
		return nil, nil, err
	}
	if _, _, err := c.Packets(); err != nil {
		return nil, nil, err
	}
	for _, s := range cutSides {
		elements, err := c.conn.GetSetElements(c.set(s))
		if err != nil {
			return nil, nil, fmt.Errorf("read the cut: %w", err)
		}
		for _, element := range elements {
			a, ok := netip.AddrFromSlice(element.Key)
			if !ok {
				return nil, nil, fmt.Errorf("read the cut: %x in set %s is no address", element.Key, s.set)
			}
			if s.chain == "in" {
				in = append(in, a)
			} else {
				out = append(out, a)
			}
		}
	}
	slices.SortFunc(in, netip.Addr.Compare)
	slices.SortFunc(out, netip.Addr.Compare)
	return in, out, nil
}

// Packets returns how many packets each direction has dropped since Prepare. It returns an error if
// a rule of the prepared table is missing.
func (c *Cut) Packets() (in, out uint64, err error) {
	dropped, rules := map[string]uint64{}, map[string]int{}
	for _, chain := range []string{"in", "out"} {
		list, err := c.conn.GetRules(c.table, &nftables.Chain{Name: chain, Table: c.table})
		if err != nil {
			return 0, 0, fmt.Errorf("read the cut: %w", err)
		}
		for _, rule := range list {
			for _, e := range rule.Exprs {
				if lookup, ok := e.(*expr.Lookup); ok {
					rules[lookup.SetName]++
				}
				if counter, ok := e.(*expr.Counter); ok {
					dropped[chain] += counter.Packets
				}
			}
		}
	}
	for _, s := range cutSides {
		if rules[s.set] != 1 {
			return 0, 0, fmt.Errorf("read the cut: chain %s has %d rules for set %s, want 1", s.chain, rules[s.set], s.set)
		}
	}
	return dropped["in"], dropped["out"], nil
}

// Remove heals the cut, removes the table and proves by reading back that it is gone.
func (c *Cut) Remove() error {
	there, err := c.exists()
	if err != nil || !there {
		return err
	}
	c.conn.DelTable(c.table)
	if err := c.conn.Flush(); err != nil {
		return usable(fmt.Errorf("remove the cut: %w", err))
	}
	if there, err = c.exists(); err != nil {
		return err
	}
	if there {
		return errors.New("remove the cut: the table is still there after its removal")
	}
	return nil
}

func (c *Cut) exists() (bool, error) {
	tables, err := c.conn.ListTablesOfFamily(nftables.TableFamilyINet)
	if err != nil {
		return false, usable(fmt.Errorf("read the packet filter: %w", err))
	}
	return slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == cutTable }), nil
}
