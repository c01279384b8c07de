package stats_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/results/stats"
)

func TestSummarizeSaysWhatItsNCannotShow(t *testing.T) {
	few := []stats.Caution{stats.FewSamples, stats.MedianCoverage}
	for name, tc := range map[string]struct {
		samples  []float64
		median   stats.Median
		few      bool
		cautions []stats.Caution
	}{
		"none": {cautions: []stats.Caution{stats.NoSamples}},
		"one":  {samples: []float64{4}, median: stats.Median{Value: 4, Low: 4, High: 4}, cautions: []stats.Caution{stats.OneSample}},
		"two":  {samples: []float64{4, 1}, median: stats.Median{Value: 2.5, Low: 1, High: 4, Coverage: 0.5}, few: true, cautions: few},
		"four": {samples: []float64{4, 1, 2, 8}, median: stats.Median{Value: 3, Low: 1, High: 8, Coverage: 0.875}, few: true, cautions: few},
		"five": {
			samples: []float64{4, 1, 2, 8, 3}, median: stats.Median{Value: 3, Low: 1, High: 8, Coverage: 0.9375},
			cautions: []stats.Caution{stats.MedianCoverage},
		},
		"six":  {samples: []float64{4, 1, 2, 8, 3, 9}, median: stats.Median{Value: 3.5, Low: 1, High: 9, Coverage: 0.96875}},
		"nine": {samples: []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}, median: stats.Median{Value: 5, Low: 2, High: 8, Coverage: 1 - 2*10./512}},
		"six, equal": {
			samples: []float64{7, 7, 7, 7, 7, 7}, median: stats.Median{Value: 7, Low: 7, High: 7, Coverage: 0.96875},
			cautions: []stats.Caution{stats.NoVariation},
		},
		"two, equal": {
			samples: []float64{7, 7}, median: stats.Median{Value: 7, Low: 7, High: 7, Coverage: 0.5},
			few: true, cautions: []stats.Caution{stats.FewSamples, stats.NoVariation, stats.MedianCoverage},
		},
		"largest two": {
			samples: []float64{stats.Limit, -stats.Limit}, median: stats.Median{Low: -stats.Limit, High: stats.Limit, Coverage: 0.5},
			few: true, cautions: few,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := stats.Summarize(tc.samples)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.median, s.Median, near(1e-12)); diff != "" {
				t.Errorf("median (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.cautions, s.Cautions); diff != "" || s.Few != tc.few {
				t.Errorf("few %v, cautions (-want +got):\n%s", s.Few, diff)
			}
			if diff := cmp.Diff(stats.Aggregate(tc.samples), s.Aggregate); diff != "" {
				t.Errorf("the summary's mean is not that which claims are judged by (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSummarizeRefusesWhatIsNoNumber(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 2 * stats.Limit} {
		if s, err := stats.Summarize([]float64{1, x, 3}); err == nil {
			t.Errorf("Summarize with %g = %+v, want an error", x, s)
		}
	}
}

func TestEveryCautionHasItsText(t *testing.T) {
	for _, c := range []stats.Caution{stats.NoSamples, stats.OneSample, stats.FewSamples, stats.NoVariation, stats.MedianCoverage, stats.DenominatorNearZero,
		stats.Unsaturated, stats.NoCrossing, stats.ManyCrossings, stats.NoDip, stats.NotRecovered, stats.NoisyBaseline, stats.ShortBaseline, stats.NotStationary} {
		if c.Text() == string(c) {
			t.Errorf("%s has no text", c)
		}
	}
}
