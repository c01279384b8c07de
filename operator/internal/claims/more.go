package claims

import (
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/stats"
)

// more notes how many repetitions would tell whether what is estimated lies between low and high.
func (r *run) more(e stats.Estimate, counts []int, low, high float64) {
	if len(counts) == 0 {
		return
	}
	r.noteChance(e, slices.Min(counts), low, high)
	if n, ok := stats.More(e, slices.Min(counts), low, high); ok {
		r.wanting = append(r.wanting, n)
	}
}

// moreNote says about how many repetitions would decide, which is as many as the comparison wants
// that wants most; empty where nothing can be said.
func (r *run) moreNote() string {
	switch {
	case len(r.wanting) == 0:
		return ""
	case slices.Contains(r.wanting, 0):
		return fmt.Sprintf("at these means and deviations, %d repetitions would still not decide", stats.MostRepetitions)
	}
	return fmt.Sprintf("about %d repetitions would decide with a probability of 80%%, if means and deviations stay as they are", slices.Max(r.wanting))
}
