package document

import (
	"fmt"

	"assay.dev/assay/operator/internal/results"
)

// looked says how often verdicts were looked at, and what that means for their intervals.
func looked(l results.Look, complete bool) string {
	if l.Number == 0 {
		return fmt.Sprintf("Verdicts are looked at %s at most, first after round %d.", times(l.Of), l.First)
	}
	text := fmt.Sprintf("Verdicts were looked at %s of at most %d, after rounds %d to %d", times(l.Number), l.Of, l.First, l.Rounds)
	if l.Number == 1 {
		text = fmt.Sprintf("Verdicts were looked at once of at most %d times, after round %d", l.Of, l.Rounds)
	}
	if !complete {
		text += "; trials go on"
	}
	return text + fmt.Sprintf(". Their intervals hold at any of these looks, whatever ended the trials: all looks together are wrong in 5%% at most, this one is at %.3g%%. "+
		"Tables and plots have plain 95%% intervals.", 100*(1-l.Level))
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
