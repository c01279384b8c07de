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
	// mostVerdicts is how many verdicts are shown: lines that are redrawn must fit into a
	// terminal's rows.
	mostVerdicts = 12
	// longestName is the longest name of a claim that is not cut.
	longestName = 32
	// leastPicture is the least width of a verdict's line that is readable.
	leastPicture = 20
	// sparkWidth is the width of the current trial's throughput, in characters.
	sparkWidth = 30
	// readWithin is how long a look may wait for the results.
	readWithin = 5 * time.Second
)

// Claims returns the claims of an experiment from its results. While results and status differ, it
// returns the claims of the status, which have no numbers.
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

// pictures keeps data for the drawings on a terminal that one look does not have.
type pictures struct {
	trial string // the trial that rates are of
	rates []float64

	seen   string // the state for which the claims were read
	claims []results.ClaimResult
}

// into adds the drawings to a look.
func (p *pictures) into(ctx context.Context, look *progress, cluster session.Cluster, seen seen, now time.Time) {
	if t := running(seen.trials); t != nil && look.trial != "" {
		rate, known := rateOf(t)
		_, detail := phaseOf(t, now)
		look.spark = p.spark(t.Name, rate, known && detail != "")
	}
	look.claims = p.verdicts(ctx, cluster, seen.experiment)
}

// spark draws the throughput of the current trial from the looks since the trial began.
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

// verdicts reads the results again when trials or verdicts have changed. If results cannot be read,
// the last ones stay, and a later look tries again.
func (p *pictures) verdicts(ctx context.Context, cluster session.Cluster, e *v1alpha1.Experiment) []results.ClaimResult {
	now, err := json.Marshal([]any{e.Status.Trials, e.Status.Claims, e.Status.ResultsConfigMap})
	if err == nil && string(now) != p.seen && e.Status.ResultsConfigMap != "" && len(e.Status.Claims) > 0 {
		ctx, cancel := context.WithTimeout(ctx, readWithin)
		defer cancel()
		if stored, err := inCluster.Find(ctx, cluster.Client, cluster.Namespace, e.Name); err == nil {
			if r, err := inCluster.Decode(stored); err == nil {
				p.claims = r.Claims
				if agrees(e, r.Claims) { // otherwise the results are about to change, and the next look reads them
					p.seen = string(now)
				}
			}
		}
	}
	return Claims(e, p.claims)
}

// verdictRows returns a heading and a row for each judged claim: verdict, name and, if there is
// room, the strip of the report.
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
		// A colour takes no width, so it is added after the row is cut.
		rows = append(rows, strip.Word(c.Verdict, color)+cut(row, width-strip.WordWidth))
	}
	if drawn {
		heading += ": ░ is allowed, ├──┤ measured"
	}
	return append([]string{cut(heading, width)}, rows...)
}

// decides returns the track that explains a claim's verdict: the first track with the same outcome.
func decides(c results.ClaimResult) int {
	return max(0, slices.IndexFunc(strip.Tracks(c), func(t strip.Track) bool { return t.State == strip.StateOf(c.Verdict) }))
}

func shortened(name string, to int) string {
	if runes := []rune(name); len(runes) > to {
		return string(runes[:to-1]) + "…"
	}
	return name
}
