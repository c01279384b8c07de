package coordinator

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/node/protocol"
)

// reportOf returns the JSON of a report with the given number of links.
func reportOf(t *testing.T, links int, rtt time.Duration) []byte {
	t.Helper()
	r := protocol.Report{Incarnation: "a", Ready: true, Network: &protocol.NetworkReport{Tried: true, Baseline: true, Proven: true}}
	for i := range links {
		r.Network.Links = append(r.Network.Links, protocol.LinkReport{Peer: fmt.Sprintf("r-%d", i), BaselineRTT: time.Millisecond, RTT: rtt})
	}
	text, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Reading a report's links separately yields the same report.
func TestReportsAreReadWhole(t *testing.T) {
	for name, text := range map[string]string{
		"no network":      `{"incarnation":"a","ready":true,"containers":[{"name":"c"}]}`,
		"null":            `{"incarnation":"a","network":null}`,
		"an empty one":    `{"network":{}}`,
		"no links":        `{"network":{"tried":true,"backends":["EDT"],"refused":{"Netem":"no"}}}`,
		"null links":      `{"network":{"proven":true,"links":null}}`,
		"no link of none": `{"network":{"links":[]}}`,
		"links":           `{"sequence":7,"network":{"links":[{"peer":"r-0","rtt":5},{"peer":"r-9","canarySent":3}],"watched":true}}`,
		"other letters":   `{"Network":{"Links":[{"Peer":"r-0"}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			want := &protocol.Report{}
			if err := json.Unmarshal([]byte(text), want); err != nil {
				t.Fatal(err)
			}
			got, err := (&linksRead{}).decode([]byte(text), &protocol.Network{Peers: []protocol.NetworkPeer{{Name: "r-0"}}})
			if err != nil {
				t.Fatal(err)
			}
			if want.Network != nil && len(want.Network.Links) == 0 && got.Network != nil && len(got.Network.Links) == 0 {
				want.Network.Links, got.Network.Links = nil, nil
			}
			if !reflect.DeepEqual(want, got) {
				t.Errorf("it is read as %+v, want %+v", got, want)
			}
		})
	}
	for name, text := range map[string]string{"no JSON": `{"network":`, "links that are none": `{"network":{"links":[1]}}`, "a network that is none": `{"network":7}`} {
		if r, err := (&linksRead{}).decode([]byte(text), nil); err == nil {
			t.Errorf("%s is read as %+v", name, r)
		}
	}
}

// The manager once decoded all links of every report, though links change only twice in a trial.
// The number of links in all pods' reports is the square of the number of pods.
func TestLinksThatDidNotChangeAreNotReadAgain(t *testing.T) {
	const pods = 500
	last := &linksRead{}
	read := func(text []byte) *protocol.Report {
		r, err := last.decode(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	before := reportOf(t, pods, time.Second)
	first := read(before)
	if n := testing.AllocsPerRun(20, func() { read(before) }); n > 50 {
		t.Errorf("to read the same links again takes %.0f allocations", n)
	}
	if again := read(before); &again.Network.Links[0] != &first.Network.Links[0] {
		t.Error("the same links are kept twice")
	}
	changed := read(reportOf(t, pods, 2*time.Second))
	if len(changed.Network.Links) != pods || cap(changed.Network.Links) != pods || changed.Network.Links[7].RTT != 2*time.Second {
		t.Errorf("of links that changed, %d are read, with room for %d", len(changed.Network.Links), cap(changed.Network.Links))
	}
	if first.Network.Links[7].RTT != time.Second {
		t.Error("the links of an earlier report have changed")
	}
	if none := read([]byte(`{"network":{"tried":true}}`)); none.Network.Links != nil {
		t.Error("a report without links has those of the one before")
	}
}

// Each look at a trial once encoded the directives of all its pods, and each directive names all
// other pods. The time of all looks at a trial grew with the cube of the number of pods.
func TestADirectiveThatAPodHasIsNotEncodedAgain(t *testing.T) {
	f := newFixture(t)
	f.Register(trialA, []Pod{{UID: "u1", Trial: trialA, Name: "r-0"}})
	network := &protocol.Network{}
	for i := range 500 {
		network.Peers = append(network.Peers, protocol.NetworkPeer{Name: fmt.Sprintf("r-%d", i+1)})
	}
	directive := func() protocol.Directive { // like the engine at each look
		n := *network
		n.Shape = true
		return protocol.Directive{Network: &n, Start: true, Commands: []protocol.Command{{ID: "load"}}}
	}
	f.Direct(trialA, "r-0", directive(), nil)
	if n := testing.AllocsPerRun(20, func() { f.Direct(trialA, "r-0", directive(), nil) }); n > 20 {
		t.Errorf("to direct a pod as before takes %.0f allocations", n)
	}
	first, _, _ := f.directiveOf(trialA, "r-0")
	d := directive()
	d.Finish = true
	f.Direct(trialA, "r-0", d, nil)
	if now, _, _ := f.directiveOf(trialA, "r-0"); !now.Finish || now.Version == first.Version {
		t.Errorf("another directive leaves the pod with version %q, before %q", now.Version, first.Version)
	}
}
