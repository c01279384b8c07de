package claims

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	celast "github.com/google/cel-go/common/ast"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// maxTrendTrials bounds the work of a trend, which looks at every pair. With more trials, the mean
// of each point is taken.
const maxTrendTrials = 500

// curve lists the points with these coordinates along an axis, in order of its values if they are
// numbers. It notes what is missing.
func (r *pointReader) curve(at []coordinate, along string, least int) []results.PointResult {
	found := r.find(at)
	if !slices.ContainsFunc(found, func(p results.PointResult) bool { _, ok := p.Coordinates[along]; return ok }) || len(found) < least {
		r.missing = append(r.missing, fmt.Sprintf("%d points along %s have %s, and %d are needed", len(found), along, showCoordinates(at), least))
		return nil
	}
	place := func(p results.PointResult) float64 { x, _ := axisNumber(p.Coordinates[along]); return x }
	slices.SortStableFunc(found, func(p, q results.PointResult) int { return cmp.Compare(place(p), place(q)) })
	for i := 1; i < len(found); i++ {
		if found[i].Coordinates[along] == found[i-1].Coordinates[along] {
			r.missing = append(r.missing, fmt.Sprintf("several points match %s at %s=%s", showCoordinates(at), along, found[i].Coordinates[along]))
			return nil
		}
	}
	return found
}

// knee is a metric at the knee of the latency-throughput curve along an axis. The curve that ends
// before its knee gives a lower bound.
func (r *run) knee(a arguments, u unit) quantity {
	points := r.curve(a.at, a.along, 3)
	var curve []stats.CurvePoint
	for _, p := range points {
		throughput, latency := r.valuesAt(p, metric{name: stats.Throughput}), r.valuesAt(p, metric{name: stats.MeanLatency})
		if len(throughput) > 0 && len(latency) > 0 {
			curve = append(curve, stats.CurvePoint{Throughput: stats.Aggregate(throughput).Mean, Latency: stats.Aggregate(latency).Mean})
		}
	}
	if len(r.missing) > 0 {
		return quantity{}
	}
	k, err := stats.FindKnee(curve)
	if err != nil {
		r.missing = append(r.missing, err.Error())
		return quantity{}
	}
	at := points[k.Index]
	r.caveat(CaveatChosenPoint, "the knee is at "+showPoint(at.Coordinates), showPoint(at.Coordinates))
	if slices.Contains(k.Cautions, stats.Unsaturated) {
		r.caveat(CaveatUnsaturated, stats.Unsaturated.Text())
	}
	byLatency := func(p, q stats.CurvePoint) int { return cmp.Compare(p.Latency, q.Latency) }
	least, slowest := slices.Index(curve, slices.MinFunc(curve, byLatency)), slices.Index(curve, slices.MaxFunc(curve, byLatency))
	return r.choose(at, r.atKneeOrTied(points, points[least]), "the knee", func(p results.PointResult) quantity {
		q := r.meanAt(p, a.metric, u)
		if p.Index == points[slowest].Index { // the curve ends before its knee
			q = q.atLeast()
		}
		return q
	})
}

// series is a metric along an axis.
func (r *pointReader) series(points []results.PointResult, along string, m metric) stats.Series {
	var s stats.Series
	for _, p := range points {
		x, ok := axisNumber(p.Coordinates[along])
		if !ok {
			r.missing = append(r.missing, fmt.Sprintf("axis %s has the value %s, which is no number", along, p.Coordinates[along]))
		}
		s.X, s.Samples = append(s.X, x), append(s.Samples, r.valuesAt(p, m))
	}
	return s
}

// crossover is where the curves of two variants cross.
func (r *run) crossover(a arguments) quantity {
	var curves [2]stats.Series
	q := quantity{unit: plain}
	for i, variant := range a.pair {
		curves[i] = r.series(r.curve(append(slices.Clone(a.at), variant), a.along, 2), a.along, a.metric)
		for _, xs := range curves[i].Samples {
			q.counts = append(q.counts, len(xs))
		}
	}
	if len(r.missing) > 0 {
		return quantity{}
	}
	c, err := stats.Crossover(curves[0], curves[1])
	if err != nil {
		r.missing = append(r.missing, err.Error())
		return quantity{}
	}
	for _, caution := range c.Cautions {
		if caution == stats.ManyCrossings || caution == stats.FewSamples {
			r.caveat(CaveatCrossing, caution.Text())
		}
	}
	switch {
	case slices.Contains(c.Cautions, stats.NoCrossing):
		r.counts = append(r.counts, q.counts...)
		r.unknown = r.unknown || slices.Min(q.counts) < 2
		contradicted, against := apart(curves[0], curves[1])
		return quantity{absent: stats.NoCrossing.Text(), contradicted: contradicted, against: against}
	case !c.Known && slices.Min(q.counts) > 1:
		r.caveat(CaveatCrossing, "the trials do not show that the curves change places between the first point and the last: whether they do is open")
	}
	q.value, q.own = c.Value, &c.Estimate
	return q
}

// apart reports whether one curve lies above the other at every point, by the interval of the
// difference there. Its P is the greatest P of any point, since each point must show it.
func apart(a, b stats.Series) (bool, evidence) {
	above, below := 0, 0
	all := evidence{tests: 1}
	for i := range a.X {
		d := stats.Difference(stats.Aggregate(a.Samples[i]), stats.Aggregate(b.Samples[i]))
		switch {
		case d.Known && d.Low > 0:
			above++
		case d.Known && d.High < 0:
			below++
		}
		all.p = max(all.p, beyond(d, 0).p)
	}
	return above == len(a.X) || below == len(a.X), all
}

// decide evaluates a function that is a statement by itself.
func (r *run) decide(call celast.CallExpr, id int64) judged {
	a, err := r.arguments(call, id)
	if err != nil {
		r.missing = append(r.missing, err.Error())
		return undecided
	}
	if functions[call.FunctionName()].points == ofTwoVariants {
		return r.different(a, id)
	}
	return r.trend(a, call.FunctionName(), id)
}

// trend decides whether a metric rises or falls along an axis.
func (r *run) trend(a arguments, direction string, id int64) judged {
	points := r.curve(a.at, a.along, 3)
	s := r.series(points, a.along, a.metric)
	if len(r.missing) > 0 {
		return undecided
	}
	t, how, err := r.findTrend(points, s, a.metric)
	if err != nil {
		r.missing = append(r.missing, err.Error())
		return undecided
	}
	verdict := judged{truth: unsettled, favour: noEvidence, against: evidence{p: t.P, tests: 1}}
	if t.P < r.level() {
		verdict.truth = fails
	}
	if (t.Statistic > 0) == (direction == "increasing") {
		verdict = verdict.not()
	}
	note := fmt.Sprintf("%s along %s %s: Kendall's tau %.2f, P %.2g %s, median slope %.3g", direction, a.along, verdict.truth, t.Statistic, t.P, how, t.Slope)
	note += r.turn(s, a, verdict.truth == holds, direction)
	if verdict.truth == unsettled && math.Abs(t.Statistic) == 1 {
		note += "; no order of so few trials decides a trend: it takes three rounds of three points, or two of four, or one of five"
	}
	r.notes = append(r.notes, note)
	r.trendTerm(id, direction, t, verdict.truth)
	return verdict
}

// findTrend tests for a trend within rounds if trials ran in turn, and else over all trials. The
// result how says which.
func (r *estimator) findTrend(points []results.PointResult, s stats.Series, m metric) (t stats.Trend, how string, err error) {
	trials := 0
	for _, xs := range s.Samples {
		trials += len(xs)
	}
	if rounds := r.trendRounds(points, s.X, m); len(rounds) > 0 {
		t, err = stats.FindTrendWithin(rounds)
		return t, fmt.Sprintf("within rounds, %d trials in %d", trials, len(rounds)), err
	}
	var x, y []float64
	for i, xs := range s.Samples {
		for _, v := range xs {
			x, y = append(x, s.X[i]), append(y, v)
		}
	}
	if len(x) > maxTrendTrials {
		x, y = nil, nil
		for i, xs := range s.Samples {
			x, y = append(x, s.X[i]), append(y, stats.Aggregate(xs).Mean)
		}
	}
	t, err = stats.FindTrend(x, y)
	return t, fmt.Sprintf("over %d trials, not by rounds", len(x)), err
}

// trendRounds are the rounds in which two points or more have a trial. There is none if the trials
// did not run in turn, or if some trial gives bounds instead of a number.
func (r *estimator) trendRounds(points []results.PointResult, xs []float64, m metric) []stats.TrendRound {
	byRound := make([]map[int32]float64, len(points))
	rounds := map[int32]bool{}
	var lines []results.TrialLine
	for i, p := range points {
		values, ok := r.byRound(mean{point: p.Index, metric: m})
		if !ok {
			return nil
		}
		byRound[i] = values
		lines = append(lines, r.samples[p.Index]...)
		for k := range values {
			rounds[k] = true
		}
	}
	if !inTurn(lines) {
		return nil
	}
	common := slices.DeleteFunc(sortedKeys(rounds), func(k int32) bool {
		return slices.ContainsFunc(byRound, func(of map[int32]float64) bool { _, ok := of[k]; return !ok })
	})
	deviations := r.deviations(points, m, common)
	var out []stats.TrendRound
	for _, k := range sortedKeys(rounds) {
		round := stats.TrendRound{}
		known := true
		for i, p := range points {
			y, ok := byRound[i][k]
			if !ok {
				continue
			}
			round.X, round.Y = append(round.X, xs[i]), append(round.Y, y)
			deviation, ok := deviations[p.Index]
			if known = known && ok; known {
				round.Deviations = append(round.Deviations, deviation)
			}
		}
		if !known {
			round.Deviations = nil
		}
		if len(round.X) > 1 {
			out = append(out, round)
		}
	}
	return out
}

// deviations are the standard deviations of each point's trials, as shares of its mean. They come
// from the model of all points. Without a model they are each point's own, from leastRounds rounds
// on. None: too little is known, and points are treated as if they deviate alike.
func (r *estimator) deviations(points []results.PointResult, m metric, common []int32) map[int32]float64 {
	found := map[int32]float64{}
	model := r.model(m, common)
	for _, p := range points {
		place, in := model.place[p.Index]
		switch {
		case model.known && in:
			found[p.Index] = model.Deviation(place)
		case !model.known && len(common) >= leastRounds:
			xs, _ := r.values(mean{point: p.Index, metric: m})
			if a := stats.Aggregate(xs); a.Mean != 0 {
				found[p.Index] = a.StdDev / math.Abs(a.Mean)
			}
		}
	}
	return found
}

// turn says where a curve that rises on the whole falls after its best point by more than its
// trials vary, or the reverse. By Kendall's test alone, most curves with a peak rise.
func (r *run) turn(s stats.Series, a arguments, trend bool, direction string) string {
	if !trend {
		return ""
	}
	sign := 1.0
	if direction == "decreasing" {
		sign = -1
	}
	best, last := 0, len(s.X)-1
	means := make([]results.Aggregate, len(s.X))
	for i, xs := range s.Samples {
		means[i] = stats.Aggregate(xs)
		if sign*means[i].Mean > sign*means[best].Mean {
			best = i
		}
	}
	back := stats.Difference(means[best], means[last])
	if best == last || !back.Known || !(sign*back.Low > 0 && sign*back.High > 0) {
		return ""
	}
	verb := map[bool]string{true: "falls", false: "rises"}[sign > 0]
	return fmt.Sprintf("; but not to the end: from %s=%s on it %s again, by %.2g%%, which its trials show", a.along,
		strconv.FormatFloat(s.X[best], 'f', -1, 64), verb, math.Abs(100*back.Value/means[best].Mean))
}
