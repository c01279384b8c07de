package document_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/results"
)

// All forms say whether the claims are those from before the first trial, and how often the authors
// may have looked.
func TestReportsSayWhatWasSealed(t *testing.T) {
	done := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	kept := func() *results.Seal {
		return &results.Seal{At: done.Add(-time.Hour), SHA256: strings.Repeat("ab", 32), Sealed: []byte(`{"claims":[]}`)}
	}
	for name, tc := range map[string]struct {
		change func(*results.Experiment)
		want   []string
		not    string
	}{
		"none":        {change: func(e *results.Experiment) { e.Seal = nil }, want: []string{"not sealed: "}, not: "Looks"},
		"sealed":      {change: func(*results.Experiment) {}, want: []string{"are those that were sealed before the first trial.", "2026-03-04T04:00:00Z, sha256:abab"}},
		"after each":  {change: func(*results.Experiment) {}, want: []string{"Looks at verdicts: they were shown after each of the 5 trials before the last; who read them is not known"}},
		"still going": {change: func(e *results.Experiment) { e.Completed = nil }, want: []string{"shown after each of the 6 trials before the last"}},
		"changed": {change: func(e *results.Experiment) {
			e.Seal.Changes = []results.SealChange{{Claim: "a", Field: "within", Was: `"25%"`, Is: `"50%"`}, {Field: "repetitions.min", Was: "5", Is: "3"}}
		}, want: []string{`before the first trial (2 fields): claim a: within was "25%", is "50%"; repetitions.min was 5, is 3.`}, not: "are those that were sealed"},
		"without the text": {change: func(e *results.Experiment) { e.Seal.Sealed = nil }, want: []string{"the text is gone"}},
		"earlier runs": {change: func(e *results.Experiment) { e.Seal.EarlierRuns, e.Seal.EarlierOtherClaims = 4, 3 },
			want: []string{"4 earlier runs of this name have results here; 3 of them had other claims, or no seal"}},
		"repetitions": {change: func(e *results.Experiment) { e.AdditionalRepetitions = 2 }, want: []string{"2 repetitions were added after the end"}},
		"judged anew": {change: func(e *results.Experiment) {
			e.Judged = &results.Judged{At: done, File: "f.yaml", Times: 3, OtherClaims: 1}
		},
			want: []string{"the trials were judged anew 3 times; once by other claims than before"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := results.Experiment{Name: "e", Completed: &done, Written: done, Planned: 6, Seal: kept(), Points: []results.PointResult{{Valid: 5, Invalid: 1}},
				Claims: []results.ClaimResult{{Name: "a", Statement: "A holds.", Verdict: "Holds", Expr: "throughput() > 1"}}}
			tc.change(&e)
			text := func(w io.Writer, e results.Experiment) error { return format.Text(w, e, format.TextOptions{}) }
			for form, write := range map[string]func(io.Writer, results.Experiment) error{"text": text, "markdown": format.Markdown, "html": format.HTML} {
				var b bytes.Buffer
				if err := write(&b, e); err != nil {
					t.Fatal(err)
				}
				said := strings.Join(strings.Fields(strings.NewReplacer("&#34;", `"`, "&quot;", `"`, "\\_", "_").Replace(b.String())), " ")
				for _, want := range tc.want {
					if !strings.Contains(said, want) {
						t.Errorf("%s does not say %q:\n%s", form, want, said)
					}
				}
				if tc.not != "" && strings.Contains(said, tc.not) {
					t.Errorf("%s says %q", form, tc.not)
				}
			}
		})
	}
}
