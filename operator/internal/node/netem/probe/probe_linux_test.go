package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/launcher"
)

// With loopback addresses there can be any number of peers without a namespace.
var (
	here  = netip.MustParseAddr("127.0.0.1")
	there = netip.MustParseAddr("127.0.0.2")
	six   = netip.MustParseAddr("::1")
)

// responding starts a responder on a free port of the machine's own network and returns its config.
func responding(t testing.TB, clock func() Clock) (Config, *Responder) {
	t.Helper()
	free, err := net.ListenUDP("udp", nil)
	if err != nil {
		t.Fatal(err)
	}
	port := free.LocalAddr().(*net.UDPAddr).Port
	free.Close()
	config := Config{Key: Key{9: 1}, Port: uint16(port), Clock: clock}
	r, err := Respond(config)
	if err != nil {
		t.Fatal(err)
	}
	return config, r
}

func TestMeasureOverLoopback(t *testing.T) {
	config, r := responding(t, nil)
	peers := []netip.Addr{here, netip.AddrFrom16(here.Next().As16())}
	if _, err := net.ListenUDP("udp6", &net.UDPAddr{IP: net.IPv6loopback}); err == nil {
		peers = append(peers, six)
	}
	began := time.Now()
	measured, err := Measure(t.Context(), config, peers, Options{Probes: 5, Spacing: time.Millisecond, Deadline: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("all answers are there, yet it took %v", took)
	}
	var slow error
	for i, m := range measured {
		if m.Peer != peers[i] || m.Sent != 5 || m.Answered != 5 || !m.OneWay || m.Error != 0 {
			t.Errorf("%+v", m)
		}
		for name, d := range map[string]time.Duration{"round trip": m.RoundTrip.Min, "out": m.Out.Min, "in": m.In.Min} {
			if d <= 0 {
				t.Errorf("%s: %s took %v", m.Peer, name, d)
			}
			if d > 10*time.Second {
				slow = errors.Join(slow, fmt.Errorf("%s: %s took %v", m.Peer, name, d))
			}
		}
	}
	if err := slow; err != nil {
		t.Error(err)
	}

	stranger := config
	stranger.Key[0]++
	measured, err = Measure(t.Context(), stranger, peers[:1], Options{Probes: 2, Spacing: time.Millisecond, Deadline: 50 * time.Millisecond})
	if err != nil || measured[0].Sent != 2 || measured[0].Answered != 0 {
		t.Errorf("with another key: %+v, %v", measured, err)
	}

	r.Stop()
	if again, err := Respond(config); err != nil {
		t.Errorf("the port is not free after Stop: %v", err)
	} else {
		again.Stop()
	}
	measured, err = Measure(t.Context(), config, peers[:1], Options{Probes: 2, Spacing: time.Millisecond, Deadline: 50 * time.Millisecond})
	if err != nil || measured[0].Sent != 2 || measured[0].Answered != 0 {
		t.Errorf("after Stop: %+v, %v", measured, err)
	}
}

func TestMeasureNoPeer(t *testing.T) {
	if measured, err := Measure(t.Context(), Config{}, nil, Options{}); err != nil || len(measured) != 0 {
		t.Errorf("%v, %v", measured, err)
	}
}

func TestMeasureEndsWithItsContext(t *testing.T) {
	config, r := responding(t, nil)
	r.Stop()
	peer, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(here, config.Port)))
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, _ = peer.Read(make([]byte, 100))
		time.Sleep(50 * time.Millisecond) // the sender counts a packet when the kernel has it
		cancel()
	}()
	measured, err := Measure(ctx, config, []netip.Addr{here}, Options{Probes: 2, Spacing: time.Hour, Deadline: time.Hour})
	if err == nil || len(measured) != 1 || measured[0].Sent != 1 {
		t.Errorf("%+v, %v", measured, err)
	}
}

func TestASecondResponderSaysThatThePortIsTaken(t *testing.T) {
	config, r := responding(t, nil)
	defer r.Stop()
	if second, err := Respond(config); err == nil {
		second.Stop()
		t.Error("no error")
	}
}

// Packets that are not requests of the trial get no answer, and do not stop the responder.
func TestTheResponderIgnoresNoise(t *testing.T) {
	config, r := responding(t, nil)
	defer r.Stop()
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(here, config.Port)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var good, strange, reply [packetSize]byte
	(&packet{kind: request, sequence: 7}).encode(&good, &config.Key)
	(&packet{kind: request}).encode(&strange, &Key{})
	(&packet{kind: answer}).encode(&reply, &config.Key)
	// Only the last packet is good. The responder reads one at a time, so an answer to an earlier
	// packet would come first.
	for _, data := range [][]byte{nil, []byte("hello"), make([]byte, 60_000), strange[:], reply[:], append(good[:packetSize:packetSize], 0), good[:]} {
		if _, err := conn.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 1500)
	n, err := conn.Read(buffer)
	var a packet
	if err != nil || !a.decode(buffer[:n], answer, &config.Key) || a.sequence != 7 {
		t.Errorf("%+v, %v", a, err)
	}
	if n > packetSize {
		t.Errorf("an answer of %d bytes to a request of %d", n, packetSize)
	}
}

func TestProveProbesOnlyWrongPairsAgain(t *testing.T) {
	config, r := responding(t, nil)
	defer r.Stop()
	pairs := []Pair{{From: "a", To: "b", Peer: here}, {From: "a", To: "c", Peer: there, Out: shaping.Link{Delay: 20 * msec}}}
	// Loopback is as quick as the scheduler allows; the test does not measure it.
	options := ProveOptions{Options: Options{Probes: 3, Spacing: time.Millisecond, Deadline: time.Minute}, Tolerance: Tolerance{Late: time.Minute, Path: time.Minute}}
	baseline, err := Baseline(t.Context(), config, pairs, options)
	if err != nil || len(baseline.Wrong) > 0 {
		t.Fatalf("%+v, %v", baseline, err)
	}
	proof, err := Prove(t.Context(), config, pairs, baseline.Measurements, options)
	if err != nil {
		t.Fatal(err)
	}
	if len(proof.Wrong) != 1 || proof.Wrong[0].Reason != Early || proof.Wrong[0].To != "c" {
		t.Errorf("wrong: %v", proof.Wrong)
	}
	if got := proof.Probed; len(got) != 3 || got[0] != 2 || got[1] != 1 || got[2] != 1 {
		t.Errorf("probed %v, want 2 pairs and then twice the wrong one", got)
	}
	if proof.Measurements[0].Sent != 3 || proof.Measurements[1].Sent != 12 {
		t.Errorf("sent %d and %d probes, want 3 and 12", proof.Measurements[0].Sent, proof.Measurements[1].Sent)
	}
}

func TestACanaryCountsFaultsApart(t *testing.T) {
	if err := faultsApart(t); err != nil {
		t.Error(err)
	}
}

func faultsApart(t *testing.T) error {
	t.Helper()
	config, r := responding(t, nil)
	stopped := false
	defer func() {
		if !stopped {
			r.Stop()
		}
	}()
	c, err := Watch(t.Context(), config, []netip.Addr{here, there}, CanaryOptions{Every: 4 * time.Millisecond, Deadline: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	await := func(what string, holds func([]Watched) bool) []Watched {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; {
			if w := c.Watched(); holds(w) {
				return w
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: not within a minute: %+v", what, c.Watched())
			}
			time.Sleep(time.Millisecond)
		}
	}
	await("steady", func(w []Watched) bool { return w[0].Steady.Answered >= 5 && w[1].Steady.Answered >= 5 })

	now := launcher.Monotonic()
	c.Disturb(Disturbance{Peer: there, From: now, Until: now + int64(time.Hour)})
	r.Stop()
	stopped = true
	await("lost", func(w []Watched) bool {
		return w[0].Steady.Sent-w[0].Steady.Answered >= 3 && w[1].Disturbed.Sent-w[1].Disturbed.Answered >= 3
	})
	w := c.Stop()
	if w[0].Disturbed.Sent != 0 {
		t.Errorf("a peer without a fault: %+v", w[0])
	}
	for i := range c.watching {
		if got := len(c.watching[i].pending); got > 20_000 {
			t.Errorf("%d probes are remembered", got)
		}
	}
	if lost := w[1].Steady.Sent - w[1].Steady.Answered; lost != 0 { // or late: the probes' deadline is a second
		return fmt.Errorf("%d probes of the peer with a fault count as lost without one", lost)
	}
	return nil
}
