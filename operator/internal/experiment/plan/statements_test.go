package plan_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// A verdict is about the sentence above it. A profile that judges something else has its own
// sentence. A wider bound has a reason, and a reported value has a place in the source.
func TestStatements(t *testing.T) {
	const own = "Four clients get more done than two."
	claim := func(change func(*v1alpha1.Claim)) func(*v1alpha1.ExperimentSpec) {
		return func(s *v1alpha1.ExperimentSpec) { change(&s.Claims[1]) }
	}
	profile := func(c v1alpha1.ProfileClaim) func(*v1alpha1.ExperimentSpec) {
		return func(s *v1alpha1.ExperimentSpec) { s.Profiles[0].Claims = []v1alpha1.ProfileClaim{c} }
	}
	sweep := func(axis v1alpha1.Axis, of ...v1alpha1.ProfileClaim) func(*v1alpha1.ExperimentSpec) {
		return func(s *v1alpha1.ExperimentSpec) {
			s.Profiles[0].Sweep, s.Profiles[0].Claims = []v1alpha1.Axis{axis}, of
		}
	}
	values := func(values ...string) v1alpha1.Axis {
		a := v1alpha1.Axis{Axis: "clients"}
		for _, v := range values {
			a.Values = append(a.Values, v1alpha1.NewValue(v))
		}
		return a
	}
	value := func(text string) *v1alpha1.Value { v := v1alpha1.NewValue(text); return &v }
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ExperimentSpec)
		want   []string // in the error; nil: accepted
	}{
		"as it is": {change: func(*v1alpha1.ExperimentSpec) {}},

		"another expression under the same sentence": {profile(v1alpha1.ProfileClaim{Name: "scales", Expr: "throughput(clients=8) > 1"}),
			[]string{"spec.profiles[0].claims[0].statement: Required", `profile "smoke" changes expr of claim "scales"`, "say in a sentence of its own"}},
		"another value":         {profile(v1alpha1.ProfileClaim{Name: "peak", Expected: value("90")}), []string{"claims[0].statement: Required", "changes expected"}},
		"another tolerance":     {profile(v1alpha1.ProfileClaim{Name: "peak", Within: "5%"}), []string{"claims[0].statement: Required", "changes within"}},
		"a value of the source": {profile(v1alpha1.ProfileClaim{Name: "peak", Reported: value("90")}), []string{"claims[0].statement: Required", "changes reported"}},
		"the full sentence again": {profile(v1alpha1.ProfileClaim{Name: "scales", Expr: "throughput(clients=8) > 1", Statement: "More clients get more done."}),
			[]string{"spec.profiles[0].claims[0].statement: Invalid", "is the sentence of the full evaluation"}},
		"an own sentence":     {change: profile(v1alpha1.ProfileClaim{Name: "scales", Expr: "throughput(clients=8) > 1", Statement: own})},
		"the same expression": {change: profile(v1alpha1.ProfileClaim{Name: "scales", Expr: "throughput(clients=8) > throughput(clients=2)"})},
		"skipped":             {change: profile(v1alpha1.ProfileClaim{Name: "scales", Expr: "throughput() > 1", Skip: "Too small."})},

		"a wider percentage": {profile(v1alpha1.ProfileClaim{Name: "peak", Within: "50%", Statement: own}),
			[]string{"spec.profiles[0].claims[0].widerBecause: Required", "50% of the value in place of 10%", "keep the tolerance 10%"}},
		"a wider amount":                  {profile(v1alpha1.ProfileClaim{Name: "peak", Within: "30", Statement: own}), []string{"widerBecause: Required", "30% of the value"}},
		"a tolerance of a smaller value":  {profile(v1alpha1.ProfileClaim{Name: "wait", Expected: value("1ms"), Statement: own}), []string{"widerBecause: Required", "100% of the value in place of 25%"}},
		"wider for a reason":              {change: profile(v1alpha1.ProfileClaim{Name: "peak", Within: "50%", Statement: own, WiderBecause: "Two cores are shared."})},
		"a narrower percentage":           {change: profile(v1alpha1.ProfileClaim{Name: "peak", Within: "5%", Statement: own})},
		"a tolerance of a greater value":  {change: profile(v1alpha1.ProfileClaim{Name: "wait", Expected: value("8ms"), Statement: own})},
		"a tolerance for what compared":   {change: profile(v1alpha1.ProfileClaim{Name: "scales", Expr: "throughput(clients=8)", Expected: value("9"), Within: "50%", Statement: own})},
		"a tolerance that is relative, 0": {change: profile(v1alpha1.ProfileClaim{Name: "peak", Expected: value("0"), Within: "50", Statement: own})},

		"a value that is read is left out": {sweep(values("2", "4")), []string{"spec.profiles[0].claims: Required", `profile "smoke" changes the axis clients`, `claim "scales"`, "skip it and say why"}},
		"a whole axis that is read is cut": {sweep(values("2", "8")), []string{"spec.profiles[0].claims: Required", `claim "peak"`}},
		"the claim is there without a sentence": {sweep(values("2", "8"), v1alpha1.ProfileClaim{Name: "wait", Skip: "Short."}, v1alpha1.ProfileClaim{Name: "peak", WiderBecause: "Small."}),
			[]string{"spec.profiles[0].claims[1].statement: Required", `claim "peak"`}},
		"values that are read stay": {change: sweep(values("2", "8"), v1alpha1.ProfileClaim{Name: "peak", Statement: own})},
		"the whole axis stays":      {change: sweep(values("8", "4", "2"))},
		"each has its own sentence": {change: sweep(values("2", "4"), v1alpha1.ProfileClaim{Name: "peak", Skip: "Too small."}, v1alpha1.ProfileClaim{Name: "wait", Skip: "Too small."},
			v1alpha1.ProfileClaim{Name: "scales", Statement: own, Expr: "throughput(clients=4) > throughput(clients=2)"})},

		"reported nowhere": {claim(func(c *v1alpha1.Claim) { c.Reported, c.Expected = c.Expected, nil }),
			[]string{"spec.claims[1].reportedIn: Required", "figure, table and row", "is expected, not reported"}},
		"reported in the source": {change: claim(func(c *v1alpha1.Claim) { c.Reported, c.Expected, c.ReportedIn = c.Expected, nil, "Table 2" })},
		"reported of no source": {func(s *v1alpha1.ExperimentSpec) {
			c := &s.Claims[1]
			s.Source, c.Reported, c.Expected, c.ReportedIn = nil, c.Expected, nil, "Table 2"
		}, []string{"spec.claims[1].reported: Invalid", "has no source that prints it", "give the value as expected"}},
	} {
		t.Run(name, func(t *testing.T) {
			exp := builders.Experiment("exp").System("echo").Set(func(s *v1alpha1.ExperimentSpec) {
				s.Source = &v1alpha1.Source{Title: "A paper"}
				s.Sweep = []v1alpha1.Axis{values("2", "4", "8")}
				s.Claims = []v1alpha1.Claim{
					{Name: "scales", Statement: "More clients get more done.", Expr: "throughput(clients=8) > throughput(clients=2)"},
					{Name: "peak", Statement: "It peaks at 100.", Expr: "max_throughput()", Expected: value("100"), Within: "10%"},
					{Name: "wait", Statement: "Eight wait for 4 ms.", Expr: "mean_latency(clients=8)", Expected: value("4ms"), Within: "1ms"},
				}
				s.Profiles = []v1alpha1.Profile{{Name: "smoke"}}
				tc.change(s)
			}).Obj()
			_, errs := plan.Validate(exp, map[string]v1alpha1.SystemSpec{"echo": builders.System("echo").Obj().Spec}, plan.Checks{Claim: claims.Check, Reads: claims.Reads})
			said := ""
			if len(errs) > 0 {
				said = errs.ToAggregate().Error()
			}
			if (said == "") != (tc.want == nil) {
				t.Fatalf("errors = %q, want %v", said, tc.want)
			}
			for _, want := range tc.want {
				if !strings.Contains(said, want) {
					t.Errorf("errors = %q, want %q in them", said, want)
				}
			}
		})
	}
}
