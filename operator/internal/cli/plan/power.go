package plan

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/model"
	planner "assay.dev/assay/operator/internal/experiment/plan"
)

// Defaults for the power of claims: the deviation of the trials of a point divided by their mean,
// and the difference between compared values that the paper does not state.
const (
	assumedDeviation = "3%"
	assumedEffect    = "10%"
)

// shareOf reads the percentage of a flag as a share.
func shareOf(flag, text string) (float64, error) {
	number, isPercentage := strings.CutSuffix(text, "%")
	percent, err := strconv.ParseFloat(number, 64)
	if !isPercentage || err != nil || !(percent > 0 && percent <= 100) {
		return 0, fmt.Errorf("--%s %s: must be a percentage above 0%% and at most 100%%, such as 3%%", flag, text)
	}
	return percent / 100, nil
}

// writePower prints for each claim how probable it is that the trials support it if the paper is
// right.
func writePower(b *strings.Builder, p *planner.Plan, o Options) error {
	text, difference := cmp.Or(o.Deviation, assumedDeviation), cmp.Or(o.Effect, assumedEffect)
	deviation, err := shareOf("deviation", text)
	if err != nil {
		return err
	}
	effect, err := shareOf("effect", difference)
	if err != nil {
		return err
	}
	n := int(planner.LeastRepetitions(p.Spec.Repetitions, len(p.Points)))
	powers := model.Power(p.Spec, p.Axes, n, deviation, effect)
	if len(powers) == 0 {
		return nil
	}
	defer writeExpected(b, p, text, deviation, effect)
	widest, unknown, assumed := 0, 0, 0
	for _, w := range powers {
		widest = max(widest, len(w.Claim))
		if !w.Known {
			unknown++
		}
		if w.Assumed {
			assumed++
		}
	}
	fmt.Fprintf(b, "\nPower\n\n  how probable it is that the trials support a claim with n=%d if the paper's curves hold, and trials of a point deviate by %s of their mean (--deviation)\n", n, text)
	for _, w := range powers {
		mark := ""
		if w.Assumed {
			mark = " *"
		}
		switch {
		case !w.Known:
		case w.Enough == 0:
			fmt.Fprintf(b, "  %-*s  %3.0f%%; for 80%% more than 50 repetitions%s\n", widest, w.Claim, 100*w.Share, mark)
		default:
			fmt.Fprintf(b, "  %-*s  %3.0f%%; for 80%% %d repetitions%s\n", widest, w.Claim, 100*w.Share, w.Enough, mark)
		}
	}
	if assumed > 0 {
		fmt.Fprintf(b, "  * spec.reported has not all that it reads. Assumed: what it compares differs by %s (--effect), and a quantity is as it is reported\n", difference)
	}
	if unknown > 0 {
		fmt.Fprintf(b, "  %s: not known, since spec.reported has not all that they read, and curves, rates, recoveries and measurements are not assumed\n", count(unknown, "claim"))
	}
	return nil
}

// writeExpected prints how many trials an experiment takes on average, if its repetitions go on
// until claims are decided.
func writeExpected(b *strings.Builder, p *planner.Plan, text string, deviation, effect float64) {
	if !planner.UntilDecided(p.Spec.Repetitions) {
		return
	}
	mean, off, of := model.ExpectedRounds(p.Spec, p.Axes, deviation, effect)
	if of == 0 {
		return
	}
	fmt.Fprintf(b, "\n  Until %s decided: %.1f rounds on average (standard error %.1f), %.0f trials, if trials deviate by %s; at most %s\n",
		map[bool]string{true: "the claim is", false: fmt.Sprintf("these %d claims are", of)}[of == 1], mean, off, mean*float64(len(p.Points)), text, count(p.MostTrials(), "trial"))
}
