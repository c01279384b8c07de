package netem_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/netem"
	"assay.dev/assay/operator/internal/node/netem/nettest"
	"assay.dev/assay/operator/internal/node/netem/nfqueue"
	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"
)

var sameAddress = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

func openCut(t *testing.T, pod *nettest.Pod) *netem.Cut {
	t.Helper()
	var c *netem.Cut
	pod.Do(func() (err error) {
		c, err = netem.OpenCut()
		return err
	})
	t.Cleanup(func() { c.Close() })
	return c
}

func tablesOf(t *testing.T, pod *nettest.Pod) (names []string) {
	t.Helper()
	pod.Do(func() error {
		conn, err := nftables.New()
		if err != nil {
			return err
		}
		list, err := conn.ListTables()
		for _, table := range list {
			names = append(names, table.Name)
		}
		return err
	})
	return names
}

// stream counts the numbered packets that arrive.
type stream struct {
	t        *testing.T
	from, to *net.UDPConn
}

func newStream(t *testing.T, from, to *nettest.Pod, address netip.Addr) *stream {
	listener := to.ListenUDP(address)
	return &stream{t: t, from: from.DialUDP(listener.LocalAddr()), to: listener}
}

// passes sends one packet, and returns whether it arrived. The sender must never get an error for a
// lost packet.
func (s *stream) passes(wait time.Duration) bool {
	s.t.Helper()
	s.send()
	return s.arrives(wait)
}

func (s *stream) send() {
	s.t.Helper()
	if _, err := s.from.Write([]byte("x")); err != nil {
		s.t.Errorf("the sender saw the cut: %v", err)
	}
}

func (s *stream) arrives(wait time.Duration) bool {
	_ = s.to.SetReadDeadline(time.Now().Add(wait))
	_, err := s.to.Read(make([]byte, 1))
	return err == nil
}

const (
	arrival = time.Minute           // how long an expected packet may take on a busy machine
	absence = 50 * time.Millisecond // how long the test waits for a packet that must not arrive
)

func TestACutIsDirected(t *testing.T) {
	a, b := nettest.Pair(t, 1) // one address each: the source address is the one that is cut
	cut := openCut(t, b)
	if err := cut.Prepare(); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]func(*nettest.Pod) netip.Addr{
		"IPv4": func(p *nettest.Pod) netip.Addr { return p.IPv4(1) },
		"IPv6": func(p *nettest.Pod) netip.Addr { return p.IPv6(1) },
	} {
		there, back := newStream(t, a, b, of(b)), newStream(t, b, a, of(a))
		peer := []netip.Addr{of(a)}
		cases := []struct {
			name        string
			in, out     []netip.Addr
			there, back bool
		}{
			{"prepared", nil, nil, true, true},
			{"in", peer, nil, false, true},
			{"out", nil, peer, true, false},
			{"both", peer, peer, false, false},
			{"another address", []netip.Addr{a.IPv4(9), a.IPv6(9)}, []netip.Addr{a.IPv4(9), a.IPv6(9)}, true, true},
			{"healed", nil, nil, true, true},
		}
		for _, tc := range cases {
			if err := cut.Set(tc.in, tc.out); err != nil {
				t.Fatal(err)
			}
			in, out, err := cut.Cut()
			if len(in) != len(tc.in) || len(out) != len(tc.out) || err != nil {
				t.Errorf("%s, %s: reads %v, %v, %v", name, tc.name, in, out, err)
			}
			inBefore, outBefore, err := cut.Packets()
			if err != nil {
				t.Fatal(err)
			}
			wait := func(passes bool) time.Duration {
				if passes {
					return arrival
				}
				return absence
			}
			if there, back := there.passes(wait(tc.there)), back.passes(wait(tc.back)); there != tc.there || back != tc.back {
				t.Errorf("%s, %s: to the pod %v, from the pod %v; want %v and %v", name, tc.name, there, back, tc.there, tc.back)
			}
			inAfter, outAfter, err := droppedSince(cut, inBefore, outBefore, !tc.there, !tc.back)
			if err != nil || inAfter-inBefore > 0 == tc.there || outAfter-outBefore > 0 == tc.back {
				t.Errorf("%s, %s: %d and %d packets dropped, %v", name, tc.name, inAfter-inBefore, outAfter-outBefore, err)
			}
		}
	}
}

// droppedSince waits until packets were dropped in the given directions: the kernel may be late.
func droppedSince(cut *netem.Cut, inBefore, outBefore uint64, wantIn, wantOut bool) (in, out uint64, err error) {
	for end := time.Now().Add(arrival); ; time.Sleep(time.Millisecond) {
		in, out, err = cut.Packets()
		if err != nil || (in > inBefore || !wantIn) && (out > outBefore || !wantOut) || time.Now().After(end) {
			return in, out, err
		}
	}
}

func TestACutIsReadBackRepeatedAndRemoved(t *testing.T) {
	a, b := nettest.Pair(t, 1)
	cut := openCut(t, b)
	if err := cut.Set(nil, nil); err == nil || !strings.Contains(err.Error(), "not prepared") {
		t.Errorf("a cut that is not prepared: %v", err)
	}
	if in, out, err := cut.Cut(); in != nil || out != nil || err != nil {
		t.Errorf("reading nothing gives %v, %v, %v", in, out, err)
	}
	for range 2 {
		if err := cut.Prepare(); err != nil {
			t.Fatal(err)
		}
	}
	mapped := netip.AddrFrom16(a.IPv4(1).As16())
	for range 2 {
		if err := cut.Set([]netip.Addr{a.IPv6(1), mapped, a.IPv4(1)}, []netip.Addr{a.IPv4(1)}); err != nil {
			t.Fatal(err)
		}
	}
	next := openCut(t, b) // the next incarnation of an agent
	if err := next.Prepare(); err != nil {
		t.Fatal(err)
	}
	in, out, err := next.Cut()
	if diff := cmp.Diff([][]netip.Addr{{a.IPv4(1), a.IPv6(1)}, {a.IPv4(1)}}, [][]netip.Addr{in, out}, sameAddress); diff != "" || err != nil {
		t.Errorf("%v; (-want +got):\n%s", err, diff)
	}
	for _, wrong := range []string{"127.0.0.1", "::1", "0.0.0.0", "224.0.0.1"} {
		if err := cut.Set(nil, []netip.Addr{netip.MustParseAddr(wrong)}); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	var many []netip.Addr
	for i := range shaping.MaxPeers {
		many = append(many, netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}))
	}
	for range 2 {
		if err := cut.Set(many, many); err != nil {
			t.Fatal(err)
		}
	}
	if in, out, err := cut.Cut(); len(in) != len(many) || len(out) != len(many) || err != nil {
		t.Errorf("%d and %d addresses, %v", len(in), len(out), err)
	}
	b.Do(func() error { // a user changes the table by hand
		conn, err := nftables.New()
		if err != nil {
			return err
		}
		conn.FlushChain(&nftables.Chain{Name: "in", Table: &nftables.Table{Name: "assay_cut", Family: nftables.TableFamilyINet}})
		return conn.Flush()
	})
	if _, _, err := cut.Cut(); err == nil || !strings.Contains(err.Error(), "0 rules for set in4") {
		t.Errorf("a rule that was removed by hand: %v", err)
	}
	for range 2 {
		if err := next.Remove(); err != nil {
			t.Fatal(err)
		}
		if left := tablesOf(t, b); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	}
}

func TestACutFlaps(t *testing.T) {
	a, b := nettest.Pair(t, 1)
	cut := openCut(t, b)
	if err := cut.Prepare(); err != nil {
		t.Fatal(err)
	}
	there := newStream(t, a, b, b.IPv4(1))
	peer := []netip.Addr{a.IPv4(1)}
	client, server := nettest.TCP(a, b, b.IPv4(1))
	var slowest time.Duration
	for round := range 100 {
		began := time.Now()
		if err := cut.Set(peer, peer); err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(began))
		for range 3 {
			there.send()
		}
		for end := time.Now().Add(arrival); ; { // the kernel may deliver them late
			in, _, err := cut.Packets()
			if err != nil {
				t.Fatal(err)
			}
			if in == 3*(uint64(round)+1) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("round %d: %d packets were dropped, want %d", round, in, 3*(round+1))
			}
		}
		if err := cut.Set(nil, nil); err != nil {
			t.Fatal(err)
		}
		// The first packet to arrive must be the one sent after the healing: an earlier one would
		// have come first.
		if _, err := there.from.Write([]byte{byte(round)}); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 1)
		_ = there.to.SetReadDeadline(time.Now().Add(arrival))
		if _, err := there.to.Read(got); err != nil || got[0] != byte(round) {
			t.Fatalf("round %d: got %v, %v", round, got, err)
		}
	}
	if in, out, err := cut.Packets(); in != 300 || out != 0 || err != nil {
		t.Errorf("%d and %d packets dropped, %v; want 300 and 0", in, out, err)
	}
	t.Logf("the slowest of 100 cuts took %v", slowest)
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	_ = server.SetReadDeadline(time.Now().Add(arrival))
	if _, err := server.Read(make([]byte, 1)); err != nil {
		t.Errorf("a connection that was idle over the cuts: %v", err)
	}
}

// A sender behind a real cable sends, gets no answer, and sends again.
func TestTCPDoesNotSeeACut(t *testing.T) {
	a, b := nettest.Pair(t, 1)
	cut := openCut(t, b)
	if err := cut.Prepare(); err != nil {
		t.Fatal(err)
	}
	at, peer := nettest.TCP(b, a, a.IPv4(1)) // b, which is cut, sends
	if err := cut.Set(nil, []netip.Addr{a.IPv4(1)}); err != nil {
		t.Fatal(err)
	}
	if _, err := at.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(arrival); ; time.Sleep(5 * time.Millisecond) {
		if _, out, err := cut.Packets(); err != nil {
			t.Fatal(err)
		} else if out >= 2 { // the segment and its retransmission
			break
		}
		if time.Now().After(end) {
			t.Fatal("nothing was sent again")
		}
	}
	if err := cut.Set(nil, nil); err != nil {
		t.Fatal(err)
	}
	_ = peer.SetReadDeadline(time.Now().Add(arrival))
	if _, err := peer.Read(make([]byte, 1)); err != nil {
		t.Errorf("after the healing: %v", err)
	}
}

// Packets on their way when the cut begins do not arrive. Packets sent before it ends do not come
// later.
func TestACutTakesEffectBehindTheDelay(t *testing.T) {
	a, b := nettest.Pair(t, 1)
	cut := openCut(t, b)
	if err := cut.Prepare(); err != nil { // before the shaping
		t.Fatal(err)
	}
	var s *nfqueue.Shaper
	b.Do(func() (err error) {
		s, err = nfqueue.Open(slog.New(slog.DiscardHandler))
		return err
	})
	defer s.Close()
	const delay = 2 * time.Second
	if err := s.Apply(shaping.Table{{Address: a.IPv4(1), In: shaping.Link{Delay: delay}}}); err != nil {
		t.Fatal(err)
	}
	there := newStream(t, a, b, b.IPv4(1))
	there.send()
	if err := cut.Set([]netip.Addr{a.IPv4(1)}, nil); err != nil {
		t.Fatal(err)
	}
	there.send()
	for end := time.Now().Add(delay + arrival); ; time.Sleep(5 * time.Millisecond) {
		if in, _, err := cut.Packets(); err != nil {
			t.Fatal(err)
		} else if in >= 2 {
			break
		}
		if time.Now().After(end) {
			break // reported below
		}
	}
	if there.arrives(absence) {
		t.Error("a packet arrived after the cut began")
	}
	if err := cut.Set(nil, nil); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if !there.passes(arrival) || time.Since(began) < delay-time.Millisecond {
		t.Errorf("after the healing: %v", time.Since(began))
	}
	health, err := s.Health()
	if in, _, err := cut.Packets(); in != 2 || err != nil {
		t.Errorf("%d packets dropped, %v; want both", in, err)
	}
	if err = errors.Join(err, s.Remove(), cut.Remove()); err != nil || health.Dropped != 0 {
		t.Errorf("health %+v, %v", health, err)
	}
	if left := fmt.Sprint(tablesOf(t, b)); left != "[]" {
		t.Errorf("left: %s", left)
	}
}

func TestLoopbackPassesACut(t *testing.T) {
	_, b := nettest.Pair(t, 1)
	cut := openCut(t, b)
	own := []netip.Addr{b.IPv4(1), b.IPv6(1)} // a pod that must cut itself off
	if err := errors.Join(cut.Prepare(), cut.Set(own, own)); err != nil {
		t.Fatal(err)
	}
	for _, to := range append(own, netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")) {
		if !newStream(t, b, b, to).passes(arrival) {
			t.Errorf("no packet to %s", to)
		}
	}
}
