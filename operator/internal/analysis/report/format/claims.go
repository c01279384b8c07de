package format

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/csvfile"
	"assay.dev/assay/operator/internal/analysis/report/strip"
	"assay.dev/assay/operator/internal/results"
)

// ClaimsCSV writes a line for each comparison of each claim, as the strip draws it. It has the
// verdict's word, and the distance of the trials from the source. It says what is compared (value;
// ratio: left divided by right; difference: left less right). It has the estimate with its
// interval, the bounds that the claim allows, trials, and p of the evidence against the claim. The
// last are kinds of caveats, and whether trials are to run. A claim that compares nothing with
// numbers has one line. Numbers are not rounded. Missing values are empty. The columns low95 and
// high95 are a 95% interval; at one of several looks, the intervals of all looks together hold at
// 95%.
func ClaimsCSV(w io.Writer, e results.Experiment) error {
	out := csvfile.NewWriter(w)
	_ = out.Write([]string{"claim", "verdict", "distance", "basis", "comparison", "outcome", "quantity", "unit", "measured", "low95", "high95", "bound_low", "bound_high", "reference", "n", "p_against", "weak", "caveats", "preliminary", "result"}) // kept: out.Error below
	preliminary := e.Completed == nil
	for _, c := range e.Claims {
		tracks := strip.Tracks(c)
		if len(tracks) == 0 {
			_ = out.Write(claimLine(c, preliminary, make([]string, trackCells)))
		}
		for _, t := range tracks {
			outcome := map[strip.State]string{strip.Supported: "True", strip.Refuted: "False", strip.Open: "Undecided"}[t.State]
			_ = out.Write(claimLine(c, preliminary, []string{
				t.Text, outcome, string(t.Quantity), t.Unit, csvfile.Exact(t.Value, true), exactOf(t.Low), exactOf(t.High), exactOf(t.BoundLow), exactOf(t.BoundHigh), exactOf(t.Reference),
			}))
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write the claims as CSV: %w", err)
	}
	return nil
}

// trackCells is how many columns a comparison has.
const trackCells = 10

func claimLine(c results.ClaimResult, preliminary bool, track []string) []string {
	var kinds []string
	for _, caveat := range c.Caveats {
		if !slices.Contains(kinds, caveat.Kind) {
			kinds = append(kinds, caveat.Kind)
		}
	}
	n := ""
	if c.N > 0 {
		n = strconv.Itoa(c.N)
	}
	return slices.Concat([]string{c.Name, c.Verdict, c.Distance, c.Basis}, track, []string{n, exactOf(c.P), c.Weak, strings.Join(kinds, " "), strconv.FormatBool(preliminary), strip.Sentence(c)})
}

func exactOf(x *float64) string {
	if x == nil {
		return ""
	}
	return csvfile.Exact(*x, true)
}
