package claims

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/stats"
)

// replication says where the mean of a replication should lie if the system is the paper's, and
// whether it does: the prediction interval of Spence and Stanley (PLoS ONE 11, 2016), whose width
// is of the paper's runs and of ours. A paper's single run is no truth: of an identical system
// whose runs deviate by 5%, a tenth lie further than 8% from it.
func replication(c v1alpha1.Claim, u unit, e stats.Estimate, counts []int) string {
	if c.ReportedBy == nil || c.Reported == nil || len(counts) == 0 {
		return ""
	}
	reported, err := amount(c.Reported.String(), u)
	percent, errPercent := strconv.ParseFloat(strings.TrimSuffix(c.ReportedBy.Deviation, "%"), 64)
	if err != nil || errPercent != nil || c.ReportedBy.Runs < 1 {
		return ""
	}
	ours := (e.High - e.Low) / 2
	theirs := stats.NormalQuantile * math.Abs(reported) * percent / 100 / math.Sqrt(float64(c.ReportedBy.Runs))
	half := math.Hypot(ours, theirs)
	where := "does"
	if math.Abs(e.Value-reported) > half {
		where = "does not"
	}
	of := "1 run"
	if c.ReportedBy.Runs > 1 {
		of = fmt.Sprintf("%d runs", c.ReportedBy.Runs)
	}
	return fmt.Sprintf("of %s that deviate by %s, a replication's mean should lie from %s to %s: it %s", of, c.ReportedBy.Deviation,
		showBound(reported-half, u), showBound(reported+half, u), where)
}
