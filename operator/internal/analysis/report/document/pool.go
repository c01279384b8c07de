package document

import (
	"fmt"
	"math"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// PoolLegend says how to read the table.
const PoolLegend = "Random effects: each site has a true value of its own. Mean: over all sites that there could be, with its 95% interval (Hartung and Knapp). Next site: where another site's true value " +
	"lies in 95% of cases; it takes three sites. I²: the share of the variance that is between sites. tau: their deviation, of the logarithm for quotients, which are pooled so. P: of Cochran's Q, of as much where sites do not differ."

// PoolTables are the sites and the effects. The long columns come last, so that a narrow page shows
// the numbers.
func PoolTables(p model.PooledEffects) (sites, effects Table) {
	sites.Columns = []Column{{"site", true}, {"experiment", false}, {"began", false}, {"CPU", false}, {"nodes", false}, {"UID", false}}
	effects.Columns = []Column{{"claim", false}, {"mean", true}, {"next site", true}}
	for i, s := range p.Sites {
		sites.Rows = append(sites.Rows, []string{fmt.Sprint(i + 1), s.Name, s.Began, strings.Join(s.CPUs, ", "), strings.Join(s.Nodes, ", "), s.UID})
		effects.Columns = append(effects.Columns, Column{fmt.Sprintf("site %d", i+1), true})
	}
	effects.Columns = append(effects.Columns, Column{"I²", true}, Column{"tau", true}, Column{"P", true}, Column{"what", false})
	for _, e := range p.Effects {
		row := []string{e.Claim, intervalCell(&e.Mean), rangeCell(e.Prediction)}
		for _, s := range e.OfSites {
			row = append(row, intervalCell(s))
		}
		effects.Rows = append(effects.Rows, append(row, fmt.Sprintf("%.0f%%", 100*e.I2), fmt.Sprintf("%.3g", math.Sqrt(e.Tau2)), pText(e.QP), e.What))
	}
	return sites, effects
}

func intervalCell(i *results.Interval) string {
	if i == nil {
		return "-"
	}
	d := stats.Decimals(i.Value, (*i.High-*i.Low)/2)
	return fmt.Sprintf("%s [%s, %s]", stats.Fixed(i.Value, d), stats.Fixed(*i.Low, d), stats.Fixed(*i.High, d))
}

func rangeCell(i *results.Interval) string {
	if i == nil {
		return "-"
	}
	d := stats.Decimals(i.Value, (*i.High-*i.Low)/2)
	return stats.Fixed(*i.Low, d) + " to " + stats.Fixed(*i.High, d)
}
