package claims

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// two has a metric's means for two variants.
type two struct {
	a, b quantity
	// apart: the trials of both did not alternate, so that rounds mean nothing.
	apart bool
}

// pairOf reads the two points of a call. Its answer means nothing when something is missing.
func (r *pointReader) pairOf(a arguments) two {
	var q [2]quantity
	var lines [2][]results.TrialLine
	for i, variant := range a.pair {
		at := append(slices.Clone(a.at), variant)
		found := r.find(at)
		if len(found) != 1 {
			r.missing = append(r.missing, fmt.Sprintf("%d points have %s, and one is needed", len(found), showCoordinates(at)))
			return two{}
		}
		q[i], lines[i] = r.meanAt(found[0], a.metric, unitOfMetric(a.metric)), r.samples[found[0].Index]
	}
	return two{a: q[0], b: q[1], apart: !interleaved(lines[0], lines[1])}
}

// notInterleaved is the caveat of a comparison of trials that ran one after the other.
const notInterleaved = "the trials of the points that are compared did not run in turn, so that a drift of the machines counts as a difference"

// sameOrder is the caveat if rounds do not help against a drift.
const sameOrder = "in every round the points ran in the same order, so that a drift of the machines within rounds counts as a difference"

// unlikelyOrder is a probability. If a common order of all rounds is less likely than that, it was
// not drawn at random.
const unlikelyOrder = 0.01

// orderCaveats add caveats about the order in which a claim's trials ran, for every kind of claim.
// Points that are chosen as the best of several, or along an axis, are compared, too.
func (r *recorder) orderCaveats() {
	var all []results.TrialLine
	for _, p := range r.looked {
		if !interleaved(r.samples[r.looked[0]], r.samples[p]) {
			r.caveat(CaveatNotInterleaved, notInterleaved, r.pointNames(r.looked)...)
			return
		}
		all = append(all, r.samples[p]...)
	}
	if inOneOrder(all, len(r.looked)) {
		r.caveat(CaveatOneOrder, sameOrder, r.pointNames(r.looked)...)
	}
}

// inOneOrder reports whether the points have the same order in each round, in so many rounds that
// it is not by chance.
func inOneOrder(lines []results.TrialLine, points int) bool {
	rounds := map[int32][]results.TrialLine{}
	for _, l := range lines {
		rounds[l.Repetition] = append(rounds[l.Repetition], l)
	}
	var first []int32
	chance := 1.0
	for i, k := range sortedKeys(rounds) {
		trials := slices.SortedFunc(slices.Values(rounds[k]), func(a, b results.TrialLine) int { return cmp.Compare(a.Number, b.Number) })
		var order []int32
		for _, l := range trials {
			order = append(order, l.PointIndex)
		}
		if i == 0 {
			first = order
		}
		if !slices.Equal(first, order) {
			return false
		}
		for f := 2; f <= points && i > 0; f++ {
			chance /= float64(f)
		}
	}
	return chance < unlikelyOrder
}

// interleaved reports whether the trials of two points ran in rounds: all of one repetition before
// those of the next. A repetition that one of them lacks is left out. In an order that puts all
// trials of a point together, no round is one, even if both have the same repetitions. Each set of
// nodes has rounds of its own. Trials on several sets are no round.
func interleaved(a, b []results.TrialLine) bool {
	ofA, ofB := bySet(a), bySet(b)
	if len(onSeveralSets(slices.Concat(a, b))) > 0 {
		return false
	}
	for _, set := range sortedKeys(ofA) {
		if !interleavedThere(ofA[set], ofB[set]) {
			return false
		}
	}
	return true
}

// bySet puts lines together that are of one set of nodes.
func bySet(lines []results.TrialLine) map[string][]results.TrialLine {
	of := map[string][]results.TrialLine{}
	for _, l := range lines {
		of[l.NodeSet] = append(of[l.NodeSet], l)
	}
	return of
}

// onSeveralSets are the rounds that ran on several sets of nodes, which compare machines, too.
func onSeveralSets(lines []results.TrialLine) (several []int32) {
	set := map[int32]string{}
	for _, l := range lines {
		if first, seen := set[l.Repetition]; seen && first != l.NodeSet {
			several = append(several, l.Repetition)
		}
		set[l.Repetition] = l.NodeSet
	}
	return several
}

// interleavedThere is interleaved of the trials on one set of nodes.
func interleavedThere(a, b []results.TrialLine) bool {
	first, last := map[int32]int32{}, map[int32]int32{}
	points := map[int32]int{}
	for _, lines := range [][]results.TrialLine{a, b} {
		seen := map[int32]bool{}
		for _, l := range lines {
			if at, ok := first[l.Repetition]; !ok || l.Number < at {
				first[l.Repetition] = l.Number
			}
			last[l.Repetition] = max(last[l.Repetition], l.Number)
			if !seen[l.Repetition] {
				points[l.Repetition]++
			}
			seen[l.Repetition] = true
		}
	}
	ended, begun := int32(0), false
	for _, round := range sortedKeys(points) {
		if points[round] < 2 {
			continue
		}
		if begun && first[round] <= ended {
			return false
		}
		ended, begun = last[round], true
	}
	return true
}

// roundsOf are the repetitions of trials, each once; nil when one occurs twice, so that it is not
// clear which one pairs with the other variant.
func roundsOf(lines []results.TrialLine) []int32 {
	var rounds []int32
	for i, line := range lines {
		if i > 0 && line.Repetition == lines[i-1].Repetition {
			return nil
		}
		rounds = append(rounds, line.Repetition)
	}
	return rounds
}

// method says why the two were not compared by rounds.
func (r *run) method(t two) string {
	switch {
	case r.how() != "":
		return ""
	case t.apart:
		return ", not by rounds, since the variants did not run in turn"
	}
	return fmt.Sprintf(", not by rounds: that takes %d rounds of both, or %d points with values above 0", leastRounds, stats.LeastBlockPoints)
}

// different decides whether two variants differ. An interval of the difference that holds 0 leaves
// it open: it does not show that they are equal.
func (r *run) different(a arguments, id int64) judged {
	t := r.pairOf(a)
	if len(r.missing) > 0 {
		return undecided
	}
	d, counts := r.difference(t.b, t.a)
	r.counts = append(r.counts, counts...)
	r.unknown = r.unknown || !d.Known
	verdict := unsettled
	if d.Known && (d.Low > 0 || d.High < 0) {
		verdict = holds
	} else {
		r.outlook.more(d, counts, 0, 0)
	}
	r.notes = append(r.notes, fmt.Sprintf("%s=%s and %s %s: difference %s%s", a.pair[0].axis, a.pair[0].value, a.pair[1].value,
		map[truth]string{holds: "differ", unsettled: "cannot be told apart"}[verdict], show(d, unitOfMetric(a.metric)), r.method(t)))
	r.term(id, "significantly_different", t.a, t.b, verdict, beyond(d, 0))
	return judged{truth: verdict, favour: beyond(d, 0), against: noEvidence}
}

// ratioOf is the ratio of two variants.
func (r *run) ratioOf(a arguments) quantity {
	t := r.pairOf(a)
	if len(r.missing) > 0 {
		return quantity{}
	}
	if t.b.value == 0 {
		r.missing = append(r.missing, "the mean of the denominator is 0")
		return quantity{}
	}
	q := r.over(t.a, t.b)
	e, counts := r.estimate(q)
	if why := r.method(t); why != "" {
		r.caveat(CaveatNotByRounds, strings.TrimPrefix(why, ", "))
	}
	return quantity{value: e.Value, own: &e, counts: counts}
}

// unitOfMetric is the unit of the function that reads the metric.
func unitOfMetric(m metric) unit {
	for _, name := range functionNames() {
		if f := functions[name]; f.metric == m.name {
			return unitOfType(f.result)
		}
	}
	return plain
}
