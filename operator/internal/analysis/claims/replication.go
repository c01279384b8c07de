package claims

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// assumedDeviation is the deviation of a run, in percent, that is assumed if the paper does not
// print it. Runs of reference systems on one set of machines deviate by 1 to 8%.
const assumedDeviation = 5

// replicationOf judges a measured quantity as a replication of the paper's runs. The prediction
// interval is where the mean of a replication should lie if the system is the paper's (Spence and
// Stanley, PLoS ONE 11, 2016). Its width comes from the paper's runs and from ours. A paper's
// single run is not the truth. If runs of an identical system deviate by 5%, a tenth of them lie
// further than 8% from it. The argument none is the value of the quantity without an effect, if it
// is about one. Nil: the claim does not say on how many runs its value rests.
func replicationOf(c v1alpha1.Claim, u unit, e stats.Estimate, none *float64) *results.Replication {
	if c.ReportedBy == nil || c.Reported == nil {
		return nil
	}
	reported, err := amount(c.Reported.String(), u)
	percent, errPercent := strconv.ParseFloat(strings.TrimSuffix(c.ReportedBy.Deviation, "%"), 64)
	assumed := c.ReportedBy.Deviation == v1alpha1.DeviationNotPrinted
	if assumed {
		percent, errPercent = assumedDeviation, nil
	}
	if err != nil || errPercent != nil || c.ReportedBy.Runs < 1 {
		return nil
	}
	relative := percent / 100 / math.Sqrt(float64(c.ReportedBy.Runs))
	ours, theirs := (e.High-e.Low)/2, stats.NormalQuantile*math.Abs(reported)*relative
	half := math.Hypot(ours, theirs)
	r := &results.Replication{Runs: c.ReportedBy.Runs, DeviationPercent: percent, Assumed: assumed,
		Low: reported - half, High: reported + half, Inside: math.Abs(e.Value-reported) <= half}
	if none != nil {
		addEffects(r, reported, relative, *none, e)
	}
	return r
}

// addEffects compares the effects of the paper and of the replication: by their logarithms where no
// effect is 1.
func addEffects(r *results.Replication, reported, relative, none float64, e stats.Estimate) {
	theirs, theirError := reported, math.Abs(reported)*relative
	ours, oursError := e.Value, (e.High-e.Low)/2/stats.NormalQuantile
	if none != 0 {
		if reported <= 0 || e.Low <= 0 {
			return
		}
		theirs, theirError = math.Log(reported/none), relative
		ours, oursError = math.Log(e.Value/none), math.Log(e.High/e.Low)/2/stats.NormalQuantile
	}
	if theirs == 0 || !(theirError > 0) || !(oursError > 0) {
		return
	}
	sign := math.Copysign(1, theirs)
	least, p := stats.SmallTelescopes(theirError, sign*ours, oursError)
	sceptical := stats.ScepticalP(theirs/theirError, ours/oursError, theirError*theirError/(oursError*oursError))
	if least = sign * least; none != 0 {
		least = none * math.Exp(least)
	}
	r.LeastEffect, r.SmallTelescopesP, r.ScepticalP = &least, &p, &sceptical
}

// replicationText words a prediction interval.
func replicationText(r results.Replication, u unit) string {
	where := "does"
	if !r.Inside {
		where = "does not"
	}
	of := "1 run"
	if r.Runs > 1 {
		of = fmt.Sprintf("%d runs", r.Runs)
	}
	by := strconv.FormatFloat(r.DeviationPercent, 'f', -1, 64) + "%"
	if r.Assumed {
		by += " (not printed: an assumption)"
	}
	return fmt.Sprintf("of %s that deviate by %s, a replication's mean should lie from %s to %s: it %s", of, by, showBound(r.Low, u), showBound(r.High, u), where)
}
