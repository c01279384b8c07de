package plan

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	planner "assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/report"
)

// assumedDeviation of the trials of a point by their mean.
const assumedDeviation = "3%"

// writePower says of each claim how probable it is that it is reproduced if the paper is right.
func writePower(b *strings.Builder, p *planner.Plan, o Options) error {
	text := cmp.Or(o.Deviation, assumedDeviation)
	number, isPercentage := strings.CutSuffix(text, "%")
	percent, err := strconv.ParseFloat(number, 64)
	if !isPercentage || err != nil || !(percent > 0 && percent <= 100) {
		return fmt.Errorf("--deviation %s: must be a percentage above 0%% and at most 100%%, such as 3%%", text)
	}
	n := int(planner.LeastRepetitions(p.Spec.Repetitions, len(p.Points)))
	powers := report.Power(p.Spec, p.Axes, n, percent/100)
	if len(powers) == 0 {
		return nil
	}
	widest, unknown := 0, 0
	for _, w := range powers {
		widest = max(widest, len(w.Claim))
		if !w.Known {
			unknown++
		}
	}
	fmt.Fprintf(b, "\nPower\n\n  how probable Reproduced is with n=%d if the paper's curves hold, and trials of a point deviate by %s of their mean (--deviation)\n", n, text)
	for _, w := range powers {
		switch {
		case !w.Known:
		case w.Enough == 0:
			fmt.Fprintf(b, "  %-*s  %3.0f%%; for 80%% more than 50 repetitions\n", widest, w.Claim, 100*w.Share)
		default:
			fmt.Fprintf(b, "  %-*s  %3.0f%%; for 80%% %d repetitions\n", widest, w.Claim, 100*w.Share, w.Enough)
		}
	}
	if unknown > 0 {
		fmt.Fprintf(b, "  %s: not known, since spec.reported has not all that they read\n", count(unknown, "claim"))
	}
	return nil
}
