package stats

import (
	"fmt"
	"math"
)

// KneeFactor is the latency at the knee in multiples of the latency without load: requests then
// wait as long as they are served.
const KneeFactor = 2

// kneePoints is how many points a curve needs to have a knee.
const kneePoints = 3

// CurvePoint is one point of a latency-throughput curve: the means of one load.
type CurvePoint struct {
	// Throughput in transactions per second, 0 or more.
	Throughput float64
	// Latency in milliseconds (any unit will do, the same for all points), above 0.
	Latency float64
}

// Knee is the knee of a latency-throughput curve, one of its points.
type Knee struct {
	// Index of the point in the curve.
	Index int
	CurvePoint
	// Bound on the latency that the knee keeps: twice the least latency of the curve.
	Bound float64
	// Cautions: Unsaturated.
	Cautions []Caution
}

// FindKnee finds the knee of a latency-throughput curve. It looks at the points whose latency is at
// most twice the least of the curve. It takes the one with the greatest throughput (of several, the
// one with the least latency).
//
// It is Jain's usable capacity, "the maximum throughput achievable without exceeding a prespecified
// response time limit" (The Art of Computer Systems Performance Analysis, 1991, section 3.3), with
// the limit at Kleinrock's operating point. There throughput/latency, the power of an M/M/1 queue,
// is greatest where the latency is twice that without load ("Power and deterministic rules of thumb
// for probabilistic problems in computer communications", ICC'79). In words: up to the knee a
// request waits no longer than it is served.
//
// Nothing is fitted, and points above the bound may come and go without moving the knee. The least
// latency stands for the latency without load, so the curve needs a point of light load. It is the
// least, not that of the least load, since many systems are slower when nearly idle. The order of
// the points does not matter.
//
// When the knee is the slowest point of the curve, the curve ends before its knee (Unsaturated):
// the true one has at least this throughput. FindKnee fails for fewer than three points, and for
// numbers that cannot be a throughput or a latency.
func FindKnee(curve []CurvePoint) (Knee, error) {
	if len(curve) < kneePoints {
		return Knee{}, fmt.Errorf("knee: the curve has %d points; it needs %d", len(curve), kneePoints)
	}
	least, slowest := math.Inf(1), 0.0
	for i, p := range curve {
		if err := p.check(i); err != nil {
			return Knee{}, fmt.Errorf("knee: %w", err)
		}
		least, slowest = math.Min(least, p.Latency), math.Max(slowest, p.Latency)
	}
	k := Knee{Index: -1, Bound: KneeFactor * least}
	for i, p := range curve {
		if p.Latency <= k.Bound && (k.Index < 0 || p.better(k.CurvePoint)) {
			k.Index, k.CurvePoint = i, p
		}
	}
	if k.Latency == slowest {
		k.Cautions = append(k.Cautions, Unsaturated)
	}
	return k, nil
}

// Peak finds the point with the greatest throughput; of several, the one with the least latency. It
// returns its index. It fails for an empty curve, and for numbers that cannot be a throughput or a
// latency.
func Peak(curve []CurvePoint) (int, error) {
	if len(curve) == 0 {
		return 0, fmt.Errorf("peak: the curve has no points")
	}
	best := 0
	for i, p := range curve {
		if err := p.check(i); err != nil {
			return 0, fmt.Errorf("peak: %w", err)
		}
		if p.better(curve[best]) {
			best = i
		}
	}
	return best, nil
}

// better reports whether p has more throughput than q, or as much with less latency.
func (p CurvePoint) better(q CurvePoint) bool {
	return p.Throughput > q.Throughput || p.Throughput == q.Throughput && p.Latency < q.Latency
}

func (p CurvePoint) check(i int) error {
	if !(p.Throughput >= 0 && p.Throughput <= Limit) {
		return fmt.Errorf("point %d: throughput %g must be 0 or more", i+1, p.Throughput)
	}
	if !(p.Latency > 0 && p.Latency <= Limit) {
		return fmt.Errorf("point %d: latency %g must be above 0", i+1, p.Latency)
	}
	return nil
}
