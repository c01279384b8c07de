package edt

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/model/shaping"
)

// The answers of a filter.
const (
	unspec = 0xffffffff // the next filter, or the qdisc
	stolen = 4
)

// The marks in cb[3] and cb[4] of a packet in its second pass, see bpf/edt.c. The kernel's test run
// gives each packet a socket.
const seenLow, seenHigh = 0x7a550e17, 0x9d1c63ab

var (
	peer4 = netip.MustParseAddr("198.51.100.7")
	peer6 = netip.MustParseAddr("2001:db8::7")
)

// buffer is struct __sk_buff of the kernel's interface.
type buffer struct {
	_              [8]uint32
	Priority       uint32
	_, Ifindex, _  uint32
	CB             [5]uint32
	Hash           uint32
	_              [20]uint32
	Tstamp         uint64
	WireLen, _     uint32
	_, _, Hwtstamp uint64
}

// loaded loads the program with this table.
func loaded(t *testing.T, table shaping.Table) *program {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("eBPF needs root")
	}
	p, err := load(len(table))
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(p.close)
	if err := p.write(table); err != nil {
		t.Fatal(err)
	}
	return p
}

func toward(address netip.Addr, link shaping.Link) shaping.Table {
	return shaping.Table{{Address: address, Out: link}}
}

// frame is a UDP packet in an Ethernet frame.
func frame(to netip.Addr) []byte {
	f := make([]byte, 14, 100)
	if to.Is4() {
		f[12], f[13] = 0x08, 0x00
		f = append(f, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, unix.IPPROTO_UDP, 0, 0, 192, 0, 2, 1)
	} else {
		f[12], f[13] = 0x86, 0xdd
		f = append(f, 0x60, 0, 0, 0, 0, 8, unix.IPPROTO_UDP, 64)
		f = append(f, make([]byte, 16)...)
	}
	f = append(f, to.AsSlice()...)
	return append(f, 0, 9, 0, 9, 0, 8, 0, 0)
}

// result is the result of the program for a packet.
type result struct {
	verdict       uint32
	out           buffer
	before, after uint64 // the kernel's clock around the run, ns
}

// second runs the program on a packet in its second pass.
func (p *program) second(t *testing.T, to netip.Addr, in buffer) result {
	t.Helper()
	in.CB[3], in.CB[4] = seenLow, seenHigh
	return p.run(t, to, in, 1)
}

func (p *program) run(t *testing.T, to netip.Addr, in buffer, repeat uint32) result {
	t.Helper()
	var r result
	var err error
	r.before = monotonic(t)
	r.verdict, err = p.program.Run(&ebpf.RunOptions{Data: frame(to), Context: in, ContextOut: &r.out, Repeat: repeat})
	r.after = monotonic(t)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func monotonic(t *testing.T) uint64 {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	return uint64(now.Nano())
}

func countersOf(t *testing.T, p *program, address netip.Addr) countersValue {
	t.Helper()
	all, err := p.counters()
	if err != nil {
		t.Fatal(err)
	}
	return all[address]
}

//go:embed bpf/edt.c bpf/edt.o bpf/edt.sha256
var sources embed.FS

// TestTheObjectIsMadeOfTheSource fails when only one of the two was changed: `make bpf` compiles.
func TestTheObjectIsMadeOfTheSource(t *testing.T) {
	recorded, err := sources.ReadFile("bpf/edt.sha256")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(recorded)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		want[name] = sum
	}
	got := map[string]string{}
	for _, name := range []string{"edt.c", "edt.o"} {
		content, err := sources.ReadFile("bpf/" + name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		got[name] = hex.EncodeToString(sum[:])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the object may be out of date: run `make bpf` (-recorded +found)\n%s", diff)
	}
}

func TestAPacketGetsItsDepartureTime(t *testing.T) {
	const delay = 50 * time.Millisecond
	far := monotonicAhead(t, 100*time.Millisecond)
	cases := map[string]struct {
		to                        netip.Addr
		in                        buffer
		wantBase                  uint64 // 0: now
		wantPriority, wantVerdict uint32
		untouched                 bool
	}{
		"IPv4":                       {to: peer4, wantVerdict: unspec},
		"IPv6":                       {to: peer6, wantVerdict: unspec},
		"an IPv4 address of no peer": {to: netip.MustParseAddr("198.51.100.8"), wantVerdict: unspec, untouched: true},
		"an IPv6 address of no peer": {to: netip.MustParseAddr("2001:db8::8"), wantVerdict: unspec, untouched: true},
		"one of no peer with a priority of control": {to: netip.MustParseAddr("198.51.100.8"), in: buffer{Priority: 7}, wantPriority: 7, wantVerdict: unspec, untouched: true},
		"a priority of control":                     {to: peer4, in: buffer{Priority: 7}, wantVerdict: unspec},
		"the same below a class":                    {to: peer4, in: buffer{Priority: 0x10007}, wantVerdict: unspec},
		"another priority":                          {to: peer4, in: buffer{Priority: 6}, wantPriority: 6, wantVerdict: unspec},
		"a time of its own, soon":                   {to: peer4, in: buffer{Tstamp: far}, wantBase: far, wantVerdict: unspec},
		"a time of its own, past":                   {to: peer4, in: buffer{Tstamp: 1}, wantVerdict: unspec},
		"a time by the clock on the wall":           {to: peer4, in: buffer{Tstamp: uint64(time.Now().UnixNano())}, wantVerdict: unspec},
		"a time too far away":                       {to: peer4, in: buffer{Tstamp: monotonicAhead(t, time.Minute)}, wantVerdict: unspec},
	}
	p := loaded(t, shaping.Table{{Address: peer4, Out: shaping.Link{Delay: delay}}, {Address: peer6, Out: shaping.Link{Delay: delay}}})
	for name, tc := range cases {
		r := p.second(t, tc.to, tc.in)
		if r.verdict != tc.wantVerdict || r.out.Priority != tc.wantPriority {
			t.Errorf("%s: verdict %d, priority %d; want %d and %d", name, int32(r.verdict), r.out.Priority, int32(tc.wantVerdict), tc.wantPriority)
		}
		least, most := r.before+uint64(delay), r.after+uint64(delay)
		switch {
		case tc.untouched:
			least, most = tc.in.Tstamp, tc.in.Tstamp
		case tc.wantBase > r.after:
			least, most = tc.wantBase+uint64(delay), tc.wantBase+uint64(delay)
		}
		if r.out.Tstamp < least || r.out.Tstamp > most {
			t.Errorf("%s: leaves at %d, want from %d to %d", name, r.out.Tstamp, least, most)
		}
	}
}

func monotonicAhead(t *testing.T, by time.Duration) uint64 { return monotonic(t) + uint64(by) }

func TestAPacketOfASocketIsConsumedAndNotCounted(t *testing.T) {
	inNewNetwork(t)
	p := loaded(t, toward(peer4, shaping.Link{Delay: time.Second, Loss: 1}))
	// The test run's device is the namespace's loopback, which is down, so the copy is lost.
	r := p.run(t, peer4, buffer{}, 1)
	if got := countersOf(t, p, peer4); r.verdict != stolen || got != (countersValue{}) {
		t.Errorf("verdict %d, counted %+v; want %d and nothing", int32(r.verdict), got, stolen)
	}
	// A packet to no peer needs no copy.
	if r := p.run(t, peer6, buffer{}, 1); r.verdict != unspec {
		t.Errorf("verdict on a packet that is not delayed: %d", int32(r.verdict))
	}
}

func TestLossTakesItsShare(t *testing.T) {
	const packets = 40_000
	for loss, band := range map[float64][2]uint64{0: {0, 0}, 0.01: {300, 500}, 0.5: {19_500, 20_500}, 1: {packets, packets}} {
		p := loaded(t, toward(peer4, shaping.Link{Loss: loss}))
		// Each call sends one packet. The Go runtime sometimes sends itself a signal, which
		// interrupts a call with many packets, and ebpf's Run then starts all of them anew.
		for range packets {
			p.run(t, peer4, buffer{CB: [5]uint32{3: seenLow, 4: seenHigh}}, 1)
		}
		got := countersOf(t, p, peer4)
		if got.Lost < band[0] || got.Lost > band[1] || got.Lost+got.Packets+got.Overlimit != packets {
			t.Errorf("loss %v: %+v of %d packets, want from %d to %d lost", loss, got, packets, band[0], band[1])
		}
	}
}

func TestARateSpacesPacketsAndBoundsTheirQueue(t *testing.T) {
	// 1,000 bytes take 40 ms. The second packet waits for the first, and the third would wait
	// longer than the queue allows.
	const cost = 40 * time.Millisecond
	p := loaded(t, toward(peer4, shaping.Link{Delay: time.Second, Rate: 200_000}))
	for try := 1; ; try++ {
		counted := countersOf(t, p, peer4)
		first := p.second(t, peer4, buffer{WireLen: 1000})
		second := p.second(t, peer4, buffer{WireLen: 1000})
		third := p.second(t, peer4, buffer{WireLen: 1000})
		if time.Duration(third.after-first.before) > 25*time.Millisecond && try < 20 {
			rewrite(t, p, toward(peer4, shaping.Link{Delay: time.Second, Rate: 200_000}))
			continue // the machine did other work meanwhile
		}
		if first.verdict != unspec || second.verdict != unspec || third.verdict != stolen {
			t.Errorf("verdicts %d, %d, %d", int32(first.verdict), int32(second.verdict), int32(third.verdict))
		}
		if got := time.Duration(second.out.Tstamp - first.out.Tstamp); got != cost {
			t.Errorf("the second leaves %v after the first, want %v", got, cost)
		}
		want := counted.plus(countersValue{Packets: 2, Bytes: 2000, Overlimit: 1})
		if got := countersOf(t, p, peer4); got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
		return
	}
}

// rewrite makes new versions of the table's links.
func rewrite(t *testing.T, p *program, table shaping.Table) {
	t.Helper()
	other := slices.Clone(table)
	for i := range other {
		other[i].Out.Rate++
	}
	if err := errors.Join(p.write(other), p.write(table)); err != nil {
		t.Fatal(err)
	}
}

func TestJitterKeepsTheOrder(t *testing.T) {
	link := shaping.Link{Delay: 50 * time.Millisecond, Jitter: 20 * time.Millisecond}
	p := loaded(t, toward(peer4, link))
	last, changes := uint64(0), 0
	for range 500 {
		r := p.second(t, peer4, buffer{})
		if r.out.Tstamp < last || r.out.Tstamp < r.before+uint64(30*time.Millisecond) || r.out.Tstamp > r.after+uint64(70*time.Millisecond) {
			t.Fatalf("leaves at %d, after one at %d, between %d and %d", r.out.Tstamp, last, r.before, r.after)
		}
		if r.out.Tstamp != last {
			changes++
		}
		last = r.out.Tstamp
	}
	if changes < 5 {
		t.Errorf("only %d different times of departure", changes)
	}
}

func TestJitterIsSpreadOverItsWholeRange(t *testing.T) {
	link := shaping.Link{Delay: 9 * time.Second, Jitter: time.Second}
	p := loaded(t, toward(peer4, link))
	var delays []time.Duration
	for range 400 {
		rewrite(t, p, toward(peer4, link)) // otherwise the first packet would delay the ones after it
		r := p.second(t, peer4, buffer{})
		delays = append(delays, time.Duration(r.out.Tstamp-r.before))
	}
	slices.Sort(delays)
	if first, middle, last := delays[0], delays[200], delays[399]; first > 8100*time.Millisecond || middle < 8800*time.Millisecond ||
		middle > 9200*time.Millisecond || last < 9900*time.Millisecond {
		t.Errorf("delays from %v to %v, median %v; want 9s±1s", first, last, middle)
	}
}

// Otherwise a change would take effect only after the earlier packets have left.
func TestAChangedLinkForgetsWhatWasBefore(t *testing.T) {
	p := loaded(t, toward(peer4, shaping.Link{Delay: 5 * time.Second, Jitter: 4 * time.Second, Rate: 1000}))
	p.second(t, peer4, buffer{})
	if err := p.write(toward(peer4, shaping.Link{Delay: time.Millisecond, Jitter: time.Millisecond})); err != nil {
		t.Fatal(err)
	}
	if r := p.second(t, peer4, buffer{}); r.verdict != unspec || r.out.Tstamp > r.after+uint64(2*time.Millisecond) {
		t.Errorf("verdict %d, leaves after %v", int32(r.verdict), time.Duration(r.out.Tstamp-r.before))
	}
}

func TestWriteChangesOnlyWhatDiffers(t *testing.T) {
	other := netip.MustParseAddr("198.51.100.9")
	p := loaded(t, shaping.Table{{Address: peer4, Out: shaping.Link{Delay: 1}}, {Address: peer6, Out: shaping.Link{Delay: 2}}})
	read := func() map[netip.Addr]linkValue {
		t.Helper()
		held, err := p.held()
		if err != nil {
			t.Fatal(err)
		}
		return held
	}
	p.second(t, peer4, buffer{})
	p.second(t, peer6, buffer{})
	before := read()
	if err := p.write(shaping.Table{{Address: other, Out: shaping.Link{Delay: 3}}, {Address: peer4, Out: shaping.Link{Delay: 1}}}); err != nil {
		t.Fatal(err)
	}
	after := read()
	if want := []netip.Addr{peer4, other}; !slices.Equal(slices.SortedFunc(maps.Keys(after), netip.Addr.Compare), want) {
		t.Errorf("the map holds %v, want %v", after, want)
	}
	if diff := cmp.Diff(before[peer4], after[peer4]); diff != "" {
		t.Errorf("a link that is the same was written (-before +after)\n%s", diff)
	}
	// The new link has the index of the removed one, and none of its counts.
	if after[other].Index != before[peer6].Index {
		t.Errorf("the new link has place %d, want that of the one that went, %d", after[other].Index, before[peer6].Index)
	}
	want := map[netip.Addr]uint64{peer4: 1, other: 0}
	for address, packets := range want {
		if got := countersOf(t, p, address).Packets; got != packets {
			t.Errorf("%s: counted %d packets, want %d", address, got, packets)
		}
	}
}

func TestAProgramHasRoomForItsLinks(t *testing.T) {
	for links, want := range map[int]int{0: smallest, 1: smallest, smallest: smallest, smallest + 1: 2 * smallest, 1000: 1024} {
		table := make(shaping.Table, links)
		for i := range table {
			table[i].Address = netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		}
		p := loaded(t, table)
		held, err := p.held()
		if err != nil || p.capacity != want || len(held) != links {
			t.Errorf("%d links: room for %d, want %d; holds %d (%v)", links, p.capacity, want, len(held), err)
		}
	}
}

func TestEveryLinkThatATableMayHaveHasAFlowOfItsOwn(t *testing.T) {
	const indexes = 1 << 15 // GENERATION_SHIFT in bpf/edt.c
	if got := capacityFor(shaping.MaxPeers); got > indexes {
		t.Errorf("room for %d links, of which %d have a flow of their own", got, indexes)
	}
}

func TestALinkSurvivesTheKernelsForm(t *testing.T) {
	for _, want := range []shaping.Link{
		{Rate: shaping.DefaultRate},
		{Delay: 1234567 * time.Nanosecond, Jitter: 567 * time.Nanosecond, Loss: 0.01, Rate: 20_000_000},
		{Delay: shaping.MaxDelay, Loss: 1, Rate: 1}, {Loss: 1e-9, Rate: 400_000_000_000}, {Loss: 0.123456789, Rate: 1},
	} {
		if got := valueOf(want).link(); got != want {
			t.Errorf("%+v became %+v", want, got)
		}
	}
}

// only drops all capabilities of the test's thread except these. The thread ends with the test.
func only(t *testing.T, capabilities ...int) {
	t.Helper()
	runtime.LockOSThread()
	var data [2]unix.CapUserData
	for _, c := range capabilities {
		data[c/32].Effective |= 1 << (c % 32)
		data[c/32].Permitted |= 1 << (c % 32)
	}
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0]); err != nil {
		t.Skipf("needs root: %v", err)
	}
}

func TestTwoCapabilitiesAreEnoughToLoad(t *testing.T) {
	only(t, unix.CAP_BPF, unix.CAP_NET_ADMIN)
	loaded(t, toward(peer4, shaping.Link{Delay: time.Second}))
}

func TestAMissingCapabilityIsNamed(t *testing.T) {
	only(t, unix.CAP_NET_ADMIN)
	_, err := load(0)
	if err == nil || !strings.Contains(err.Error(), "capabilities BPF and NET_ADMIN") {
		t.Errorf("the error is: %v", err)
	}
}

func BenchmarkProgram(b *testing.B) {
	for _, links := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("links=%d", links), func(b *testing.B) {
			p, err := load(links)
			if err != nil {
				b.Skip(err)
			}
			defer p.close()
			table := make(shaping.Table, links)
			for i := range table {
				table[i] = shaping.Peer{Address: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), Out: shaping.Link{Delay: time.Second, Rate: 1e15}}
			}
			if err := p.write(table); err != nil {
				b.Fatal(err)
			}
			in := buffer{CB: [5]uint32{3: seenLow, 4: seenHigh}}
			to := table[links/2].Address
			b.ResetTimer()
			if _, err := p.program.Run(&ebpf.RunOptions{Data: frame(to), Context: in, Repeat: uint32(b.N)}); err != nil {
				b.Fatal(err)
			}
		})
	}
}
