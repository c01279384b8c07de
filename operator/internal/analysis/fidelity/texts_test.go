package fidelity

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// TestTextsOfAClaim: the numbers that a claim has, as they are written.
func TestTextsOfAClaim(t *testing.T) {
	reported, expected := v1alpha1.NewValue("1.50"), v1alpha1.NewValue("2ms")
	for _, tc := range []struct {
		claim v1alpha1.Claim
		want  results.ClaimText
	}{
		{v1alpha1.Claim{Statement: "s", Expr: "e", Within: "5%", Reported: &reported}, results.ClaimText{Statement: "s", Expr: "e", Within: "5%", Reported: "1.50"}},
		{v1alpha1.Claim{Expr: "e", Expected: &expected}, results.ClaimText{Expr: "e", Expected: "2ms"}},
		{v1alpha1.Claim{Expr: "e"}, results.ClaimText{Expr: "e"}},
	} {
		if diff := cmp.Diff(&tc.want, textOf(tc.claim)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func TestClaimsByTheirNames(t *testing.T) {
	spec := v1alpha1.ExperimentSpec{Claims: []v1alpha1.Claim{{Name: "a", Expr: "1"}, {Name: "b", Expr: "2"}}}
	for name, want := range map[string]string{"a": "1", "b": "2"} {
		if c, ok := claimOf(spec, name); !ok || c.Expr != want {
			t.Errorf("%s: %+v, %v", name, c, ok)
		}
	}
	if c, ok := claimOf(spec, "c"); ok || c.Name != "" {
		t.Errorf("a claim that is not there: %+v", c)
	}
}
