package claims

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results/stats"
)

// ofTheEffect marks a tolerance that is a share of the effect.
const ofTheEffect = "% of the effect"

// target is the value that a quantity is compared with: what the source reports, or what the
// authors of the experiment expect. Nil: the claim is a comparison.
func target(c v1alpha1.Claim) *v1alpha1.Value {
	if c.Reported != nil {
		return c.Reported
	}
	return c.Expected
}

// boundOf is newBound for a claim with a target. Its errors name the field that the claim has.
func boundOf(c v1alpha1.Claim, u unit) (bound, error) {
	b, err := newBound(*target(c), c.Within, u)
	var inField *FieldError
	if c.Reported == nil && errors.As(err, &inField) && inField.Field == "reported" {
		return b, wrong("expected", "%s", inField.Detail)
	}
	return b, err
}

// newBound is reported ± within, for an expression of unit u. A tolerance of the effect is from 1-w
// to 1+w times the effect. The effect of a plain number is its logarithm. The effect of any other
// value is its difference from 0. So the bound never holds "no effect".
func newBound(reported v1alpha1.Value, within string, u unit) (bound, error) {
	value, err := amount(reported.String(), u)
	if err != nil {
		return bound{}, wrong("reported", "%s", err)
	}
	if share, ok := strings.CutSuffix(within, ofTheEffect); ok {
		return boundOfEffect(value, share, u)
	}
	var tolerance float64
	if percent, ok := strings.CutSuffix(within, "%"); ok {
		share, err := strconv.ParseFloat(percent, 64)
		if err != nil || !isFinite(share) { // with infinity every measurement would be right, and with NaN none could be judged
			return bound{}, wrong("within", "%q is not a percentage such as 25%%", within)
		}
		tolerance = math.Abs(value) * share / 100
	} else if tolerance, err = amount(within, u); err != nil {
		return bound{}, wrong("within", "%s, or a percentage such as 25%%", err)
	}
	if tolerance <= 0 {
		return bound{}, wrong("within", "leaves no tolerance around %s; no measurement could lie in it", reported)
	}
	b := bound{value: value, low: value - tolerance, high: value + tolerance}
	if !isFinite(b.low) || !isFinite(b.high) {
		return bound{}, wrong("within", "%s around %s is more than a number can hold", within, reported)
	}
	return b, nil
}

// boundOfEffect is the bound from 1-w to 1+w times an effect.
func boundOfEffect(value float64, percent string, u unit) (bound, error) {
	w, err := strconv.ParseFloat(percent, 64)
	switch {
	case err != nil || !(w > 0 && w < 100):
		return bound{}, wrong("within", "%q of the effect must be more than 0%% and less than 100%%: at 100%% it would hold no effect", percent+"%")
	case u == plain && !(value > 0 && value != 1), u != plain && value == 0:
		return bound{}, wrong("within", "there is no effect of which %s%% could be: a quotient has one where it is not 1, and a difference where it is not 0", percent)
	}
	least, most := (1-w/100)*value, (1+w/100)*value
	if u == plain {
		least, most = math.Pow(value, 1-w/100), math.Pow(value, 1+w/100)
	}
	return bound{value: value, low: math.Min(least, most), high: math.Max(least, most)}, nil
}

// amount reads a latency as a duration and anything else as a number.
func amount(text string, u unit) (float64, error) {
	if u == milliseconds {
		d, err := time.ParseDuration(text)
		if err != nil || !isDuration([]rune(text)) {
			return 0, fmt.Errorf("%q must be a duration such as 4.1ms, since expr is a latency", text)
		}
		return float64(d) / float64(time.Millisecond), nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !isFinite(x) {
		what := "a plain number"
		if u == perSecond {
			what = "a throughput in tx/s"
		}
		return 0, fmt.Errorf("%q must be a number, since expr is %s", text, what)
	}
	return x, nil
}

func showBound(x float64, u unit) string {
	return number(x, stats.Decimals(x, 0)) + suffix(u)
}
