package validity

import (
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/protocol"
)

// Pair is the two links between two pods: the request, and the reports of both ends. A is before B
// in the layout.
type Pair struct {
	A, B             string
	RegionA, RegionB string
	// Out is the link from A to B, In that from B to A.
	Out, In shaping.Link
	// ByA and ByB are the reports of the two agents; nil: there is none.
	ByA, ByB *protocol.LinkReport
}

// undirected reports whether neither end could tell the directions apart.
func (p Pair) undirected() bool {
	return p.ByA != nil && p.ByB != nil && p.ByA.Undirected && p.ByB.Undirected
}

// View is a pair as one of its ends measured it.
type View struct {
	From, To string
	Out, In  shaping.Link
	Said     *protocol.LinkReport
}

// Views are the views of both ends.
func (p Pair) Views() [2]View {
	return [2]View{{p.A, p.B, p.Out, p.In, p.ByA}, {p.B, p.A, p.In, p.Out, p.ByB}}
}

// Cut reports whether every packet was asked to be lost one way.
func (v View) Cut() bool { return v.Out.Loss >= 1 || v.In.Loss >= 1 }

// expected round trip.
func (v View) expected() time.Duration { return v.Out.Delay + v.In.Delay + v.Said.BaselineRTT }

// off is how much longer the round trip is than expected, beyond what jitter allows. It is negative
// if the round trip is shorter.
func (v View) off() time.Duration {
	off, jitter := v.Said.RTT-v.expected(), v.Out.Jitter+v.In.Jitter
	switch {
	case off > jitter:
		return off - jitter
	case off < -jitter:
		return off + jitter
	default:
		return 0
	}
}
