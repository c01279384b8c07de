package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	inCluster "assay.dev/assay/operator/internal/analysis/report/stored"
	"assay.dev/assay/operator/internal/analysis/report/strip"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
)

const (
	// mostVerdicts are shown: what is redrawn must fit into a terminal's rows.
	mostVerdicts = 12
	// longestName of a claim that is shown whole.
	longestName = 32
	// leastPicture is how wide a verdict's line must be to tell anything.
	leastPicture = 20
	// sparkWidth of the current trial's throughput, in characters.
	sparkWidth = 30
	// readWithin is how long reading the results may hold up a look.
	readWithin = 5 * time.Second
)

// Claims are the claims of an experiment as its results have them. Where the results do not say the
// same as the status yet, they are those of the status, which have no numbers.
func Claims(e *v1alpha1.Experiment, stored []results.ClaimResult) []results.ClaimResult {
	if agrees(e, stored) {
		return stored
	}
	var all []results.ClaimResult
	for _, c := range e.Status.Claims {
		all = append(all, results.ClaimResult{Name: c.Name, Verdict: string(c.Verdict), Message: c.Message})
	}
	return all
}

func agrees(e *v1alpha1.Experiment, stored []results.ClaimResult) bool {
	return slices.EqualFunc(e.Status.Claims, stored, func(c v1alpha1.ClaimStatus, s results.ClaimResult) bool {
		return c.Name == s.Name && string(c.Verdict) == s.Verdict
	})
}

// pictures remember what a terminal draws and one look does not tell.
type pictures struct {
	trial string // whose rates these are
	rates []float64

	seen   string // what the claims were read for
	claims []results.ClaimResult
}

// into adds what is drawn to a look.
func (p *pictures) into(ctx context.Context, look *progress, cluster session.Cluster, seen seen, now time.Time) {
	if t := running(seen.trials); t != nil && look.trial != "" {
		rate, known := rateOf(t)
		_, detail := phaseOf(t, now)
		look.spark = p.spark(t.Name, rate, known && detail != "")
	}
	look.claims = p.verdicts(ctx, cluster, seen.experiment)
}

// spark draws the throughput of the current trial, by the looks since it began.
func (p *pictures) spark(trial string, rate float64, known bool) string {
	if trial != p.trial {
		p.trial, p.rates = trial, nil
	}
	if !known {
		return ""
	}
	p.rates = append(p.rates, rate)
	return strip.Spark(p.rates, sparkWidth)
}

// verdicts reads the results again when trials or verdicts have changed. Results that cannot be
// read leave all as it was: the next look may read them.
func (p *pictures) verdicts(ctx context.Context, cluster session.Cluster, e *v1alpha1.Experiment) []results.ClaimResult {
	now, err := json.Marshal([]any{e.Status.Trials, e.Status.Claims, e.Status.ResultsConfigMap})
	if err == nil && string(now) != p.seen && e.Status.ResultsConfigMap != "" && len(e.Status.Claims) > 0 {
		ctx, cancel := context.WithTimeout(ctx, readWithin)
		defer cancel()
		if stored, err := inCluster.Find(ctx, cluster.Client, cluster.Namespace, e.Name); err == nil {
			if r, err := inCluster.Decode(stored); err == nil {
				p.claims = r.Claims
				if agrees(e, r.Claims) { // else the next look reads what is about to be written
					p.seen = string(now)
				}
			}
		}
	}
	return Claims(e, p.claims)
}

// verdictRows are a heading and a row for each claim that is judged: verdict, name, and the strip
// of the report where there is room for it.
func verdictRows(claims []results.ClaimResult, over, color bool, width int) (rows []string) {
	claims = slices.DeleteFunc(slices.Clone(claims), func(c results.ClaimResult) bool { return strip.StateOf(c.Verdict) == strip.NotJudged })
	if len(claims) == 0 {
		return nil
	}
	name := 0
	for _, c := range claims {
		name = max(name, min(longestName, len([]rune(c.Name))))
	}
	heading, drawn := "Verdicts so far", false
	if over {
		heading = "Verdicts"
	}
	for i, c := range claims {
		if i == mostVerdicts {
			rows = append(rows, fmt.Sprintf("and %d more", len(claims)-i))
			break
		}
		row := fmt.Sprintf("  %-*s", name, shortened(c.Name, name))
		if room := width - 1 - strip.WordWidth - 2 - name - 2; room >= leastPicture {
			if lines := strip.Lines(c, room); len(lines) > 0 {
				row += "  " + lines[decides(c)]
				drawn = true
			}
		}
		// The colour is no character: it is added to a row that is cut already.
		rows = append(rows, strip.Word(c.Verdict, color)+cut(row, width-strip.WordWidth))
	}
	if drawn {
		heading += ": ░ is allowed, ├──┤ measured"
	}
	return append([]string{cut(heading, width)}, rows...)
}

// decides is the track of a claim that its verdict follows from: the first that comes to the same.
func decides(c results.ClaimResult) int {
	return max(0, slices.IndexFunc(strip.Tracks(c), func(t strip.Track) bool { return t.State == strip.StateOf(c.Verdict) }))
}

func shortened(name string, to int) string {
	if runes := []rune(name); len(runes) > to {
		return string(runes[:to-1]) + "…"
	}
	return name
}
