package netem

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Mark is the SO_MARK of the agent's own sockets. Marks do not leave the network namespace.
const Mark = 0x0a55a

// tableName of the silence. Silence changes no other objects.
const tableName = "assay_silence"

// Silence drops the packets of a network namespace. Its methods are not safe for concurrent use.
type Silence struct {
	conn            *nftables.Conn
	coordinatorPort uint16
	table           *nftables.Table
	gate            *nftables.Chain // "switch"
}

// OpenSilence opens the netlink connection in the network namespace of the calling thread. It
// changes nothing yet.
func OpenSilence(coordinatorPort uint16) (*Silence, error) {
	conn, err := nftables.New(nftables.AsLasting())
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	s := &Silence{conn: conn, coordinatorPort: coordinatorPort}
	s.table = &nftables.Table{Name: tableName, Family: nftables.TableFamilyINet}
	s.gate = &nftables.Chain{Name: "switch", Table: s.table}
	return s, nil
}

// Close closes the connection. It leaves an existing table in place.
func (s *Silence) Close() error { return s.conn.CloseLasting() }

// Check proves that a silence can begin in this namespace at an instant. It plans one for a far
// instant and removes the table. It leaves an existing table alone.
func (s *Silence) Check() error {
	there, err := s.exists()
	if err != nil || there {
		return err
	}
	if err := s.Prepare(); err != nil {
		return err
	}
	return errors.Join(s.ArmAt(time.Now().AddDate(1, 0, 0)), s.Remove())
}

// Prepare installs the disarmed table. It leaves an existing table as it is, armed or not.
func (s *Silence) Prepare() error {
	there, err := s.exists()
	if err != nil || there {
		return err
	}
	s.conn.AddTable(s.table)
	s.conn.AddChain(s.gate)
	accept := nftables.ChainPolicyAccept
	in := s.conn.AddChain(&nftables.Chain{
		Name: "in", Table: s.table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityRaw, Policy: &accept,
	})
	out := s.conn.AddChain(&nftables.Chain{
		Name: "out", Table: s.table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityRaw, Policy: &accept,
	})
	s.accept(in, metaIs(expr.MetaKeyIIFTYPE, binaryutil.NativeEndian.PutUint16(unix.ARPHRD_LOOPBACK)))
	s.accept(in, sourcePortIs(unix.IPPROTO_TCP, s.coordinatorPort))
	s.accept(in, sourcePortIs(unix.IPPROTO_UDP, 53))
	s.accept(in, sourcePortIs(unix.IPPROTO_TCP, 53))
	s.accept(in, isNeighbourDiscovery())
	s.accept(out, metaIs(expr.MetaKeyOIFTYPE, binaryutil.NativeEndian.PutUint16(unix.ARPHRD_LOOPBACK)))
	s.accept(out, metaIs(expr.MetaKeyMARK, binaryutil.NativeEndian.PutUint32(Mark)))
	s.accept(out, isNeighbourDiscovery())
	for _, chain := range []*nftables.Chain{in, out} {
		s.rule(chain, &expr.Verdict{Kind: expr.VerdictJump, Chain: s.gate.Name})
	}
	return s.commit("prepare the silence")
}

// ArmAt makes the prepared silence begin at an instant of the wall clock, or at once if that has
// passed. The kernel itself compares its clock with it, for every packet. So no process has to act
// at the instant, when the node may be busy. The silence ends if the clock is set back to before
// the instant. To make it last, call Arm after the instant.
func (s *Silence) ArmAt(instant time.Time) error {
	// The kernel compares bytes, so both are in network byte order.
	s.rule(s.gate,
		&expr.Meta{Key: metaKeyTime, Register: 1},
		&expr.Byteorder{SourceRegister: 1, DestRegister: 1, Op: expr.ByteorderHton, Len: 8, Size: 8},
		&expr.Cmp{Op: expr.CmpOpGte, Register: 1, Data: binaryutil.BigEndian.PutUint64(uint64(instant.UnixNano()))},
		&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop})
	return s.commit("plan the silence")
}

// metaKeyTime is CLOCK_REALTIME in ns (NFT_META_TIME_NS; Linux 5.4).
const metaKeyTime expr.MetaKey = 30

// Arm makes the prepared silence begin. It sends one message, and the silence begins before Arm
// returns.
func (s *Silence) Arm() error {
	s.rule(s.gate, &expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop})
	return s.commit("begin the silence")
}

// Armed reads from the kernel whether the silence has begun or is planned.
func (s *Silence) Armed() (bool, error) {
	there, err := s.exists()
	if err != nil || !there {
		return false, err
	}
	rules, err := s.conn.GetRules(s.table, s.gate)
	if err != nil {
		return false, fmt.Errorf("read the silence: %w", err)
	}
	return len(rules) > 0, nil
}

// Disarm ends the silence and leaves the table prepared for the next one: removing a chain would
// drop the packets that a shaper in this namespace holds back. It does nothing if the silence is
// not armed, or not even prepared.
func (s *Silence) Disarm() error {
	armed, err := s.Armed()
	if err != nil || !armed {
		return err
	}
	s.conn.FlushChain(s.gate)
	if err := s.commit("end the silence"); err != nil {
		return err
	}
	if armed, err = s.Armed(); err != nil {
		return err
	}
	if armed {
		return errors.New("end the silence: its rule is still there after its removal")
	}
	return nil
}

// Remove ends the silence, removes the table and proves by reading back that it is gone.
func (s *Silence) Remove() error {
	there, err := s.exists()
	if err != nil || !there {
		return err
	}
	s.conn.DelTable(s.table)
	if err := s.commit("end the silence"); err != nil {
		return err
	}
	if there, err = s.exists(); err != nil {
		return err
	}
	if there {
		return errors.New("end the silence: the table is still there after its removal")
	}
	return nil
}

func (s *Silence) exists() (bool, error) {
	tables, err := s.conn.ListTablesOfFamily(nftables.TableFamilyINet)
	if err != nil {
		return false, usable(fmt.Errorf("read the packet filter: %w", err))
	}
	for _, table := range tables {
		if table.Name == tableName {
			return true, nil
		}
	}
	return false, nil
}

func (s *Silence) commit(what string) error {
	if err := s.conn.Flush(); err != nil {
		return usable(fmt.Errorf("%s: %w", what, err))
	}
	return nil
}

// usable adds a hint for the user.
func usable(err error) error {
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w; the agent's container needs the capability NET_ADMIN", err)
	case errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.EPROTONOSUPPORT), errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("%w; the node's kernel needs nf_tables with the inet family, as of Linux 5.4", err)
	default:
		return err
	}
}

func (s *Silence) rule(chain *nftables.Chain, exprs ...expr.Any) {
	s.conn.AddRule(&nftables.Rule{Table: s.table, Chain: chain, Exprs: exprs})
}

func (s *Silence) accept(chain *nftables.Chain, match []expr.Any) {
	s.rule(chain, append(match, &expr.Verdict{Kind: expr.VerdictAccept})...)
}

func metaIs(key expr.MetaKey, value []byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: key, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: value},
	}
}

// sourcePortIs matches the first field of the TCP or UDP header.
func sourcePortIs(protocol byte, port uint16) []expr.Any {
	return append(metaIs(expr.MetaKeyL4PROTO, []byte{protocol}),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
	)
}

// isNeighbourDiscovery matches ICMPv6 types 133 to 137, the counterpart of ARP for IPv6.
func isNeighbourDiscovery() []expr.Any {
	return append(metaIs(expr.MetaKeyL4PROTO, []byte{unix.IPPROTO_ICMPV6}),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 1},
		&expr.Range{Op: expr.CmpOpEq, Register: 1, FromData: []byte{133}, ToData: []byte{137}},
	)
}
