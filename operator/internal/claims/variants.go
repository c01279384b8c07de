package claims

import (
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/stats"
)

// two are a metric's samples of two variants.
type two struct {
	a, b []float64 // by repetition
	// paired: both have a valid trial in the same rounds, and all trials of one round ran before those
	// of the next, so that a[i] and b[i] are of one round.
	paired bool
	// apart: the trials of both did not alternate, so that rounds mean nothing.
	apart bool
}

// pairOf reads the samples of the two points of a call. Its answer means nothing when something is missing.
func (r *run) pairOf(a arguments) two {
	var samples [2][]float64
	var lines [2][]results.TrialLine
	for i, variant := range a.pair {
		at := append(slices.Clone(a.at), variant)
		found := r.find(at)
		if len(found) != 1 {
			r.missing = append(r.missing, fmt.Sprintf("%d points have %s, and one is needed", len(found), showCoordinates(at)))
			return two{}
		}
		samples[i], lines[i] = r.valuesAt(found[0], a.metric), r.samples[found[0].Index]
	}
	rounds := roundsOf(lines[0])
	t := two{a: samples[0], b: samples[1], apart: !interleaved(lines[0], lines[1])}
	t.paired = len(rounds) > 1 && slices.Equal(rounds, roundsOf(lines[1])) && !t.apart
	if t.apart {
		r.remarks = append(r.remarks, notInterleaved)
	}
	return t
}

// notInterleaved is what must be known of a comparison of trials that ran one after the other.
const notInterleaved = "the trials of the points that are compared did not run in turn, so that a drift of the machines counts as a difference"

// interleaved reports whether the trials of two points ran in rounds: all of one repetition before those
// of the next. A repetition that one of them lacks is left out. Of an order that puts all trials of a
// point together, no round is one, even if both have the same repetitions.
func interleaved(a, b []results.TrialLine) bool {
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

// roundsOf are the repetitions of trials, each once; nil when one occurs twice, so that it is not clear which belongs to the other variant's.
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

func (t two) counts() []int { return []int{len(t.a), len(t.b)} }

// method says how the two were compared.
func (t two) method() string {
	if t.paired {
		return "by rounds"
	}
	if t.apart {
		return "not by rounds, since the variants did not run in turn"
	}
	return "not by rounds, since the variants were not measured in the same ones"
}

// different decides whether two variants differ. An interval of the difference that holds 0 leaves it open: it does not show that they are equal.
func (r *run) different(a arguments) truth {
	t := r.pairOf(a)
	if len(r.missing) > 0 {
		return unsettled
	}
	d := stats.Difference(stats.Aggregate(t.a), stats.Aggregate(t.b))
	if t.paired {
		paired, _, err := stats.Paired(t.a, t.b)
		if err != nil {
			r.missing = append(r.missing, err.Error())
			return unsettled
		}
		d = paired
	}
	r.counts = append(r.counts, t.counts()...)
	r.unknown = r.unknown || !d.Known
	verdict := unsettled
	if d.Known && (d.Low > 0 || d.High < 0) {
		verdict = holds
	}
	r.notes = append(r.notes, fmt.Sprintf("%s=%s and %s %s: difference %s, %s", a.pair[0].axis, a.pair[0].value, a.pair[1].value,
		map[truth]string{holds: "differ", unsettled: "cannot be told apart"}[verdict], show(d, unitOfMetric(a.metric)), t.method()))
	return verdict
}

// ratioOf is the ratio of two variants, with its own interval: of the rounds' ratios where rounds are complete, else Fieller's.
func (r *run) ratioOf(a arguments) quantity {
	t := r.pairOf(a)
	if len(r.missing) > 0 {
		return quantity{}
	}
	method := t.method()
	if t.paired {
		e, _, err := stats.PairedRatio(t.a, t.b)
		if err == nil {
			r.remarks = append(r.remarks, method)
			return quantity{value: e.Value, own: &e, counts: t.counts()}
		}
		method = fmt.Sprintf("not by rounds (%v)", err) // a value is 0
	}
	r.remarks = append(r.remarks, method)
	e, err := stats.Ratio(stats.Aggregate(t.a), stats.Aggregate(t.b))
	if err != nil {
		r.missing = append(r.missing, err.Error())
		return quantity{}
	}
	if slices.Contains(e.Cautions, stats.DenominatorNearZero) {
		r.remarks = append(r.remarks, stats.DenominatorNearZero.Text())
	}
	return quantity{value: e.Value, own: &e.Estimate, counts: t.counts()}
}

// unitOfMetric is that of the function that reads it.
func unitOfMetric(m metric) unit {
	for _, name := range functionNames() {
		if f := functions[name]; f.metric == m.name {
			return unitOfType(f.result)
		}
	}
	return plain
}
