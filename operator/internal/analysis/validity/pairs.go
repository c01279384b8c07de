package validity

import (
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/protocol"
)

// Pair is the two links between two pods: what was asked, and what both ends say. A is before B in
// the layout.
type Pair struct {
	A, B             string
	RegionA, RegionB string
	// Out is the link from A to B, In that from B to A.
	Out, In shaping.Link
	// ByA and ByB are what the agents of the two said; nil: nothing.
	ByA, ByB *protocol.LinkReport
}

// undirected reports whether neither end could tell the directions apart: only what one end knows
// is known.
func (p Pair) undirected() bool {
	return p.ByA != nil && p.ByB != nil && p.ByA.Undirected && p.ByB.Undirected
}

// View is a pair as one of its ends measured it.
type View struct {
	From, To string
	Out, In  shaping.Link
	Said     *protocol.LinkReport
}

// Views are those of both ends.
func (p Pair) Views() [2]View {
	return [2]View{{p.A, p.B, p.Out, p.In, p.ByA}, {p.B, p.A, p.In, p.Out, p.ByB}}
}

// Cut reports whether every packet was asked to be lost one way.
func (v View) Cut() bool { return v.Out.Loss >= 1 || v.In.Loss >= 1 }

// expected round trip.
func (v View) expected() time.Duration { return v.Out.Delay + v.In.Delay + v.Said.BaselineRTT }

// off is by how much the round trip is longer (or, negative, shorter) than expected, what jitter
// allows left out.
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
