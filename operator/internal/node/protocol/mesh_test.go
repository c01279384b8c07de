package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
)

func peers(n int) []NetworkPeer {
	out := make([]NetworkPeer, n)
	for i := range out {
		out[i] = NetworkPeer{
			Name: fmt.Sprintf("r-%d", i), Address: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), Out: shaping.Link{Delay: time.Duration(i) * time.Millisecond},
		}
	}
	return out
}

func meshOf(t *testing.T, n int) *Mesh {
	t.Helper()
	m, err := NewMesh(peers(n))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// An agent gets all peers of its pod, in their order. The manager may have a list of them, or the
// mesh of all pods.
func TestAnAgentGetsThePeersOfAMesh(t *testing.T) {
	for name, tc := range map[string]struct{ pods, self int }{
		"the first": {5, 0}, "one in the middle": {5, 2}, "the last": {5, 4}, "of two": {2, 1}, "alone": {1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			want := Network{ProbeKey: []byte("key"), Tolerance: time.Millisecond}
			for i, p := range peers(tc.pods) {
				if i != tc.self {
					want.Peers = append(want.Peers, p)
				}
			}
			n := Network{ProbeKey: []byte("key"), Tolerance: time.Millisecond, Mesh: meshOf(t, tc.pods), Self: tc.self}
			d := Directive{Version: "1", Start: true, Network: &n}
			text, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			var sent bytes.Buffer
			if err := d.Encode(&sent); err != nil {
				t.Fatal(err)
			}
			for how, text := range map[string][]byte{"encoded": text, "sent": sent.Bytes()} {
				var got Directive
				if err := json.Unmarshal(text, &got); err != nil {
					t.Fatalf("%s: %v", how, err)
				}
				if !reflect.DeepEqual(Directive{Version: "1", Start: true, Network: &want}, got) {
					t.Errorf("%s, the agent gets %+v with %+v, want %+v", how, got, got.Network, want)
				}
			}
			for _, same := range []*Network{&n, &want} {
				var all []NetworkPeer
				for p := range same.All() {
					all = append(all, *p)
				}
				if !reflect.DeepEqual(want.Peers, all) {
					t.Errorf("all peers are %+v, want %+v", all, want.Peers)
				}
			}
		})
	}
	for p := range (*Network)(nil).All() {
		t.Errorf("no network has the peer %v", p)
	}
}

// Encoding a directive took as many allocations as the trial has pods, and one change makes the
// manager encode all directives of a trial.
func TestADirectiveIsWrittenWithoutAllocationsForEachPeer(t *testing.T) {
	allocations := func(pods int) float64 {
		d := &Directive{Network: &Network{Mesh: meshOf(t, pods)}}
		return testing.AllocsPerRun(20, func() {
			if err := d.Encode(io.Discard); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := allocations(10), allocations(500); many > few+5 {
		t.Errorf("with 10 pods it takes %.0f allocations, with 500 %.0f", few, many)
	}
}
