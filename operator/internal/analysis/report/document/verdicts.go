package document

import (
	"assay.dev/assay/operator/internal/analysis/report/strip"
	"assay.dev/assay/operator/internal/results"
)

// VerdictTable has one line for each claim.
func VerdictTable(claims []results.ClaimResult) Table {
	t := Table{Columns: []Column{{"verdict", false}, {"claim", false}, {"statement", false}, {"result", false}}}
	for _, c := range claims {
		word := "**" + c.Verdict + "**"
		if c.Distance != "" {
			word += ": " + c.Distance
		}
		t.Rows = append(t.Rows, []string{word, c.Name, c.Statement, strip.Sentence(c)})
	}
	return t
}
