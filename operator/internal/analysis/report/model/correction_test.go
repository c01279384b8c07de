package model_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/reports"
)

// Once, an artifact's throughput that is known to be 4% too high stood beside ours without a
// correction.
func TestCorrectedSeries(t *testing.T) {
	exp := reports.Experiment()
	for i := range exp.Spec.Reported {
		if exp.Spec.Reported[i].Metric == "Throughput" {
			exp.Spec.Reported[i].Correction = "0.5"
		}
	}
	plain, corrected := reports.Build(), model.Build(exp, nil, reports.Axes, reports.Lines(), reports.Start.Add(time.Hour))
	of := func(e results.Experiment) string {
		var page bytes.Buffer
		if err := format.Markdown(&page, e); err != nil {
			t.Fatal(err)
		}
		return page.String()
	}
	if of(plain) == of(corrected) || !strings.Contains(of(corrected), "its values are multiplied by 0.5 everywhere") || strings.Contains(of(plain), "multiplied") {
		t.Errorf("corrected:\n%s", of(corrected))
	}
	exp.Spec.Reported = []v1alpha1.ReportedSeries{{Name: "s", Metric: "Throughput", Unit: "tx/s", Correction: "-1"}}
	if got := model.Build(exp, nil, reports.Axes, reports.Lines(), reports.Start); len(got.Reported) > 0 || len(got.LeftOut) != 1 {
		t.Errorf("a correction of -1: %+v, %q", got.Reported, got.LeftOut)
	}
}
