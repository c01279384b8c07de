package nfqueue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/netem"
	"assay.dev/assay/operator/internal/node/netem/nettest"
)

// The bands are wide, and the best of three attempts counts. The machines of these tests run other
// programs, too, and mostly the test's own goroutines are late. The bound on the shaper's own
// record of its lateness is stricter. The lower band is exact: no packet may ever be early.
const (
	early    = 2 * time.Microsecond // the kernel stamps arrivals in whole microseconds
	lateP50  = 3 * time.Millisecond
	lateP99  = 60 * time.Millisecond
	attempts = 3
	// shaperLate bounds the 99th percentile of how late packets were released.
	shaperLate = 20 * time.Millisecond
)

// clock of the tests: the same in every namespace.
var clock = time.Now()

// oneWay sends messages that carry their time over a connection, and returns how long each took.
func oneWay(t *testing.T, from io.Writer, to net.Conn, count int, every time.Duration) spread {
	t.Helper()
	const size = 64
	go func() {
		message := make([]byte, size)
		for range count {
			binary.NativeEndian.PutUint64(message, uint64(time.Since(clock)))
			if _, err := from.Write(message); err != nil {
				return
			}
			time.Sleep(every)
		}
	}()
	var took spread
	message := make([]byte, size)
	_ = to.SetReadDeadline(time.Now().Add(time.Minute))
	for range count {
		if _, err := io.ReadFull(to, message); err != nil {
			t.Errorf("message %d of %d: %v", len(took), count, err)
			return took
		}
		took = append(took, time.Since(clock)-time.Duration(binary.NativeEndian.Uint64(message)))
	}
	return took
}

// takes judges the times of oneWay. It returns an error for late messages, and fails the test for
// early ones, which are always a defect.
func takes(t *testing.T, name string, delay time.Duration, measure func() spread) error {
	t.Helper()
	for attempt := 1; ; attempt++ {
		s := measure()
		if len(s) == 0 {
			return nil // reported already
		}
		t.Logf("%s: %v", name, s)
		if s.at(0) < delay-early {
			t.Errorf("%s: a message took %v, less than %v", name, s.at(0), delay)
		}
		if s.at(0.5) <= delay+lateP50 && s.at(0.99) <= delay+lateP99 {
			return nil
		}
		if attempt == attempts {
			return fmt.Errorf("%s: p50 %v, p99 %v; want about %v", name, s.at(0.5), s.at(0.99), delay)
		}
	}
}

func TestEveryLinkHasItsDelay(t *testing.T) { punctual(t, everyLinkHasItsDelay) }

func everyLinkHasItsDelay(t *testing.T) error {
	t.Helper()
	a, b := pair(t)
	s := shaper(t, b)
	delays := []time.Duration{0, time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond}
	table := shaping.Table{}
	for i, delay := range delays {
		for _, peer := range []netip.Addr{a.IPv4(i + 1), a.IPv6(i + 1)} {
			table = append(table, shaping.Peer{Address: peer, In: shaping.Link{Delay: delay}, Out: shaping.Link{Delay: time.Second}})
		}
	}
	if err := s.Apply(table); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	late := make([]error, 4*len(delays)) // two protocols over two families
	for i, delay := range delays {
		for j, way := range [][2]netip.Addr{{a.IPv4(i + 1), b.IPv4(1)}, {a.IPv6(i + 1), b.IPv6(1)}} {
			udp := b.ListenUDP(way[1])
			sender := dialUDP(t, a, way[0], udp.LocalAddr())
			client, server := tcp(t, a, b, way[0], way[1])
			name := fmt.Sprintf("%v from %v", delay, way[0])
			all.Go(func() {
				late[4*i+2*j] = takes(t, "UDP "+name, delay, func() spread { return oneWay(t, sender, udp, 100, 7*time.Millisecond) })
			})
			// So rarely that TCP's initial window never holds a message back.
			all.Go(func() {
				late[4*i+2*j+1] = takes(t, "TCP "+name, delay, func() spread { return oneWay(t, client, server, 30, max(10*time.Millisecond, delay/6)) })
			})
		}
	}
	all.Wait()
	late = append(late, healthy(t, s))
	counters, err := s.Counters()
	if c := counters[a.IPv4(1)]; err != nil || c.Packets < 130 || c.Bytes < 130*64 || c.Lost+c.Overlimit != 0 {
		t.Errorf("counters of a link with 130 messages: %+v, %v", c, err)
	}
	// Packets from other addresses are not delayed.
	if took := udpTook(t, a, b, a.IPv4(9), b.IPv4(1)); took == 0 {
		t.Error("a packet from another address did not arrive")
	}
	if counters[a.IPv4(9)] != (netem.Counters{}) {
		t.Error("a packet from another address was counted")
	}
	return errors.Join(late...)
}

// healthy fails the test if a packet was dropped. It returns an error if packets were released
// late.
func healthy(t *testing.T, s *Shaper) error {
	t.Helper()
	if h := undropped(t, s); h.LateP99 > shaperLate {
		return fmt.Errorf("released %v late (p99), want at most %v", h.LateP99, shaperLate)
	}
	return nil
}

// punctual runs a test that returns an error when packets were late. In the machine of hack/vm that
// fails the test. Elsewhere the shaper is late when it gets no processor, and punctual only logs
// it.
func punctual(t *testing.T, test func(t *testing.T) error) {
	t.Helper()
	if err := test(t); nettest.InVM() && err != nil {
		t.Error(err)
	} else if err != nil {
		t.Logf("not judged here: %v", err)
	}
}

// undropped is for tests with more packets than a slow machine can release in time.
func undropped(t *testing.T, s *Shaper) netem.Health {
	t.Helper()
	h, err := s.Health()
	t.Logf("health: %+v", h)
	if err != nil || h.Dropped != 0 || h.DroppedWhy != "" {
		t.Errorf("health: %+v, %v; want that nothing was dropped", h, err)
	}
	return h
}

func TestEachDirectionHasItsOwnDelayInTwoNamespaces(t *testing.T) {
	punctual(t, eachDirectionHasItsOwnDelay)
}

func eachDirectionHasItsOwnDelay(t *testing.T) error {
	t.Helper()
	a, b := pair(t)
	const there, back = 30 * time.Millisecond, 70 * time.Millisecond
	atA, atB := shaper(t, a), shaper(t, b)
	// Each pod of a mesh gets one table, with both directions of the link.
	if err := atA.Apply(shaping.Table{{Address: b.IPv4(1), Out: shaping.Link{Delay: there}, In: shaping.Link{Delay: back}}}); err != nil {
		t.Fatal(err)
	}
	if err := atB.Apply(shaping.Table{{Address: a.IPv4(1), Out: shaping.Link{Delay: back}, In: shaping.Link{Delay: there}}}); err != nil {
		t.Fatal(err)
	}
	client, server := tcp(t, a, b, a.IPv4(1), b.IPv4(1))
	late := errors.Join(
		takes(t, "there", there, func() spread { return oneWay(t, client, server, 40, 15*time.Millisecond) }),
		takes(t, "back", back, func() spread { return oneWay(t, server, client, 40, 15*time.Millisecond) }),
	)
	for _, s := range []*Shaper{atA, atB} {
		late = errors.Join(late, healthy(t, s))
		if err := s.Remove(); err != nil {
			t.Error(err)
		}
	}
	return late
}

func TestATableIsChangedInPlace(t *testing.T) { punctual(t, tableIsChangedInPlace) }

func tableIsChangedInPlace(t *testing.T) error {
	t.Helper()
	a, b := pair(t)
	s := shaper(t, b)
	delays := []time.Duration{50 * time.Millisecond, 20 * time.Millisecond, 80 * time.Millisecond}
	asked := func(i int) shaping.Table {
		return shaping.Table{{Address: a.IPv4(1), In: shaping.Link{Delay: delays[i%3]}}, {Address: a.IPv4(2 + i%2), In: shaping.Link{Delay: time.Second}}}
	}
	if err := s.Apply(asked(0)); err != nil {
		t.Fatal(err)
	}
	listener := b.ListenUDP(b.IPv4(1))
	sender := dialUDP(t, a, a.IPv4(1), listener.LocalAddr())
	const rounds, each = 30, 20
	sent := 0
	expected := map[uint64]bool{}
	for round := range rounds {
		if round > 0 {
			if err := s.Apply(asked(round)); err != nil {
				t.Fatal(err)
			}
		}
		for range each {
			expected[uint64(sent)] = true
			if _, err := sender.Write(binary.NativeEndian.AppendUint64(nil, uint64(sent))); err != nil {
				t.Fatal(err)
			}
			sent++
			time.Sleep(time.Millisecond)
		}
	}
	_ = listener.SetReadDeadline(time.Now().Add(time.Minute))
	message := make([]byte, 8)
	for len(expected) > 0 {
		if _, err := listener.Read(message); err != nil {
			break
		}
		delete(expected, binary.NativeEndian.Uint64(message))
	}
	if len(expected) != 0 {
		t.Errorf("%d of %d packets are lost over %d changes", len(expected), sent, rounds-1)
	}
	got, err := s.Read()
	if want := asked(rounds - 1).Normalized(); err != nil || len(got) != 2 || got[0].In != want[0].In || got[1].Address != want[1].Address {
		t.Errorf("read %v, %v; want %v", got, err, want)
	}
	var late error
	for i := range 3 {
		if err := s.Apply(asked(i)); err != nil {
			t.Fatal(err)
		}
		late = errors.Join(late, takes(t, fmt.Sprintf("after the change to %v", delays[i]), delays[i], func() spread { return oneWay(t, sender, listener, 20, 5*time.Millisecond) }))
	}
	return errors.Join(late, healthy(t, s))
}

func TestLossesAreAsOftenAsAskedAndSilent(t *testing.T) {
	a, b := pair(t)
	s := shaper(t, b)
	if err := s.Apply(shaping.Table{{Address: a.IPv4(1), In: shaping.Link{Loss: 0.1}}, {Address: a.IPv4(2), In: shaping.Link{Loss: 1}}}); err != nil {
		t.Fatal(err)
	}
	listener := b.ListenUDP(b.IPv4(1))
	const count = 20_000
	for i := range 2 {
		sender := dialUDP(t, a, a.IPv4(i+1), listener.LocalAddr())
		for n := range count {
			if _, err := sender.Write([]byte("x")); err != nil {
				t.Fatalf("the sender saw packet %d fail: %v", n, err)
			}
			if n%50 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}
	var counters map[netip.Addr]netem.Counters
	until(t, "all packets are counted", func() bool {
		var err error
		if counters, err = s.Counters(); err != nil {
			t.Fatal(err)
		}
		c := counters[a.IPv4(1)]
		return c.Packets+c.Lost == count && counters[a.IPv4(2)].Lost == count
	})
	// The band is ten standard deviations of the binomial distribution.
	if lost := counters[a.IPv4(1)].Lost; lost < count/10-424 || lost > count/10+424 || counters[a.IPv4(2)].Packets != 0 {
		t.Errorf("lost %d of %d, want about a tenth; with a loss of 1, %d passed", lost, count, counters[a.IPv4(2)].Packets)
	}
	undropped(t, s)
}

func TestALinkIsAsWideAsAsked(t *testing.T) { punctual(t, linkIsAsWideAsAsked) }

func linkIsAsWideAsAsked(t *testing.T) error {
	t.Helper()
	a, b := pair(t)
	s := shaper(t, b)
	const rate = 20_000_000
	if err := s.Apply(shaping.Table{{Address: a.IPv4(1), In: shaping.Link{Delay: 10 * time.Millisecond, Rate: rate}}}); err != nil {
		t.Fatal(err)
	}
	client, server := tcp(t, a, b, a.IPv4(1), b.IPv4(1))
	go func() {
		for block := make([]byte, 64<<10); ; {
			if _, err := client.Write(block); err != nil {
				return
			}
		}
	}()
	var got, began = 0, time.Time{}
	for block := make([]byte, 64<<10); began.IsZero() || time.Since(began) < 2*time.Second; {
		n, err := server.Read(block)
		if err != nil {
			t.Fatal(err)
		}
		if got += n; began.IsZero() {
			began, got = time.Now(), 0
		}
	}
	bits := float64(got) * 8 / time.Since(began).Seconds()
	t.Logf("%.1f Mbit/s over TCP", bits/1e6)
	client.Close()
	if bits > rate*1.05 || bits < rate*0.5 {
		return fmt.Errorf("%.1f Mbit/s over TCP, want a little less than 20", bits/1e6)
	}
	return healthy(t, s)
}

func TestJitterKeepsTheOrderOfPackets(t *testing.T) { punctual(t, jitterKeepsTheOrder) }

func jitterKeepsTheOrder(t *testing.T) error {
	t.Helper()
	a, b := pair(t)
	s := shaper(t, b)
	if err := s.Apply(shaping.Table{{Address: a.IPv4(1), In: shaping.Link{Delay: 30 * time.Millisecond, Jitter: 20 * time.Millisecond}}}); err != nil {
		t.Fatal(err)
	}
	listener := b.ListenUDP(b.IPv4(1))
	sender := dialUDP(t, a, a.IPv4(1), listener.LocalAddr())
	const count = 300
	go func() {
		for i := range uint64(count) {
			message := binary.NativeEndian.AppendUint64(nil, i)
			message = binary.NativeEndian.AppendUint64(message, uint64(time.Since(clock)))
			if _, err := sender.Write(message); err != nil {
				return
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
	var took spread
	message := make([]byte, 16)
	_ = listener.SetReadDeadline(time.Now().Add(time.Minute))
	for i := range uint64(count) {
		if _, err := listener.Read(message); err != nil {
			t.Fatal(err)
		}
		if got := binary.NativeEndian.Uint64(message); got != i {
			t.Fatalf("packet %d arrived in place of %d", got, i)
		}
		took = append(took, time.Since(clock)-time.Duration(binary.NativeEndian.Uint64(message[8:])))
	}
	t.Logf("30 ms with a jitter of 20 ms: %v", took)
	if took.at(0) < 10*time.Millisecond-early {
		t.Errorf("%v; want from 10 ms", took)
	}
	if took.at(0.99)-took.at(0.01) < 15*time.Millisecond || took.at(0.5) > 55*time.Millisecond {
		return fmt.Errorf("%v; want from 10 ms, spread", took)
	}
	return healthy(t, s)
}

// This test would show a stall of TCP by small queues, or queue entries for each segment: 1 Mbit/s
// or 550 Mbit/s at 50 ms, instead of some 600.
func TestTCPIsNotStalled(t *testing.T) { punctual(t, tcpIsNotStalled) }

func tcpIsNotStalled(t *testing.T) error {
	t.Helper()
	a, b := pair(t)
	s := shaper(t, b)
	if err := s.Apply(shaping.Table{{Address: a.IPv4(1), In: shaping.Link{Delay: 20 * time.Millisecond}}}); err != nil {
		t.Fatal(err)
	}
	client, server := tcp(t, a, b, a.IPv4(1), b.IPv4(1))
	go func() {
		for block := make([]byte, 256<<10); ; {
			if _, err := client.Write(block); err != nil {
				return
			}
		}
	}()
	got, began := 0, time.Now()
	for block := make([]byte, 256<<10); time.Since(began) < 2*time.Second; {
		n, err := server.Read(block)
		if err != nil {
			t.Fatal(err)
		}
		got += n
	}
	mbits := float64(got) * 8 / time.Since(began).Seconds() / 1e6
	counters, err := s.Counters()
	c := counters[a.IPv4(1)]
	t.Logf("%.0f Mbit/s at 20 ms, %d bytes a packet (%+v)", mbits, c.Bytes/max(c.Packets, 1), c)
	client.Close()
	if err != nil || mbits < 50 || c.Bytes/max(c.Packets, 1) < 3000 {
		return fmt.Errorf("%.0f Mbit/s, %+v, %w: want hundreds, in super-packets", mbits, c, err)
	}
	return healthy(t, s)
}

func TestNoPacketIsLostInAFlood(t *testing.T) {
	// The socket holds the packets of 400 ms. A shaper without a processor for longer loses some,
	// and reports it.
	punctual(t, flood)
}

func flood(t *testing.T) error {
	t.Helper()
	a, b := pair(t)
	s := shaper(t, b)
	if err := s.Apply(shaping.Table{{Address: a.IPv4(1), In: shaping.Link{Delay: 10 * time.Millisecond}}, {Address: a.IPv4(2), In: shaping.Link{Delay: 100 * time.Millisecond}}}); err != nil {
		t.Fatal(err)
	}
	listener := b.ListenUDP(b.IPv4(1))
	var sent [2]uint64
	var all sync.WaitGroup
	began := time.Now()
	for i := range sent {
		sender := dialUDP(t, a, a.IPv4(i+1), listener.LocalAddr())
		all.Go(func() {
			const each, rate = 50, 25_000 // 50,000 packets/s on both
			message := make([]byte, 100)
			for sent[i] < rate {
				for range each {
					if _, err := sender.Write(message); err != nil {
						t.Error(err)
						return
					}
					sent[i]++
				}
				time.Sleep(each * time.Second / rate)
			}
		})
	}
	all.Wait()
	t.Logf("%d packets in %v", sent[0]+sent[1], time.Since(began))
	dropped := false
	until(t, "all packets passed, or some were dropped", func() bool {
		counters, err := s.Counters()
		h, unhealthy := s.Health()
		dropped = unhealthy == nil && h.Dropped > 0
		return dropped || err == nil && counters[a.IPv4(1)].Packets == sent[0] && counters[a.IPv4(2)].Packets == sent[1]
	})
	if h, err := s.Health(); dropped && err == nil {
		return fmt.Errorf("health: %+v; want that nothing was dropped", h)
	}
	undropped(t, s)
	return nil
}

func TestGarbageDoesNotHoldUpPackets(t *testing.T) { punctual(t, garbageDoesNotHoldUp) }

func garbageDoesNotHoldUp(t *testing.T) error {
	t.Helper()
	a, b := pair(t)
	s := shaper(t, b)
	const delay = 20 * time.Millisecond
	if err := s.Apply(shaping.Table{{Address: a.IPv4(1), In: shaping.Link{Delay: delay}}}); err != nil {
		t.Fatal(err)
	}
	listener := b.ListenUDP(b.IPv4(1))
	sender := dialUDP(t, a, a.IPv4(1), listener.LocalAddr())
	measure := func() netem.Health {
		oneWay(t, sender, listener, 300, 2*time.Millisecond) // the load delays these goroutines; it must not delay the shaper
		h, err := s.Health()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	quiet := measure()
	usual() // with their priority, the next goroutines would take the whole machine
	defer exact()
	end := make(chan struct{})
	var all sync.WaitGroup
	for range 2 { // every processor of the runtime is busy, and the collector runs all the time
		all.Go(func() {
			kept := make([][]*[64]byte, 256)
			for i := 0; ; i++ {
				select {
				case <-end:
					return
				default:
				}
				kept[i%len(kept)] = slices.Repeat([]*[64]byte{new([64]byte)}, 512)
			}
		})
	}
	busy := measure()
	close(end)
	all.Wait()
	t.Logf("released late: quiet p99 %v, most %v; with the collector, p99 %v, most %v", quiet.LateP99, quiet.Late, busy.LateP99, busy.Late)
	if busy.LateP99 > shaperLate {
		return fmt.Errorf("with the collector, packets were released %v late (p99)", busy.LateP99)
	}
	return nil
}
