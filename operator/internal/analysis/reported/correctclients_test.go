package reported_test

import (
	"os"
	"slices"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/reported"
)

// A series of an Experiment reports Basil's client failures.
func TestThroughputPerCorrectClientIsASeries(t *testing.T) {
	const name = "basil-client-failures.yaml"
	b, err := os.ReadFile("../../../../experiments/reported/" + name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := reported.Decode(name, b)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, c := range f.Curves {
		if c.Column("ThroughputPerCorrectClient") == nil {
			continue
		}
		series, other := c.Series(nil)
		if !slices.ContainsFunc(series, func(s v1alpha1.ReportedSeries) bool {
			return s.Metric == "ThroughputPerCorrectClient" && s.Unit == "tx/s" && len(s.Values) == len(c.X)
		}) {
			t.Errorf("%s has no series of it; not known are %q", c.Name, other)
		}
		found++
	}
	if found != 10 {
		t.Errorf("%d curves have the metric, want all ten of the file", found)
	}
}
