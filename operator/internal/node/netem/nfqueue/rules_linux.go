package nfqueue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"

	"assay.dev/assay/operator/internal/model/shaping"
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

const (
	chainName = "arriving"
	setName   = "peers"
	// elementsInMessage bounds the elements in one netlink attribute, which has 64 KB.
	elementsInMessage = 1000
	// sendBuffer holds the largest transaction: shaping.MaxPeers addresses.
	sendBuffer = 16 << 20
)

// family is IPv4 or IPv6. Each has a table of its own, for the NFQUEUE target of xtables: not every
// kernel has that target in a table for both.
type family struct {
	name        string
	nft         nftables.TableFamily
	kind        nftables.SetDatatype
	source, len uint32 // where the header has the source address
}

var families = []family{
	{"ip", nftables.TableFamilyIPv4, nftables.TypeIPAddr, 12, 4},
	{"ip6", nftables.TableFamilyIPv6, nftables.TypeIP6Addr, 8, 16},
}

func (f family) has(address netip.Addr) bool { return address.Is4() == (f.len == 4) }

// rules send packets from a set of addresses to a queue.
type rules struct {
	conn   *nftables.Conn
	name   string // of the tables
	number uint16 // of the queue
}

func openRules(name string, number uint16) (*rules, error) {
	conn, err := nftables.New(nftables.AsLasting(), nftables.WithSockOptions(func(c *netlink.Conn) error {
		return errors.Join(c.SetReadBuffer(sendBuffer), c.SetWriteBuffer(sendBuffer))
	}))
	if err != nil {
		return nil, usable(fmt.Errorf("open nftables: %w", err))
	}
	return &rules{conn: conn, name: name, number: number}, nil
}

func (r *rules) close() error { return r.conn.CloseLasting() }

// found is the present state of one family's table.
type found struct {
	table     bool
	structure bool  // the chain and the set exist and are right
	wrong     error // differences from the wanted table; nil without a table
	addresses map[netip.Addr]bool
}

// install makes the sets hold exactly these addresses, in one transaction. It restores missing
// rules. A family without any address gets no table.
func (r *rules) install(addresses []netip.Addr) error {
	for _, native := range []bool{true, false} {
		for _, f := range families {
			if err := r.plan(f, slices.DeleteFunc(slices.Clone(addresses), func(a netip.Addr) bool { return !f.has(a) }), native); err != nil {
				return err
			}
		}
		err := r.conn.Flush()
		if native && (errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EOPNOTSUPP)) {
			continue // no CONFIG_NFT_QUEUE; the kernel applied no part of the transaction
		}
		if err != nil {
			return usable(fmt.Errorf("send the peers' packets to the queue: %w", err))
		}
		break
	}
	return nil
}

// plan adds the missing parts of one family to the transaction.
func (r *rules) plan(f family, addresses []netip.Addr, native bool) error {
	is, err := r.find(f)
	if err != nil {
		return err
	}
	if !is.table && len(addresses) == 0 {
		return nil
	}
	table := &nftables.Table{Name: r.name, Family: f.nft}
	chain := &nftables.Chain{Name: chainName, Table: table}
	// With a size, the kernel never resizes its hash table. A list that is read during a resize
	// would lack elements.
	set := &nftables.Set{Name: setName, Table: table, KeyType: f.kind, Size: shaping.MaxPeers}
	if !is.structure {
		if is.table {
			r.conn.DelTable(table)
		}
		r.conn.AddTable(table)
		if err := r.conn.AddSet(set, nil); err != nil {
			return fmt.Errorf("add the set of peers: %w", err)
		}
		accept := nftables.ChainPolicyAccept
		r.conn.AddChain(&nftables.Chain{
			Name: chainName, Table: table, Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRaw, Policy: &accept,
		})
		is.addresses = nil
	}
	if is.wrong != nil || !is.structure {
		// Never delete the chain itself: when a base chain is deleted, the kernel drops the packets
		// in all queues.
		r.conn.FlushChain(chain)
		r.conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: r.rule(f, set, native)})
	}
	return r.planElements(set, is.addresses, addresses)
}

func (r *rules) planElements(set *nftables.Set, have map[netip.Addr]bool, want []netip.Addr) error {
	surplus, missing := maps.Clone(have), []nftables.SetElement{}
	for _, address := range want {
		if !have[address] {
			missing = append(missing, nftables.SetElement{Key: address.AsSlice()})
		}
		delete(surplus, address)
	}
	// Delete surplus elements first: the set has no room for both.
	gone := []nftables.SetElement{}
	for address := range surplus {
		gone = append(gone, nftables.SetElement{Key: address.AsSlice()})
	}
	for chunk := range slices.Chunk(gone, elementsInMessage) {
		if err := r.conn.SetDeleteElements(set, chunk); err != nil {
			return fmt.Errorf("remove peers: %w", err)
		}
	}
	for chunk := range slices.Chunk(missing, elementsInMessage) {
		if err := r.conn.SetAddElements(set, chunk); err != nil {
			return fmt.Errorf("add peers: %w", err)
		}
	}
	return nil
}

// rule is: ip saddr @peers counter queue num N. It has no bypass: while the queue is not bound, the
// kernel drops its packets.
func (r *rules) rule(f family, set *nftables.Set, native bool) []expr.Any {
	target := expr.Any(&expr.Queue{Num: r.number, Total: 1})
	if !native {
		// struct xt_NFQ_info_v3: queue number, number of queues, flags; aligned to 8 bytes.
		info := binary.NativeEndian.AppendUint16(nil, r.number)
		info = binary.NativeEndian.AppendUint16(info, 1)
		unknown := xt.Unknown(append(info, 0, 0, 0, 0))
		target = &expr.Target{Name: "NFQUEUE", Rev: 3, Info: &unknown}
	}
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: f.source, Len: f.len},
		&expr.Lookup{SourceRegister: 1, SetName: set.Name, SetID: set.ID},
		&expr.Counter{},
		target,
	}
}

// find reads one family's table from the kernel and compares it with the wanted one.
func (r *rules) find(f family) (found, error) {
	tables, err := r.conn.ListTablesOfFamily(f.nft)
	if err != nil {
		return found{}, usable(fmt.Errorf("read the packet filter: %w", err))
	}
	at := slices.IndexFunc(tables, func(t *nftables.Table) bool { return t.Name == r.name })
	if at < 0 {
		return found{}, nil
	}
	is, table := found{table: true}, tables[at]
	chains, err := r.conn.ListChainsOfTableFamily(f.nft)
	if err != nil {
		return found{}, fmt.Errorf("read the packet filter's chains: %w", err)
	}
	sets, err := r.conn.GetSets(table)
	if err != nil {
		return found{}, fmt.Errorf("read the packet filter's sets: %w", err)
	}
	chain := slices.IndexFunc(chains, func(c *nftables.Chain) bool { return c.Table.Name == r.name && c.Name == chainName })
	set := slices.IndexFunc(sets, func(s *nftables.Set) bool { return s.Name == setName })
	switch {
	case chain < 0 || !isHooked(chains[chain]):
		is.wrong = fmt.Errorf("table %s %s: its chain %q is missing or not hooked at PREROUTING", f.name, r.name, chainName)
		return is, nil
	case set < 0:
		is.wrong = fmt.Errorf("table %s %s: its set %q is missing", f.name, r.name, setName)
		return is, nil
	}
	is.structure = true
	got, err := r.conn.GetRules(table, chains[chain])
	if err != nil {
		return found{}, fmt.Errorf("read the packet filter's rules: %w", err)
	}
	is.wrong = r.judge(f, got)
	elements, err := r.conn.GetSetElements(sets[set])
	if err != nil {
		return found{}, fmt.Errorf("read the set of peers: %w", err)
	}
	is.addresses = map[netip.Addr]bool{}
	for _, element := range elements {
		if address, ok := netip.AddrFromSlice(element.Key); ok {
			is.addresses[address] = true
		}
	}
	return is, nil
}

func isHooked(chain *nftables.Chain) bool {
	return chain.Hooknum != nil && *chain.Hooknum == *nftables.ChainHookPrerouting && chain.Priority != nil && *chain.Priority == *nftables.ChainPriorityRaw
}

// judge says how the rules of the chain differ from the one wanted rule.
func (r *rules) judge(f family, got []*nftables.Rule) error {
	set := &nftables.Set{Name: setName}
	native, compat := describe(r.rule(f, set, true)), describe(r.rule(f, set, false))
	var have []string
	for _, rule := range got {
		have = append(have, describe(rule.Exprs))
	}
	if len(have) == 1 && (have[0] == native || have[0] == compat) {
		return nil
	}
	if len(have) == 0 {
		return fmt.Errorf("table %s %s: its rule is missing, packets of peers are not delayed", f.name, r.name)
	}
	return fmt.Errorf("table %s %s: its rules are %q, want only %q", f.name, r.name, have, native)
}

// describe leaves out the kernel's additions: counts and numbers of sets.
func describe(exprs []expr.Any) string {
	var words []string
	for _, e := range exprs {
		switch e := e.(type) {
		case *expr.Payload:
			words = append(words, fmt.Sprintf("payload %d,%d,%d -> %d", e.Base, e.Offset, e.Len, e.DestRegister))
		case *expr.Lookup:
			words = append(words, fmt.Sprintf("lookup %d in %s, inverted %v", e.SourceRegister, e.SetName, e.Invert))
		case *expr.Counter:
			words = append(words, "counter")
		case *expr.Queue:
			words = append(words, fmt.Sprintf("queue %d of %d, flags %d", e.Num, e.Total, e.Flag))
		case *expr.Target:
			info, _ := e.Info.(*xt.Unknown)
			words = append(words, fmt.Sprintf("target %s.%d %x", e.Name, e.Rev, info))
		default:
			words = append(words, fmt.Sprintf("%T", e))
		}
	}
	return strings.Join(words, "; ")
}

// stop removes the rules and leaves the tables, so that the packets in the queue stay there.
func (r *rules) stop() error {
	for _, f := range families {
		is, err := r.find(f)
		if err != nil {
			return err
		}
		if is.structure {
			r.conn.FlushChain(&nftables.Chain{Name: chainName, Table: &nftables.Table{Name: r.name, Family: f.nft}})
		}
	}
	if err := r.conn.Flush(); err != nil {
		return usable(fmt.Errorf("take the rules away: %w", err))
	}
	return nil
}

// remove deletes the tables and proves by reading back that they are gone.
func (r *rules) remove() error {
	for _, prove := range []bool{false, true} {
		for _, f := range families {
			is, err := r.find(f)
			switch {
			case err != nil:
				return err
			case is.table && prove:
				return fmt.Errorf("table %s %s is still there after its removal", f.name, r.name)
			case is.table:
				r.conn.DelTable(&nftables.Table{Name: r.name, Family: f.nft})
			}
		}
		if err := r.conn.Flush(); err != nil {
			return usable(fmt.Errorf("remove the tables: %w", err))
		}
	}
	return nil
}

// usable adds a hint for the user.
func usable(err error) error {
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w; the agent's container needs the capability NET_ADMIN", err)
	case errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.EPROTONOSUPPORT), errors.Is(err, unix.EAFNOSUPPORT):
		return fmt.Errorf("%w; the node's kernel needs nf_tables (CONFIG_NF_TABLES_IPV4, and CONFIG_NF_TABLES_IPV6 for peers with IPv6 addresses)", err)
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("%w; the node's kernel needs CONFIG_NFT_QUEUE, or CONFIG_NFT_COMPAT with CONFIG_NETFILTER_XT_TARGET_NFQUEUE", err)
	default:
		return err
	}
}
