package edt

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/model/shaping"
)

// recorded is what the filter after ours recorded: how many UDP packets it got, and the last of
// them.
type recorded struct {
	Count, Hash, Priority, HasSocket uint32
	Tstamp                           uint64
}

// recorder attaches a filter behind ours, which records the packets that reach it. The packets in
// the queue after it cannot be seen otherwise.
func (p *pods) recorder() *ebpf.Map {
	p.t.Helper()
	seen, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 24, MaxEntries: 1})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { seen.Close() })
	const priorityAt, hashAt, tstampAt, socketAt = 32, 68, 152, 168 // offsets in struct __sk_buff
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "Dual MIT/GPL", Instructions: asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		// Only UDP: on a new device the kernel itself sends IPv6 packets (multicast listeners,
		// routers), at instants of its own choice.
		asm.LoadAbs(12, asm.Half), // the type of the frame
		asm.JEq.Imm(asm.R0, unix.ETH_P_IP, "IPv4"), asm.JNE.Imm(asm.R0, unix.ETH_P_IPV6, "out"),
		asm.LoadAbs(14+6, asm.Byte), asm.Ja.Label("protocol"),
		asm.LoadAbs(14+9, asm.Byte).WithSymbol("IPv4"),
		asm.JNE.Imm(asm.R0, unix.IPPROTO_UDP, "out").WithSymbol("protocol"),
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, seen.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.Word), asm.Add.Imm(asm.R1, 1), asm.StoreMem(asm.R0, 0, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.R6, hashAt, asm.Word), asm.StoreMem(asm.R0, 4, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.R6, priorityAt, asm.Word), asm.StoreMem(asm.R0, 8, asm.R1, asm.Word),
		asm.Mov.Imm(asm.R2, 0),
		asm.LoadMem(asm.R1, asm.R6, socketAt, asm.DWord), asm.JEq.Imm(asm.R1, 0, "none"),
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreMem(asm.R0, 12, asm.R2, asm.Word).WithSymbol("none"),
		asm.LoadMem(asm.R1, asm.R6, tstampAt, asm.DWord), asm.StoreMem(asm.R0, 16, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, -1).WithSymbol("out"),
		asm.Return(),
	}})
	if err != nil {
		p.t.Fatalf("%+v", err)
	}
	p.t.Cleanup(func() { program.Close() })
	err = netlink.FilterAdd(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: p.link.Attrs().Index, Parent: netlink.HANDLE_MIN_EGRESS, Handle: 1, Protocol: unix.ETH_P_ALL, Priority: filterPriority + 1,
		},
		Fd: program.FD(), Name: "recorder", DirectAction: true,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return seen
}

// last returns the record since the last call.
func last(t *testing.T, seen *ebpf.Map) recorded {
	t.Helper()
	var r recorded
	if err := errors.Join(seen.Lookup(uint32(0), &r), seen.Put(uint32(0), recorded{})); err != nil {
		t.Fatal(err)
	}
	return r
}

// This test needs no fq: packets pass our filter at a real device, and leave at once.
func TestPacketsOfSocketsPassOnceWithATimeAndWithoutTheirSocket(t *testing.T) {
	p := newPods(t)
	const delay = 5 * time.Second
	program := loaded(t, out(map[netip.Addr]shaping.Link{p.four: {Delay: delay}, p.six: {Delay: delay}}))
	s := p.open()
	if err := errors.Join(s.addClsact(), s.attach(program, 65535)); err != nil {
		t.Fatal(err)
	}
	seen := p.recorder()
	flows := map[uint32]bool{}
	for _, to := range []netip.Addr{p.four, p.six} {
		receiver := p.listen(to)
		network := map[bool]string{true: "udp4", false: "udp6"}[to.Is4()]
		unconnected, err := net.ListenUDP(network, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unconnected.Close() })
		for name, write := range map[string]func() error{
			"connected": func() error { _, err := p.dial(to).Write([]byte{0, 0}); return err },
			"unconnected": func() error {
				_, err := unconnected.WriteToUDPAddrPort([]byte{0, 0}, netip.AddrPortFrom(to, 5000))
				return err
			},
		} {
			taken := receiver.taking(1)
			before := monotonic(t)
			if err := write(); err != nil {
				t.Fatal(err)
			}
			after := monotonic(t)
			taken()
			r := last(t, seen)
			if r.Count != 1 || r.HasSocket != 0 || r.Hash&0x80000000 == 0 || r.Tstamp < before+uint64(delay) || r.Tstamp > after+uint64(delay) {
				t.Errorf("%s to %s: seen %+v, sent between %d and %d", name, to, r, before, after)
			}
			flows[r.Hash] = true
		}
		if got := countersOf(t, program, to); got.Packets != 2 || got.Failed != 0 {
			t.Errorf("to %s: counted %+v, want 2 packets", to, got)
		}
	}
	if len(flows) != 2 {
		t.Errorf("packets of two links are in %d flows", len(flows))
	}
}

func TestPacketsToOthersKeepTheirSocketAndStayOutOfTheLinksFlows(t *testing.T) {
	p := newPods(t)
	program := loaded(t, out(map[netip.Addr]shaping.Link{p.four: {Delay: time.Second}}))
	s := p.open()
	if err := errors.Join(s.addClsact(), s.attach(program, 65535)); err != nil {
		t.Fatal(err)
	}
	seen := p.recorder()
	receiver := p.listen(p.four2)
	// Among 20 sockets, some have a hash in the upper half.
	for range 20 {
		receiver.receive(p.dial(p.four2), 1, 0)
		if r := last(t, seen); r.Count != 1 || r.HasSocket != 1 || r.Hash&0x80000000 != 0 || r.Tstamp != 0 {
			t.Fatalf("seen %+v", r)
		}
	}
}

func TestAConnectionIsCarriedWhole(t *testing.T) {
	p := newPods(t)
	program := loaded(t, out(map[netip.Addr]shaping.Link{p.four: {}}))
	s := p.open()
	if err := errors.Join(s.addClsact(), s.attach(program, 65535)); err != nil {
		t.Fatal(err)
	}
	const size = 1 << 20
	p.transfer(p.four, size, 10*time.Second)
	// There would be many more bytes if packets were sent twice, or consumed without a copy and
	// sent again. TCP itself repeats a few on a busy machine.
	if got := countersOf(t, program, p.four); got.Bytes < size || got.Bytes > size*3/2 || got.Failed != 0 {
		t.Errorf("counted %+v of %d bytes", got, size)
	}
}
