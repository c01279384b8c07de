package edt

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/netem"
)

var addresses = cmpopts.EquateComparable(netip.Addr{})

// state is the kernel's description of the device's qdiscs, filters and gso_max_segs, without
// counters.
func (p *pods) state() string {
	p.t.Helper()
	s := p.open()
	defer s.Close()
	seen, err := s.look()
	if err != nil {
		p.t.Fatal(err)
	}
	var text strings.Builder
	for _, q := range seen.qdiscs {
		fmt.Fprintf(&text, "%v parent %x references %d options %x\n", q, q.parent, q.references, q.options)
	}
	for _, parent := range []uint32{netlink.HANDLE_MIN_EGRESS, netlink.HANDLE_MIN_INGRESS} {
		filters, err := netlink.FilterList(p.link, parent)
		if err == nil {
			for _, f := range filters {
				text.WriteString(f.Attrs().String() + "\n")
			}
		}
	}
	fmt.Fprintf(&text, "gso_max_segs %d", seen.link.Attrs().GSOMaxSegs)
	return text.String()
}

func (p *pods) mustApply(s *Shaper, peers map[netip.Addr]shaping.Link) {
	p.t.Helper()
	if err := s.Apply(out(peers)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pods) mustRead(s *Shaper, want map[netip.Addr]shaping.Link) {
	p.t.Helper()
	got, err := s.Read()
	if err != nil {
		p.t.Fatal(err)
	}
	if diff := cmp.Diff(outgoing(out(want)), got, addresses); diff != "" {
		p.t.Errorf("read back (-want +got)\n%s", diff)
	}
}

func (p *pods) healthy(s *Shaper) {
	p.t.Helper()
	if health, err := s.Health(); err != nil || health != (netem.Health{}) {
		p.t.Errorf("health %+v (%v)", health, err)
	}
}

// band reports delays that are shorter than want, or longer than the scheduling of this process
// explains.
func band(t *testing.T, what string, took []time.Duration, want time.Duration) {
	t.Helper()
	within(t, what, took, want, 2*time.Millisecond)
}

// within reports delays that are shorter or longer than want. In virtual time, at most 1% may be
// longer by more than most. Elsewhere the median may be longer by at most 5 ms.
func within(t *testing.T, what string, took []time.Duration, want, most time.Duration) {
	t.Helper()
	sorted := slices.Sorted(slices.Values(took))
	first, median, p99 := sorted[0], sorted[len(sorted)/2], sorted[(len(sorted)-1)*99/100]
	t.Logf("%s: %d packets, first %v, median %v, 99%% %v, last %v", what, len(took), first, median, p99, sorted[len(sorted)-1])
	late := p99 - want
	if os.Getenv("ASSAY_VM") == "" {
		late, most = median-want, 5*time.Millisecond
	}
	if first < want || late > most {
		t.Errorf("%s: delays of %v and more, median %v, 99%% %v; want %v", what, first, median, p99, want)
	}
}

func TestADeviceOfAnotherProgramIsRefused(t *testing.T) {
	index := func(p *pods) int { return p.link.Attrs().Index }
	cases := map[string]struct {
		set  func(p *pods) error
		want string
	}{
		"a root qdisc": {func(p *pods) error {
			return netlink.QdiscAdd(&netlink.Tbf{
				QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index(p), Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
				Rate:       1_000_000_000, Limit: 1 << 20, Buffer: 1 << 20,
			})
		}, "its root qdisc is tbf 1:, not the kernel's default"},
		"a clsact qdisc": {func(p *pods) error {
			return netlink.QdiscAdd(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index(p), Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}})
		}, "it has a clsact qdisc"},
		"an ingress qdisc": {func(p *pods) error {
			return netlink.QdiscAdd(&netlink.Ingress{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index(p), Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_INGRESS}})
		}, "in the place of clsact"},
	}
	for name, tc := range cases {
		p := newPods(t)
		if err := tc.set(p); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		before := p.state()
		s := p.open()
		if err := s.Apply(toward(p.four, shaping.Link{})); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: the error is %v, want %q in it", name, err, tc.want)
		}
		if table, err := s.Read(); table != nil || err != nil {
			t.Errorf("%s: read %v (%v)", name, table, err)
		}
		if err := s.Remove(); err != nil {
			t.Errorf("%s: remove: %v", name, err)
		}
		if after := p.state(); after != before {
			t.Errorf("%s: was changed from\n%s to\n%s", name, before, after)
		}
	}
}

func TestOpenRefusesWhatCannotBeShaped(t *testing.T) {
	newPods(t)
	for device, want := range map[string]string{"lo": "loopback", "eth7": "not found"} {
		if _, err := Open(device); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", device, err, want)
		}
	}
}

func TestATableThatIsWrongIsRefused(t *testing.T) {
	p := newPods(t)
	before := p.state()
	if err := p.open().Apply(toward(p.four, shaping.Link{Delay: time.Hour})); err == nil || !strings.Contains(err.Error(), "delay") {
		t.Errorf("the error is %v", err)
	}
	if after := p.state(); after != before {
		t.Error("the device was changed")
	}
}

// Without fq, Apply must fail with a reason; with fq, the check passes. In both cases no object may
// remain.
func TestTheCheckTellsWhatTheKernelCan(t *testing.T) {
	inNewNetwork(t)
	only(t, unix.CAP_BPF, unix.CAP_NET_ADMIN)
	want := error(nil)
	if !hasFQ(t) {
		want = ErrNoFQ
	}
	for range 2 {
		began := time.Now()
		if err := Check(t.Context()); !errors.Is(err, want) {
			t.Errorf("the check says %v, want %v", err, want)
		}
		t.Logf("took %v: %v", time.Since(began), want)
		links, err := netlink.LinkList()
		if err != nil || len(links) != 1 {
			t.Errorf("the check left %v (%v)", links, err)
		}
	}
}

// hasFQ finds out in another way than the package.
func hasFQ(t *testing.T) bool {
	t.Helper()
	device := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "scratch"}, PeerName: "scratch1"}
	if err := netlink.LinkAdd(device); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = netlink.LinkDel(device) }()
	err := netlink.QdiscAdd(netlink.NewFq(netlink.QdiscAttrs{LinkIndex: device.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}))
	if err == nil {
		return true
	}
	if os.Getenv("ASSAY_VM") != "" || !errors.Is(err, unix.ENOENT) {
		t.Fatalf("add an fq qdisc: %v", err)
	}
	return false
}

func TestTheCheckReplacesWhatAKilledOneLeft(t *testing.T) {
	inNewNetwork(t)
	has := hasFQ(t)
	// These are the names of package scratch.
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "assaytry0"}, PeerName: "assaytry1"}); err != nil {
		t.Fatal(err)
	}
	if err := Check(t.Context()); (err == nil) != has {
		t.Errorf("the check says %v", err)
	}
	if links, err := netlink.LinkList(); err != nil || len(links) != 1 {
		t.Errorf("the check left %v (%v)", links, err)
	}
}

func TestLinksAreDelayedAndOthersAreNot(t *testing.T) {
	p := newPods(t)
	s := p.shaper()
	p.mustApply(s, map[netip.Addr]shaping.Link{p.four: {Delay: 20 * time.Millisecond}, p.six: {Delay: 50 * time.Millisecond}})
	p.mustRead(s, map[netip.Addr]shaping.Link{p.four: {Delay: 20 * time.Millisecond}, p.six: {Delay: 50 * time.Millisecond}})
	for _, tc := range []struct {
		to   netip.Addr
		want time.Duration
	}{{p.four, 20 * time.Millisecond}, {p.six, 50 * time.Millisecond}, {p.four2, 0}, {p.six2, 0}} {
		band(t, tc.to.String(), p.listen(tc.to).receive(p.dial(tc.to), 60, 5*time.Millisecond), tc.want)
	}
	counters, err := s.Counters()
	if err != nil {
		t.Fatal(err)
	}
	const size = 14 + 20 + 8 + 2
	want := map[netip.Addr]netem.Counters{p.four: {Packets: 60, Bytes: 60 * size}, p.six: {Packets: 60, Bytes: 60 * (size + 20)}}
	if diff := cmp.Diff(want, counters, addresses); diff != "" {
		t.Errorf("counters (-want +got)\n%s", diff)
	}
	p.healthy(s)
}

func TestDelaysAreExact(t *testing.T) {
	p := newPods(t)
	s := p.shaper()
	receiver, conn := p.listen(p.four), p.dial(p.four)
	for _, delay := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond} {
		p.mustApply(s, map[netip.Addr]shaping.Link{p.four: {Delay: delay}})
		within(t, delay.String(), receiver.receive(conn, 100, 10*time.Millisecond), delay, 500*time.Microsecond)
	}
	p.healthy(s)
}

// Links that share a flow of fq delay each other.
func TestAShortLinkDoesNotWaitForALongOne(t *testing.T) {
	p := newPods(t)
	s := p.shaper()
	p.mustApply(s, map[netip.Addr]shaping.Link{p.four: {Delay: 300 * time.Millisecond}, p.four2: {Delay: time.Millisecond}})
	far := p.listen(p.four).taking(100)
	near := p.listen(p.four2).taking(100)
	toFar, toNear := p.dial(p.four), p.dial(p.four2)
	var sent []time.Time
	for i := range 100 {
		send(t, toFar, i, 1, 0)
		sent = append(sent, send(t, toNear, i, 1, 0)...)
		time.Sleep(2 * time.Millisecond)
	}
	var took []time.Duration
	for i, a := range near() {
		took = append(took, a.at.Sub(sent[i]))
	}
	band(t, "the short link", took, time.Millisecond)
	far()
}

// fq does not delay packets with TC_PRIO_CONTROL, unless the program clears it.
func TestAPriorityOfControlIsDelayedToo(t *testing.T) {
	p := newPods(t)
	s := p.shaper()
	p.mustApply(s, map[netip.Addr]shaping.Link{p.four: {Delay: 50 * time.Millisecond}})
	conn := p.dial(p.four)
	raw, err := conn.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PRIORITY, 7) })
	}
	if err != nil {
		t.Fatal(err)
	}
	band(t, "control", p.listen(p.four).receive(conn, 20, time.Millisecond), 50*time.Millisecond)
}

func TestABurstIsKeptWhole(t *testing.T) {
	p := newPods(t)
	s := p.shaper()
	p.mustApply(s, map[netip.Addr]shaping.Link{p.four: {Delay: 200 * time.Millisecond}})
	p.listen(p.four).receive(p.dial(p.four), 5000, 0)
	p.healthy(s)
}

func TestAChangeActsAtOnceAndKeepsWhatIsInFlight(t *testing.T) {
	p := newPods(t)
	s := p.shaper()
	p.mustApply(s, map[netip.Addr]shaping.Link{p.four: {Delay: 800 * time.Millisecond}})
	taken := p.listen(p.four).taking(20)
	conn := p.dial(p.four)
	sent := send(t, conn, 0, 10, 0)
	before := p.state()
	p.mustApply(s, map[netip.Addr]shaping.Link{p.four: {Delay: 10 * time.Millisecond}})
	if after := p.state(); after != before {
		t.Errorf("a change of a link changed the device from\n%s to\n%s", before, after)
	}
	// The packets are far apart, so that other work of the kernel delays only one of them.
	sent = append(sent, send(t, conn, 10, 10, 5*time.Millisecond)...)
	took := make([]time.Duration, 20)
	var order []int
	for _, a := range taken() {
		took[a.number] = a.at.Sub(sent[a.number])
		order = append(order, a.number)
	}
	band(t, "before the change", took[:10], 800*time.Millisecond)
	band(t, "after the change", took[10:], 10*time.Millisecond)
	if order[0] != 10 || order[19] != 9 {
		t.Errorf("arrived in the order %v", order)
	}
	p.healthy(s)
}

func TestReadGivesTheOutgoingHalfInOrder(t *testing.T) {
	p := newPods(t)
	s := p.shaper()
	link := shaping.Link{Delay: time.Second, Jitter: time.Millisecond, Loss: 0.015, Rate: 3_000_000}
	mapped := netip.AddrFrom16(p.four.As16())
	if err := s.Apply(shaping.Table{{Address: p.six, In: link}, {Address: mapped, Out: link, In: link}}); err != nil {
		t.Fatal(err)
	}
	want := shaping.Table{{Address: p.four, Out: link}, {Address: p.six, Out: shaping.Link{Rate: shaping.DefaultRate}}}
	got, err := s.Read()
	if diff := cmp.Diff(want, got, addresses); diff != "" || err != nil {
		t.Errorf("read (-want +got)\n%s%v", diff, err)
	}
}

func TestApplyingTheSameChangesNothing(t *testing.T) {
	p := newPods(t)
	s := p.shaper()
	table := map[netip.Addr]shaping.Link{p.four: {Delay: 100 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.25, Rate: 5_000_000}, p.six: {Delay: time.Second}}
	p.mustApply(s, table)
	held, err := s.program.held()
	if err != nil {
		t.Fatal(err)
	}
	before := p.state()
	p.mustApply(s, table)
	again, err := s.program.held()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(held, again, addresses); diff != "" || p.state() != before {
		t.Errorf("the map (-first +second)\n%s\nthe device\n%s\n%s", diff, before, p.state())
	}
	p.mustRead(s, table)
}

func TestATableThatOutgrowsItsProgramKeepsPacketsAndCounts(t *testing.T) {
	p := newPods(t)
	s := p.shaper()
	peers := map[netip.Addr]shaping.Link{p.four: {Delay: 500 * time.Millisecond}}
	p.mustApply(s, peers)
	taken := p.listen(p.four).taking(20)
	conn := p.dial(p.four)
	send(t, conn, 0, 10, 0)
	for i := range 2 * smallest {
		peers[netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})] = shaping.Link{Delay: time.Second}
	}
	p.mustApply(s, peers)
	p.mustRead(s, peers)
	send(t, conn, 10, 10, 0)
	taken()
	counters, err := s.Counters()
	if err != nil || counters[p.four].Packets != 20 || len(counters) != len(peers) {
		t.Errorf("counted %+v for %s, %d links (%v)", counters[p.four], p.four, len(counters), err)
	}
	p.healthy(s)
}
