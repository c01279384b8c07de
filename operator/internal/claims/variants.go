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
	// paired: both have a valid trial in the same rounds, so that a[i] and b[i] are of one round.
	paired bool
}

// pairOf reads the samples of the two points of a call. Its answer means nothing when something is missing.
func (r *run) pairOf(a arguments) two {
	var samples [2][]float64
	var rounds [2][]int32
	for i, variant := range a.pair {
		at := append(slices.Clone(a.at), variant)
		found := r.find(at)
		if len(found) != 1 {
			r.missing = append(r.missing, fmt.Sprintf("%d points have %s, and one is needed", len(found), showCoordinates(at)))
			return two{}
		}
		samples[i], rounds[i] = r.valuesAt(found[0], a.metric), roundsOf(r.samples[found[0].Index])
	}
	return two{a: samples[0], b: samples[1], paired: len(rounds[0]) > 1 && slices.Equal(rounds[0], rounds[1])}
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
