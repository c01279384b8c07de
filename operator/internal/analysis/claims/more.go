package claims

import (
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/results/stats"
)

// outlook is what further repetitions would do to a claim that is undecided.
type outlook struct {
	look    *look     // at which the claim is judged; nil: the only one
	wanting []int     // repetitions that would settle what is unsettled; 0: more than there can be
	chances []float64 // of the last look settling what is unsettled
}

// more notes how many repetitions would tell whether the estimated quantity lies between low and
// high.
func (o *outlook) more(e stats.Estimate, counts []int, low, high float64) {
	if len(counts) == 0 {
		return
	}
	o.noteChance(e, slices.Min(counts), low, high)
	if n, ok := stats.More(e, slices.Min(counts), low, high); ok {
		o.wanting = append(o.wanting, n)
	}
}

// note says about how many repetitions would decide: as many as the most demanding comparison
// needs. It is empty if there is no estimate.
func (o *outlook) note() string {
	switch {
	case len(o.wanting) == 0:
		return ""
	case slices.Contains(o.wanting, 0):
		return fmt.Sprintf("at these means and deviations, %d repetitions would still not decide", stats.MostRepetitions)
	}
	return fmt.Sprintf("about %d repetitions would decide with a probability of 80%%, if means and deviations stay as they are", slices.Max(o.wanting))
}

// noteChance keeps the chance that the last look decides. It must decide whether the quantity
// estimated from n trials of each point lies between low and high.
func (o *outlook) noteChance(e stats.Estimate, n int, low, high float64) {
	if o.look == nil {
		return
	}
	if chance, known := o.look.looks.Chance(e, n, low, high); known {
		o.chances = append(o.chances, chance)
	} else {
		o.chances = append(o.chances, 1)
	}
}

// chance that the last look decides; nil where the claim is judged at one look only, or nothing is
// unsettled.
func (o *outlook) chance() *float64 {
	if o.look == nil || len(o.chances) == 0 {
		return nil
	}
	return new(slices.Max(o.chances))
}
