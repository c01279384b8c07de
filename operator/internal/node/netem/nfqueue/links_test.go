package nfqueue

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
	"github.com/google/go-cmp/cmp"
)

func TestTheHeapGivesBackByTimeThenByArrival(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	d := newDelays(5000)
	id := uint32(1<<32 - 1000) // wraps around
	var last waiting
	for round := range 20 {
		for range random.IntN(250) {
			d.push(waiting{due: int64(random.IntN(50)), id: id})
			id++
		}
		for range random.IntN(200) {
			if d.len() == 0 {
				break
			}
			next := d.first()
			if got := d.pop(); got != next {
				t.Fatalf("pop gives %v, first gave %v", got, next)
			}
			for _, other := range d.all {
				if other.before(next) {
					t.Fatalf("round %d: %v was given before %v", round, next, other)
				}
			}
		}
	}
	for first := true; d.len() > 0; first = false {
		next := d.pop()
		if !first && next.before(last) {
			t.Fatalf("%v was given after %v", next, last)
		}
		last = next
	}
}

func tableOf(asked map[netip.Addr]shaping.Link) *links {
	for address, link := range asked {
		link.Rate = link.RateOrDefault()
		asked[address] = link
	}
	return (&links{}).next(asked)
}

func TestALinkDelaysLosesAndLimits(t *testing.T) {
	const ms = int64(time.Millisecond)
	peer := netip.MustParseAddr("192.0.2.1")
	type arrival struct {
		at    int64
		bytes uint32
	}
	cases := map[string]struct {
		link     shaping.Link
		arrivals []arrival
		want     []int64 // -1: dropped
	}{
		"delay only":     {shaping.Link{Delay: 10 * time.Millisecond}, []arrival{{5 * ms, 0}, {6 * ms, 0}}, []int64{15 * ms, 16 * ms}},
		"no delay":       {shaping.Link{}, []arrival{{5 * ms, 0}}, []int64{5 * ms}},
		"all lost":       {shaping.Link{Loss: 1}, []arrival{{5 * ms, 0}, {5 * ms, 0}}, []int64{-1, -1}},
		"stamps go back": {shaping.Link{Delay: 10 * time.Millisecond}, []arrival{{5 * ms, 0}, {4 * ms, 0}}, []int64{15 * ms, 15 * ms}},
		// 8 Mbit/s: 1000 bytes take 1 ms.
		"rate":             {shaping.Link{Delay: 10 * time.Millisecond, Rate: 8_000_000}, []arrival{{0, 1000}, {0, 2000}, {0, 1000}, {10 * ms, 1000}}, []int64{10 * ms, 11 * ms, 13 * ms, 20 * ms}},
		"backlog":          {shaping.Link{Rate: 8_000_000}, []arrival{{0, 50_000}, {0, 1000}, {0, 1000}, {2 * ms, 1000}}, []int64{0, 50 * ms, -1, 51 * ms}},
		"the default rate": {shaping.Link{}, []arrival{{0, 125_000}, {0, 1}}, []int64{0, 1 * ms}},
	}
	for name, tc := range cases {
		l := &tableOf(map[netip.Addr]shaping.Link{peer: tc.link}).all[0]
		var got []int64
		for _, a := range tc.arrivals {
			due, ok := l.pass(a.at, a.bytes, rand.New(rand.NewPCG(1, 2)))
			if !ok {
				due = -1
			}
			got = append(got, due)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestJitterKeepsTheOrderAndItsBounds(t *testing.T) {
	const ms = int64(time.Millisecond)
	l := &tableOf(map[netip.Addr]shaping.Link{netip.MustParseAddr("192.0.2.1"): {Delay: 50 * time.Millisecond, Jitter: 20 * time.Millisecond}}).all[0]
	random := rand.New(rand.NewPCG(3, 4))
	last, least, most := int64(0), int64(1<<62), int64(0)
	for i := range 2000 {
		arrival := int64(i) * 100 * ms // far apart, so that keeping the order delays no packet
		due, _ := l.pass(arrival, 100, random)
		least, most = min(least, due-arrival), max(most, due-arrival)
	}
	if least < 30*ms || least > 31*ms || most > 70*ms || most < 69*ms {
		t.Errorf("delays from %v to %v, want 30ms to 70ms", time.Duration(least), time.Duration(most))
	}
	for i := range 2000 {
		due, _ := l.pass(int64(1e12)+int64(i)*ms/10, 100, random)
		if due < last {
			t.Fatalf("packet %d is due at %d, the one before it at %d", i, due, last)
		}
		last = due
	}
}

func TestATableKeepsWhatItsLinksRemember(t *testing.T) {
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	long, short := shaping.Link{Delay: 50 * time.Millisecond, Rate: 1e9}, shaping.Link{Delay: 10 * time.Millisecond, Rate: 1e9, Loss: 0.5}
	first := (&links{}).next(map[netip.Addr]shaping.Link{a: long})
	random := rand.New(rand.NewPCG(1, 2))
	first.all[0].pass(0, 0, random)
	second := first.next(map[netip.Addr]shaping.Link{a: {Delay: 10 * time.Millisecond, Rate: 1e9}, b: short})
	if due, _ := second.all[0].pass(1, 0, random); due != int64(10*time.Millisecond)+1 {
		t.Errorf("a link that became shorter gives %v, want that it does not wait for what is in flight", time.Duration(due))
	}
	third := second.next(map[netip.Addr]shaping.Link{b: short})
	if !second.losses() || first.losses() {
		t.Error("losses: the second table has one, the first has none")
	}
	if third.index[keyOf(a)] != 0 || third.index[keyOf(b)] != 1 || third.all[0].state != first.all[0].state {
		t.Error("an index or a state changed with the table")
	}
	if diff := cmp.Diff(shaping.Table{{Address: b, In: short}}, third.table(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestAPacketsMessageIsRead(t *testing.T) {
	ip4 := make([]byte, copyBytes)
	ip4[0] = 0x45
	copy(ip4[12:], []byte{192, 0, 2, 1})
	ip6 := make([]byte, copyBytes)
	ip6[0] = 0x60
	source6 := netip.MustParseAddr("2001:db8::1").As16()
	copy(ip6[8:], source6[:])
	header := attribute(attrPacketHeader, 0, 0, 0, 7, 8, 0, 0)
	stamp := attribute(attrTimestamp, append(binary.BigEndian.AppendUint64(nil, 3), binary.BigEndian.AppendUint64(nil, 5)...)...)
	join := func(parts ...[]byte) (out []byte) {
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	cases := map[string]struct {
		body []byte
		want packet
		ok   bool
	}{
		"IPv4":          {join(header, stamp, attribute(attrPayload, ip4...)), packet{id: 7, source: key{10: 0xff, 11: 0xff, 12: 192, 14: 2, 15: 1}, bytes: 40, stamped: true, arrived: 3_000_005_000}, true},
		"IPv6, cut":     {join(header, attribute(attrFullLength, be32(65000)...), attribute(attrPayload, ip6...)), packet{id: 7, source: source6, bytes: 65000}, true},
		"no header":     {attribute(attrPayload, ip4...), packet{}, false},
		"not IP":        {join(header, attribute(attrPayload, make([]byte, 40)...)), packet{}, false},
		"short payload": {join(header, attribute(attrPayload, ip4[:12]...)), packet{}, false},
		"length 0":      {join(header, []byte{0, 0, 0, 0}), packet{}, false},
		"length beyond": {join(header, []byte{9, 0, 1, 0}), packet{}, false},
		"empty":         {nil, packet{}, false},
	}
	for name, tc := range cases {
		got, ok := parsePacket(tc.body)
		if ok != tc.ok || ok && got != tc.want {
			t.Errorf("%s: %+v %v, want %+v %v", name, got, ok, tc.want, tc.ok)
		}
	}
}

func FuzzParsePacket(f *testing.F) {
	f.Add(attribute(attrPacketHeader, 0, 0, 0, 7, 8, 0, 0))
	f.Fuzz(func(_ *testing.T, body []byte) { parsePacket(body) })
}
