package htb

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/netem"
	"assay.dev/assay/operator/internal/node/netem/nettest"
	"assay.dev/assay/operator/internal/node/netem/scratch"
)

const ms = time.Millisecond

func shaper(t *testing.T, p *nettest.Pod) *Shaper {
	t.Helper()
	var s *Shaper
	p.Do(func() (err error) {
		s, err = Open(nettest.Device)
		return err
	})
	t.Cleanup(func() { s.Close() })
	return s
}

// pods makes two pods. It skips the test where the kernel cannot shape.
func pods(t *testing.T) (a, b *nettest.Pod) {
	t.Helper()
	a, b = nettest.Pair(t, 4)
	nettest.Need(t, a.Try(func() error { return Check(t.Context()) }))
	return a, b
}

func apply(t *testing.T, s *Shaper, table shaping.Table) {
	t.Helper()
	if err := s.Apply(table); err != nil {
		t.Fatal(err)
	}
	got, err := s.Read()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(onlyOut(table.Normalized()), got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Fatalf("read back (-want +got):\n%s", diff)
	}
}

// took fails the test unless a packet to the address takes as long as wanted. A loaded machine
// without virtual time may take longer, within a band.
func took(t *testing.T, a, b *nettest.Pod, to netip.Addr, want time.Duration) {
	t.Helper()
	band := 500 * ms
	if nettest.InVM() {
		band = ms
	}
	if got := nettest.Took(a, b, to, want+2*time.Second); got < want || got > want+band {
		t.Errorf("a packet to %s took %v, want %v", to, got, want)
	}
}

func TestATableIsAppliedChangedAdoptedAndRemoved(t *testing.T) {
	a, b := pods(t)
	before := a.Qdiscs()
	s := shaper(t, a)
	if table, err := s.Read(); table != nil || err != nil {
		t.Errorf("nothing is shaped, but read back %v (%v)", table, err)
	}
	first := shaping.Table{
		{Address: b.IPv4(1), Out: shaping.Link{Delay: 50 * ms}},
		{Address: b.IPv6(1), Out: shaping.Link{Delay: 50 * ms}},
		{Address: b.IPv4(2), Out: shaping.Link{Delay: 20 * ms, Jitter: 5 * ms}},
		{Address: b.IPv6(2), Out: shaping.Link{Delay: 30 * ms, Loss: 0.25, Rate: 80_000_000}},
	}
	apply(t, s, first)
	took(t, a, b, b.IPv4(1), 50*ms)
	took(t, a, b, b.IPv6(1), 50*ms)
	took(t, a, b, b.IPv4(3), 0)
	took(t, a, b, b.IPv6(3), 0)

	shaped := a.Qdiscs()
	apply(t, s, first)
	if diff := cmp.Diff(shaped, a.Qdiscs()); diff != "" {
		t.Errorf("the same table again changed something:\n%s", diff)
	}

	second := shaping.Table{ // one link stays, two change, one leaves, one comes
		{Address: b.IPv4(1), Out: shaping.Link{Delay: 50 * ms}},
		{Address: b.IPv6(1), Out: shaping.Link{Delay: 10 * ms}},
		{Address: b.IPv4(2), Out: shaping.Link{Delay: 40 * ms}},
		{Address: b.IPv4(3), Out: shaping.Link{Loss: 1}},
	}
	apply(t, s, second)
	took(t, a, b, b.IPv6(1), 10*ms)
	took(t, a, b, b.IPv4(2), 40*ms)
	took(t, a, b, b.IPv6(2), 0)
	if got := nettest.Took(a, b, b.IPv4(3), 300*ms); got != 0 {
		t.Errorf("a packet on a link with loss 1 arrived after %v", got)
	}

	// The process dies, and another one comes.
	s.Close()
	next := shaper(t, a)
	took(t, a, b, b.IPv4(1), 50*ms)
	apply(t, next, second)
	apply(t, next, first)
	took(t, a, b, b.IPv4(1), 50*ms)
	next.Close()
	last := shaper(t, a)
	for range 2 {
		if err := last.Remove(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, a.Qdiscs()); diff != "" {
			t.Errorf("not as before (-before +after):\n%s", diff)
		}
	}
	took(t, a, b, b.IPv4(1), 0)
}

// stream sends numbered packets at an interval. It returns the numbers that arrive, until none has
// come for the time of silence.
func stream(t *testing.T, a, b *nettest.Pod, to netip.Addr, n, size int, interval, silence time.Duration, each func(i int)) (numbers []int, took []time.Duration) {
	t.Helper()
	listener := b.ListenUDP(to)
	conn := a.DialUDP(listener.LocalAddr())
	sent := make([]time.Time, n)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(max(interval, 1))
		defer tick.Stop()
		packet := make([]byte, size)
		for i := range n {
			if interval > 0 {
				<-tick.C
			}
			each(i)
			binary.BigEndian.PutUint32(packet, uint32(i))
			sent[i] = time.Now()
			if _, err := conn.Write(packet); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	buffer := make([]byte, 2048)
	for {
		_ = listener.SetReadDeadline(time.Now().Add(silence))
		if _, err := listener.Read(buffer); err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
			break
		}
		i := int(binary.BigEndian.Uint32(buffer))
		numbers, took = append(numbers, i), append(took, time.Since(sent[i]))
	}
	<-done
	return numbers, took
}

func nothing(int) {}

func TestPacketsKeepTheirOrderUnderJitter(t *testing.T) {
	a, b := pods(t)
	s := shaper(t, a)
	apply(t, s, shaping.Table{{Address: b.IPv4(1), Out: shaping.Link{Delay: 50 * ms, Jitter: 20 * ms}}})
	numbers, took := stream(t, a, b, b.IPv4(1), 400, 100, 10*ms, time.Second, nothing)
	if len(numbers) != 400 || !slices.IsSorted(numbers) {
		t.Errorf("%d of 400 packets arrived, in order: %v", len(numbers), slices.IsSorted(numbers))
	}
	slices.Sort(took)
	if p1, p50, p99 := took[3], took[200], took[395]; p1 < 30*ms || p1 > 40*ms || p50 < 45*ms || p50 > 65*ms || p99 < 60*ms || p99 > 90*ms {
		t.Errorf("delays p1 %v, p50 %v, p99 %v; want 30 to 70 ms around 50 ms, and a little more for those that wait for the one before", p1, p50, p99)
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
}

func TestWhatIsInFlightArrives(t *testing.T) {
	a, b := pods(t)
	before := a.Qdiscs()
	for name, during := range map[string]func(s *Shaper) error{
		"a shorter delay": func(s *Shaper) error {
			return s.Apply(shaping.Table{{Address: b.IPv4(1), Out: shaping.Link{Delay: 10 * ms}}})
		},
		"a class of its own": func(s *Shaper) error {
			return s.Apply(shaping.Table{{Address: b.IPv4(1), Out: shaping.Link{Delay: 90 * ms, Jitter: ms}}})
		},
		"the peer leaves":       func(s *Shaper) error { return s.Apply(nil) },
		"the shaper is removed": (*Shaper).Remove,
	} {
		t.Run(name, func(t *testing.T) {
			s := shaper(t, a)
			apply(t, s, shaping.Table{{Address: b.IPv4(1), Out: shaping.Link{Delay: 100 * ms}}})
			changed := make(chan error, 1)
			numbers, _ := stream(t, a, b, b.IPv4(1), 300, 100, ms, time.Second, func(i int) {
				if i == 150 {
					go func() { changed <- during(s) }()
				}
			})
			if err := <-changed; err != nil {
				t.Error(err)
			}
			if len(numbers) != 300 {
				t.Errorf("%d of 300 packets arrived", len(numbers))
			}
			if err := s.Remove(); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(before, a.Qdiscs()); diff != "" {
				t.Errorf("not as before (-before +after):\n%s", diff)
			}
		})
	}
}

func TestCountersTellEachLink(t *testing.T) {
	a, b := pods(t)
	s := shaper(t, a)
	table := shaping.Table{
		{Address: b.IPv4(1), Out: shaping.Link{Delay: 5 * ms}},
		{Address: b.IPv4(2), Out: shaping.Link{Delay: 5 * ms}},
		{Address: b.IPv6(1), Out: shaping.Link{Delay: 5 * ms, Loss: 0.3}},
	}
	apply(t, s, table)
	const n, size = 500, 100
	wire := func(a netip.Addr) uint64 { return uint64(size + 8 + 14 + map[bool]int{true: 20, false: 40}[a.Is4()]) }
	arrived := map[netip.Addr]int{}
	for address, n := range map[netip.Addr]int{b.IPv4(1): n, b.IPv4(2): n / 2, b.IPv6(1): n} {
		numbers, _ := stream(t, a, b, address, n, size, 100*time.Microsecond, 300*ms, nothing)
		arrived[address] = len(numbers)
	}
	if p := arrived[b.IPv6(1)]; p < n*60/100 || p > n*80/100 {
		t.Errorf("%d of %d packets arrived at a loss of 30 %%", p, n)
	}
	check := func() {
		t.Helper()
		counters, err := s.Counters()
		if err != nil {
			t.Fatal(err)
		}
		for address, n := range map[netip.Addr]int{b.IPv4(1): n, b.IPv4(2): n / 2, b.IPv6(1): n} {
			want := netem.Counters{Packets: uint64(arrived[address]), Bytes: uint64(arrived[address]) * wire(address), Lost: uint64(n - arrived[address])}
			if got := counters[address]; got != want {
				t.Errorf("%s: counters %+v, want %+v", address, got, want)
			}
		}
	}
	check()
	// The counters survive when links move to other classes.
	table[0].Out.Jitter, table[1].Out.Delay, table[2].Out.Loss = ms, 7*ms, 0
	apply(t, s, table)
	check()
	if h, err := s.Health(); err != nil || h != (netem.Health{}) {
		t.Errorf("health %+v (%v), want that nothing happened", h, err)
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
}

func TestARateHoldsAndItsBacklogIsBounded(t *testing.T) {
	a, b := pods(t)
	s := shaper(t, a)
	const rate = 20_000_000
	apply(t, s, shaping.Table{{Address: b.IPv4(1), Out: shaping.Link{Delay: 20 * ms, Rate: rate}}})
	const n, size = 2000, 1400 // 1442 bytes each: 1.15 s at the rate, sent in a tenth of that
	numbers, took := stream(t, a, b, b.IPv4(1), n, size, 50*time.Microsecond, time.Second, nothing)
	counters, err := s.Counters()
	if err != nil {
		t.Fatal(err)
	}
	if c := counters[b.IPv4(1)]; c.Overlimit != uint64(n-len(numbers)) || c.Overlimit == 0 {
		t.Errorf("%d of %d packets arrived, and counters are %+v", len(numbers), n, c)
	}
	if !slices.IsSorted(numbers) {
		t.Error("packets were reordered")
	}
	if worst := slices.Max(took); worst < 60*ms || worst > 72*ms {
		t.Errorf("the longest delay was %v, want 20 ms and at most 50 ms for the rate", worst)
	}
	if nettest.InVM() { // only in the VM is the sender always that fast
		conn, peer := nettest.TCP(a, b, b.IPv4(1))
		if got := bulk(t, conn, peer, 2*time.Second); got < rate*0.85 || got > rate {
			t.Errorf("TCP got %.1f of 20 Mbit/s", got/1e6)
		}
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
}

// bulk sends for the given time and returns the goodput of the second half in bits per second.
func bulk(t *testing.T, from, to net.Conn, lasts time.Duration) float64 {
	t.Helper()
	go func() {
		block := make([]byte, 64<<10)
		_ = from.SetWriteDeadline(time.Now().Add(lasts))
		for {
			if _, err := from.Write(block); err != nil {
				return
			}
		}
	}()
	block := make([]byte, 64<<10)
	_ = to.SetReadDeadline(time.Now().Add(lasts / 2))
	_, _ = io.Copy(io.Discard, to)
	began, bytes := time.Now(), 0
	_ = to.SetReadDeadline(began.Add(lasts / 2))
	for {
		n, err := to.Read(block)
		bytes += n
		if err != nil {
			return float64(bytes) * 8 / time.Since(began).Seconds()
		}
	}
}

func TestAFullQueueIsNotHealthy(t *testing.T) {
	a, b := pods(t)
	s := shaper(t, a)
	apply(t, s, shaping.Table{{Address: b.IPv4(1), Out: shaping.Link{Delay: shaping.MaxDelay}}})
	const limit = 50 // instead of leafLimit, so that it fills soon
	qopt := nl.TcNetemQopt{Limit: limit}
	options := nl.NewRtAttr(nl.TCA_OPTIONS, qopt.Serialize())
	options.AddRtAttr(netemLatency64, nl.Uint64Attr(uint64(shaping.MaxDelay)))
	header := &nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: s.index(), Parent: rootOurs | 1}
	if _, err := s.execute(unix.RTM_NEWQDISC, unix.NLM_F_ACK, 0, header, nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("netem")), options); err != nil {
		t.Fatal(err)
	}
	conn := a.DialUDP(b.ListenUDP(b.IPv4(1)).LocalAddr())
	for range limit + 10 {
		_, _ = conn.Write([]byte{0}) // the kernel may report that the queue is full
	}
	if _, err := s.Read(); err == nil || !strings.Contains(err.Error(), "limit 50") {
		t.Errorf("Read: %v, want that it names the limit", err)
	}
	apply(t, s, shaping.Table{{Address: b.IPv4(1), Out: shaping.Link{Delay: shaping.MaxDelay}}}) // repairs the limit
	if h, err := s.Health(); err != nil || h.Dropped != 10 || !strings.Contains(h.DroppedWhy, "full") {
		t.Errorf("health %+v (%v), want 10 dropped packets", h, err)
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
}

func TestARootQdiscOfAnotherProgramIsRefused(t *testing.T) {
	a, b := pods(t)
	a.Do(func() error {
		link, err := netlink.LinkByName(nettest.Device)
		if err != nil {
			return err
		}
		return netlink.QdiscAdd(netlink.NewPrio(netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: 0x10000}))
	})
	before := a.Qdiscs()
	s := shaper(t, a)
	err := s.Apply(shaping.Table{{Address: b.IPv4(1), Out: shaping.Link{Delay: ms}}})
	if err == nil || !strings.Contains(err.Error(), "prio 1:") {
		t.Errorf("Apply: %v, want that it names the qdisc", err)
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, a.Qdiscs()); diff != "" {
		t.Errorf("not as before (-before +after):\n%s", diff)
	}
}

func TestWhatIsChangedByHandIsFound(t *testing.T) {
	a, b := pods(t)
	before := a.Qdiscs()
	link := func() (netlink.Link, error) { return netlink.LinkByName(nettest.Device) }
	for name, tamper := range map[string]func(s *Shaper) error{
		"another delay": func(s *Shaper) error { return s.setLeaf(1, class{delay: 48 * ms}, false) },
		"no filter":     func(s *Shaper) error { return s.netlink.FilterDel(&netlink.U32{FilterAttrs: s.filter(families[0])}) },
		"no netem": func(s *Shaper) error {
			l, err := link()
			if err != nil {
				return err
			}
			return netlink.QdiscReplace(&netlink.GenericQdisc{QdiscType: "pfifo", QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Parent: rootOurs | 1, Handle: 0x770000}})
		},
		"super-packets": func(s *Shaper) error { return s.setSegments(100) },
		"no root":       func(s *Shaper) error { return s.netlink.QdiscDel(s.root()) },
	} {
		t.Run(name, func(t *testing.T) {
			s := shaper(t, a)
			table := shaping.Table{{Address: b.IPv4(1), Out: shaping.Link{Delay: 50 * ms}}, {Address: b.IPv4(2), Out: shaping.Link{Loss: 0.5}}}
			apply(t, s, table)
			if err := a.Try(func() error { return tamper(s) }); err != nil {
				t.Fatal(err)
			}
			got, err := s.Read()
			if err == nil && cmp.Equal(onlyOut(table.Normalized()), got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })) {
				t.Error("read back what was asked for")
			}
			apply(t, s, table) // repairs the change
			took(t, a, b, b.IPv4(1), 50*ms)
			if err := s.Remove(); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(before, a.Qdiscs()); diff != "" {
				t.Errorf("not as before (-before +after):\n%s", diff)
			}
		})
	}
}

func TestCheckNeedsOnlyNetAdmin(t *testing.T) {
	a, _ := pods(t)
	before := a.Qdiscs()
	a.Do(func() error { return only(unix.CAP_NET_ADMIN) })
	if err := a.Try(func() error { return Check(t.Context()) }); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, a.Qdiscs()); diff != "" {
		t.Errorf("not as before (-before +after):\n%s", diff)
	}
	a.Do(func() error { return only() })
	if err := a.Try(func() error { return Check(t.Context()) }); !errors.Is(err, unix.EPERM) {
		t.Errorf("without a capability: %v, want %v", err, unix.EPERM)
	}
}

// On a machine that is busy for a second, test packets arrive late. That is no reason to reject the
// backend. If they are always late, it is.
func TestCheckBearsABusySecond(t *testing.T) {
	a, _ := pods(t)
	try := func(busy time.Duration) error {
		return a.Try(func() error {
			return scratch.Try(t.Context(), func(device string) (netem.Shaper, error) {
				s, err := Open(device)
				return &lateAtFirst{Shaper: s, busy: busy}, err
			})
		})
	}
	if err := try(time.Second); err != nil {
		t.Errorf("late for a second: %v", err)
	}
	if err := try(time.Minute); err == nil || !strings.Contains(err.Error(), "to be delayed by 20ms passed after") {
		t.Errorf("late for good: %v, want to hear how late", err)
	}
}

// lateAtFirst adds 40 ms to the delay while the machine is busy.
type lateAtFirst struct {
	*Shaper
	busy time.Duration
	idle *time.Timer
}

func (s *lateAtFirst) Apply(table shaping.Table) error {
	late := slices.Clone(table)
	for i := range late {
		late[i].Out.Delay += 40 * ms
	}
	s.idle = time.AfterFunc(s.busy, func() { _ = s.Shaper.Apply(table) }) // without it, packets stay late
	return s.Shaper.Apply(late)
}

func (s *lateAtFirst) Close() error {
	s.idle.Stop()
	return s.Shaper.Close()
}

// only drops all capabilities of the thread except these. The thread ends with the test.
func only(capabilities ...int) error {
	var data [2]unix.CapUserData
	for _, c := range capabilities {
		data[c/32].Effective |= 1 << (c % 32)
		data[c/32].Permitted |= 1 << (c % 32)
	}
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0])
}

func TestAnInterfaceThatIsNotThere(t *testing.T) {
	a, _ := nettest.Pair(t, 1)
	err := a.Try(func() error { _, err := Open("eth7"); return err })
	if err == nil || !strings.Contains(err.Error(), "eth7") {
		t.Errorf("Open: %v, want that it names the interface", err)
	}
}
