package plot_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// scaled is an experiment of two systems over clients, whose machines drift: every round is slower
// than the one before, for both.
func scaled(clients ...string) results.Experiment {
	e := results.Experiment{
		Name: "scaled", Axes: []results.Axis{{Name: "system", Values: []string{"old", "new", "newer"}}, {Name: "clients", Values: clients}},
		Reported: []results.ReportedSeries{
			{Name: "old", Metric: "Throughput", Unit: "ktx/s", Axis: "clients", At: map[string]string{"system": "old"}, X: []string{"5", "10", "20"}, Y: []float64{1, 2, 3}},
			{Name: "new", Metric: "Throughput", Unit: "ktx/s", Axis: "clients", At: map[string]string{"system": "new"}, X: []string{"5", "10", "40"}, Y: []float64{1.5, 2.6, 6}},
		},
		Figures: []results.Figure{{Name: "gain", SpeedUp: &results.SpeedUp{Of: "Throughput", Over: map[string]string{"system": "old"}}}},
	}
	for round := range 4 {
		for i, system := range e.Axes[0].Values {
			for k, c := range clients {
				base := 1000 * float64(k+1) * (1 + 0.4*float64(i)) * (1 - 0.1*float64(round)) * (1 + 0.01*float64((round*7+i*5+k*3)%4))
				e.Trials = append(e.Trials, results.TrialLine{
					Name: fmt.Sprintf("t-%d", len(e.Trials)), Number: int32(len(e.Trials)), PointIndex: int32(i*len(clients) + k), Repetition: int32(round), Outcome: stats.Succeeded,
					Coordinates: map[string]string{"system": system, "clients": c}, Committed: 5000, Throughput: base, MeanMillis: 5000 / base, P10Millis: 2000 / base, P50Millis: 4000 / base,
					P90Millis: 9000 / base, P95Millis: 12000 / base, P99Millis: 20000 / base, P999Millis: 30000 / base,
				})
			}
		}
	}
	e.Points = stats.Points(e.Trials)
	return e
}

// The numbers are those of the claim about the ratio: one question has one answer.
func TestSpeedUpIsTheRatioOfClaims(t *testing.T) {
	for of, function := range map[string]string{
		"Throughput":  "ratio(of='throughput', system=['new', 'old'], clients=10)",
		"MeanLatency": "ratio(of='mean_latency', system=['old', 'new'], clients=10)",
		"P50Latency":  "ratio(of='p50_latency', system=['old', 'new'], clients=10)",
	} {
		e := scaled("5", "10", "20")
		e.Figures[0].SpeedUp.Of = of
		one := v1alpha1.NewValue("1")
		claim := claims.Evaluate([]v1alpha1.Claim{{Name: "c", Expr: function, Reported: &one, Within: "10%"}}, e.Points, e.Trials)[0]
		if claim.Low == nil || *claim.High-*claim.Low > 0.1 {
			t.Fatalf("the claim has no narrow interval, though rounds are paired: %s", claim.Message)
		}
		var page bytes.Buffer
		if err := format.Markdown(&page, e); err != nil {
			t.Fatal(err)
		}
		contains(t, of, page.String(), fmt.Sprintf("| new | 10 | 4 | 4 | %.3f | %.3f to %.3f |", *claim.Measured, *claim.Low, *claim.High), "by rounds, in one model of 9 points")
		if strings.Contains(page.String(), "| old | 10 | 4 | 4 | 1") {
			t.Errorf("%s: the baseline is compared with itself", of)
		}
	}
}

func TestSpeedUpIsDrawn(t *testing.T) {
	curves := picture(t, scaled("5", "10", "20"), "figure-01-gain")
	golden(t, "speedup-curves", curves)
	contains(t, "the curves", string(curves), "throughput / that of system=old", ">system=old<", ">new<", ">newer<", ">new (paper)<", "new (paper): 2 points, from 1.50 at 5.00")
	bars := picture(t, scaled("5"), "figure-01-gain")
	golden(t, "speedup-bars", bars)
	contains(t, "the bars", string(bars), ">system=old<", "new: 1.4", ">n=4<", "the paper&#39;s 1.5")
	e := scaled("5")
	e.Figures[0].SpeedUp.Of = "MeanLatency"
	contains(t, "the bars of latency", string(picture(t, e, "figure-01-gain")), "mean latency of system=old / that of the point")
}

// A figure names the values that it lacks, and draws the rest.
func TestWhatASpeedUpLacks(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*results.Experiment)
		want   string
	}{
		"no such value": {func(e *results.Experiment) { e.Figures[0].SpeedUp.Over["system"] = "oldest" }, "6 points have no baseline: this sweep has not system=oldest there."},
		"no valid trial of the baseline": {func(e *results.Experiment) {
			for i := range e.Trials {
				if e.Trials[i].PointIndex == 0 {
					e.Trials[i].Outcome = stats.Invalid
				}
			}
		}, "Not in the figure: system=new, clients=5: "},
		"one round": {func(e *results.Experiment) { e.Trials = e.Trials[:6] }, "4 ratios have no interval: it takes two trials"},
		"one after the other": {func(e *results.Experiment) {
			for i := range e.Trials {
				e.Trials[i].Number = e.Trials[i].PointIndex*10 + e.Trials[i].Repetition
			}
		}, "The trials of 4 points and of the baseline did not run in turn"},
		"too few transactions": {func(e *results.Experiment) {
			e.Figures[0].SpeedUp.Of = "P99Latency"
			e.Trials[0].Committed = 100
		}, "the 99th percentile needs 1000"},
	} {
		e := scaled("5", "10")
		tc.change(&e)
		e.Points = stats.Points(e.Trials)
		var text bytes.Buffer
		if err := format.Text(&text, e, format.TextOptions{Width: 1000}); err != nil {
			t.Fatal(err)
		}
		contains(t, name, text.String(), tc.want)
	}
}
