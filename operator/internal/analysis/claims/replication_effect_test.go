package claims

import (
	"math"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results/stats"
)

// A quotient of 0.8 that rests on one run is measured as 0.8, as 1, and as 1.25.
func TestReplicationOfAnEffect(t *testing.T) {
	reported := v1alpha1.NewValue("0.8")
	one := 1.0
	for name, tc := range map[string]struct {
		value, half float64
		deviation   string
		inside      bool
		least       float64
		small       bool // the paper could hardly have seen it
		succeeds    bool
	}{
		"the same":              {0.8, 0.02, "5%", true, math.Exp(-1.5285687 * 0.05), false, true},
		"none":                  {1, 0.02, "5%", false, math.Exp(-1.5285687 * 0.05), true, false},
		"reversed":              {1.25, 0.02, "5%", false, math.Exp(-1.5285687 * 0.05), true, false},
		"deviation not printed": {0.8, 0.02, v1alpha1.DeviationNotPrinted, true, math.Exp(-1.5285687 * 0.05), false, true},
	} {
		c := v1alpha1.Claim{Reported: &reported, ReportedBy: &v1alpha1.ReportedBy{Runs: 1, Deviation: tc.deviation}}
		r := replicationOf(c, plain, stats.Estimate{Value: tc.value, Low: tc.value - tc.half, High: tc.value + tc.half, Known: true}, &one)
		if r == nil || r.ScepticalP == nil {
			t.Fatalf("%s: %+v", name, r)
		}
		if r.Inside != tc.inside || math.Abs(*r.LeastEffect-tc.least) > 1e-6 || (*r.SmallTelescopesP < 0.05) != tc.small || (*r.ScepticalP < 0.025) != tc.succeeds {
			t.Errorf("%s: %+v, least effect %g, P of it %g, sceptical P %g", name, r, *r.LeastEffect, *r.SmallTelescopesP, *r.ScepticalP)
		}
		if assumed := strings.Contains(replicationText(*r, plain), "not printed"); assumed != (tc.deviation == v1alpha1.DeviationNotPrinted) {
			t.Errorf("%s: it says that the deviation is assumed: %t", name, assumed)
		}
	}
	absolute := replicationOf(v1alpha1.Claim{Reported: &reported, ReportedBy: &v1alpha1.ReportedBy{Runs: 3, Deviation: "5%"}}, perSecond, stats.Estimate{Value: 0.8, Low: 0.7, High: 0.9}, nil)
	if absolute == nil || absolute.ScepticalP != nil {
		t.Errorf("an absolute number has an effect: %+v", absolute)
	}
}
