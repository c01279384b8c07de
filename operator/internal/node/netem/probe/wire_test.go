package probe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAPacketSurvivesTheWire(t *testing.T) {
	key, other := Key{1, 2, 3}, Key{1, 2, 4}
	want := packet{
		kind: answer, session: 1 << 63, sequence: 7, sent: 11, received: -12, answered: 13, host: 14,
		clock: Clock{Offset: -1 << 60, Error: 16, Known: true},
	}
	var buffer [packetSize]byte
	want.encode(&buffer, &key)
	var got packet
	if !got.decode(buffer[:], answer, &key) {
		t.Fatal("not decoded")
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(packet{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	changed := buffer
	changed[0]++
	for name, refused := range map[string]bool{
		"another key":    got.decode(buffer[:], answer, &other),
		"another kind":   got.decode(buffer[:], request, &key),
		"a shorter one":  got.decode(buffer[:packetSize-1], answer, &key),
		"a longer one":   got.decode(append(buffer[:], 0), answer, &key),
		"nothing":        got.decode(nil, answer, &key),
		"another format": got.decode(changed[:], answer, &key),
	} {
		if refused {
			t.Errorf("%s: decoded", name)
		}
	}
}

func TestTheTimesOfATrip(t *testing.T) {
	// 45 ms out, 2 ms at the peer, 12 ms back; the peer's clock is 1000 s ahead of the prober's.
	const ahead = int64(1000 * time.Second)
	ms := int64(time.Millisecond)
	a := packet{sent: 5 * ms, received: 50*ms + ahead, answered: 52*ms + ahead, host: 2}
	back := 64 * ms
	roundTrip := 57 * time.Millisecond

	if diff := cmp.Diff(trip{roundTrip: roundTrip}, tripOf(&a, back, 1, Clock{Offset: 7, Known: true}), cmp.AllowUnexported(trip{})); diff != "" {
		t.Errorf("the peer knows no clock (-want +got)\n%s", diff)
	}
	a.clock = Clock{Offset: 9*ms - ahead + ms, Error: 2 * ms, Known: true} // 1 ms wrong
	want := trip{roundTrip: roundTrip, oneWay: true, out: 46 * time.Millisecond, in: 11 * time.Millisecond, err: 5 * time.Millisecond}
	if diff := cmp.Diff(want, tripOf(&a, back, 1, Clock{Offset: 9 * ms, Error: 3 * ms, Known: true}), cmp.AllowUnexported(trip{})); diff != "" {
		t.Errorf("both know the coordinator's clock (-want +got)\n%s", diff)
	}
	same := packet{sent: 5 * ms, received: 50 * ms, answered: 52 * ms, host: 1}
	want = trip{roundTrip: roundTrip, oneWay: true, out: 45 * time.Millisecond, in: 12 * time.Millisecond}
	if diff := cmp.Diff(want, tripOf(&same, back, 1, Clock{}), cmp.AllowUnexported(trip{})); diff != "" {
		t.Errorf("one clock (-want +got)\n%s", diff)
	}
}

func TestASeriesIsBoundedAndEven(t *testing.T) {
	for _, n := range []int{0, 1, 2, 7, keep, keep + 1, 10 * keep, 100_000} {
		var s series
		for i := range n {
			s.add(time.Duration((i*7919)%n + 1)) // 7919 is prime: each of 1..n once
		}
		got := s.spread()
		if n == 0 {
			if got != (Spread{}) {
				t.Errorf("of none: %v", got)
			}
			continue
		}
		if got.Min != 1 || got.Max != time.Duration(n) || len(s.kept) > keep || s.count != n {
			t.Errorf("of %d: %v, %d kept of %d", n, got, len(s.kept), s.count)
		}
		if want := time.Duration((n + 1) / 2); n <= keep && got.Median != want {
			t.Errorf("of %d: median %d, want %d", n, got.Median, want)
		}
		if off := (got.Median - time.Duration(n/2)).Abs(); n > keep && off > time.Duration(n/20) {
			t.Errorf("of %d: median %d is off by more than 5 %%", n, got.Median)
		}
	}
}
