package htb

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/model/shaping"
)

func at(i byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, i}) }

func TestPlan(t *testing.T) {
	ms10, ms20 := class{delay: 10 * time.Millisecond}, class{delay: 20 * time.Millisecond}
	lossy, lossier := class{delay: ms10.delay, loss: 1}, class{delay: ms20.delay, loss: 2}
	capped := class{delay: ms10.delay, rate: 1000}
	for name, tc := range map[string]struct {
		leaves map[uint16]class
		peers  map[netip.Addr]peer
		wanted map[netip.Addr]class
		want   plan
	}{
		"peers with the same delay share a class": {
			wanted: map[netip.Addr]class{at(1): ms10, at(2): ms20, at(3): ms10},
			want: plan{create: map[uint16]class{1: ms10, 2: ms20},
				point: []pointing{{at(1), 1, 0}, {at(2), 2, 0}, {at(3), 1, 0}}},
		},
		"links with more than a delay do not": {
			wanted: map[netip.Addr]class{at(1): lossy, at(2): lossy, at(3): capped},
			want: plan{create: map[uint16]class{1: lossy, 2: lossy, 3: capped},
				point: []pointing{{at(1), 1, 0}, {at(2), 2, 0}, {at(3), 3, 1000}}},
		},
		"what is there stays": {
			leaves: map[uint16]class{1: ms10, 2: lossy, 3: capped}, peers: map[netip.Addr]peer{at(1): {minor: 1}, at(2): {minor: 2}, at(3): {minor: 3, policed: 1000}},
			wanted: map[netip.Addr]class{at(1): ms10, at(2): lossy, at(3): capped},
			want:   plan{},
		},
		"a class of its own changes in place": {
			leaves: map[uint16]class{1: lossy}, peers: map[netip.Addr]peer{at(1): {minor: 1}},
			wanted: map[netip.Addr]class{at(1): lossier},
			want:   plan{change: map[uint16]class{1: lossier}},
		},
		"a rate comes with its policer": {
			leaves: map[uint16]class{1: lossy}, peers: map[netip.Addr]peer{at(1): {minor: 1}},
			wanted: map[netip.Addr]class{at(1): capped},
			want:   plan{change: map[uint16]class{1: capped}, point: []pointing{{at(1), 1, 1000}}},
		},
		"a shared class does not change under others": {
			leaves: map[uint16]class{1: ms10}, peers: map[netip.Addr]peer{at(1): {minor: 1}, at(2): {minor: 1}},
			wanted: map[netip.Addr]class{at(1): ms20, at(2): ms10},
			want:   plan{create: map[uint16]class{2: ms20}, point: []pointing{{at(1), 2, 0}}},
		},
		"from a class of its own to a shared one and back": {
			leaves: map[uint16]class{1: ms10, 2: lossy}, peers: map[netip.Addr]peer{at(1): {minor: 1}, at(2): {minor: 2}},
			wanted: map[netip.Addr]class{at(1): lossy, at(2): ms10},
			want:   plan{create: map[uint16]class{3: lossy}, point: []pointing{{at(1), 3, 0}, {at(2), 1, 0}}},
		},
		"peers leave, classes that may hold packets stay": {
			leaves: map[uint16]class{1: ms10}, peers: map[netip.Addr]peer{at(2): {minor: 1}, at(1): {minor: 1}},
			want: plan{release: []netip.Addr{at(1), at(2)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			have := state{minors: map[uint16]bool{}, leaves: map[uint16]leaf{}, peers: tc.peers}
			for minor, c := range tc.leaves {
				have.minors[minor], have.leaves[minor] = true, leaf{class: c, limit: leafLimit}
			}
			got, err := makePlan(have, tc.wanted)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.create) == 0 {
				got.create = nil
			}
			if len(got.change) == 0 {
				got.change = nil
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(plan{}, class{}, pointing{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLinksSurviveTheirTranslation(t *testing.T) {
	for _, l := range []shaping.Link{
		{}, {Delay: 50 * time.Millisecond}, {Delay: 1234567 * time.Nanosecond}, {Delay: time.Second, Jitter: 300 * time.Millisecond},
		{Loss: 1}, {Loss: 0.01}, {Loss: 1e-9}, {Loss: 0.123456789}, {Rate: 20_000_000}, {Rate: 100_000_000_000, Loss: 0.5},
	} {
		want := l
		want.Rate = l.RateOrDefault()
		if diff := cmp.Diff(want, classOf(l).link()); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", l, diff)
		}
	}
}
