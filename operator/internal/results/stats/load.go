package stats

import (
	"fmt"
	"math"
)

// growing is the share of the offered requests that may be left at the end of a window.
const growing = 0.01

// QueueGrows reports whether a queue grew in the windows of trials. left has, for each trial, the
// share of its offered requests that had not ended, minus earlier leftovers. The mean must be more
// than 1%, and its 95% interval above 0.
func QueueGrows(left []float64) bool {
	a := Aggregate(left)
	return a.N > 1 && a.Mean > growing && a.Low > 0
}

// DefaultGoodputTolerance is how far goodput may lie from the offered load, as a share of it, for
// the load to be sustained. It is the 5% by which the HotStuff evaluation in OCaml (University of
// Cambridge) discards a point.
const DefaultGoodputTolerance = 0.05

// LoadPoint is one point of an open loop.
type LoadPoint struct {
	// Offered load and what of it was answered with success, per second.
	Offered, Goodput float64
	// QueueGrows: fewer requests ended in the window than were offered, and not by chance. Such a
	// load is not sustained, however near its goodput is: at 104% of what a system can do, 96% are
	// answered, and latency grows by 40 ms each second.
	QueueGrows bool
}

// Sustained reports whether goodput is within tolerance of the offered load: |goodput - offered| <=
// tolerance * offered, and the queue does not grow. The latency of a point that is not sustained
// must not be shown. It is that of the requests that got through, and the queue grows for as long
// as the run lasts.
func (p LoadPoint) Sustained(tolerance float64) bool {
	return !p.QueueGrows && math.Abs(p.Goodput-p.Offered) <= tolerance*p.Offered
}

// SustainedLoad finds the greatest load that is sustained, together with all lesser ones, and
// returns the index of its point; -1 when not even the least is. A sustained load above one that is
// not sustained does not count: it is chance, or a generator that lags. It fails for an empty list,
// a tolerance outside of [0, 1), and loads that are not above 0 or goodputs below 0.
func SustainedLoad(points []LoadPoint, tolerance float64) (int, error) {
	if len(points) == 0 {
		return -1, fmt.Errorf("sustained load: there are no points")
	}
	if !(tolerance >= 0 && tolerance < 1) {
		return -1, fmt.Errorf("sustained load: the tolerance is %g; it must be a share from 0 to less than 1", tolerance)
	}
	lost := math.Inf(1) // the least load that is not sustained
	for i, p := range points {
		if !(p.Offered > 0 && p.Offered <= Limit && p.Goodput >= 0 && p.Goodput <= Limit) {
			return -1, fmt.Errorf("sustained load: point %d has an offered load of %g and a goodput of %g; the load must be above 0, goodput 0 or more", i+1, p.Offered, p.Goodput)
		}
		if !p.Sustained(tolerance) {
			lost = math.Min(lost, p.Offered)
		}
	}
	best := -1
	for i, p := range points {
		if p.Offered < lost && (best < 0 || p.Offered > points[best].Offered) {
			best = i
		}
	}
	return best, nil
}

// PerCorrectClient is throughput for each correct client: the committed transactions of correct
// clients, divided by the seconds and by the number of these clients. It is how Basil and Pesto
// show faulty clients' harm to others: total throughput would fall just because faulty clients
// commit nothing. It fails when there is no correct client, when the window has no length, or when
// the count is negative.
func PerCorrectClient(committedByCorrect int64, correctClients int, windowSeconds float64) (float64, error) {
	if committedByCorrect < 0 || correctClients < 1 || !(windowSeconds > 0) || math.IsInf(windowSeconds, 1) {
		return 0, fmt.Errorf("throughput per correct client: %d transactions of %d correct clients in %g s; there must be a client and a window",
			committedByCorrect, correctClients, windowSeconds)
	}
	return float64(committedByCorrect) / float64(correctClients) / windowSeconds, nil
}
