package claims_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// The mean of a replication of the same system lies in the interval in 95% of experiments (94 to
// 98% of 2,000). That holds for a paper of one run and of five, though the paper's own number is
// not the truth.
func TestReplicationsLieWhereTheyShould(t *testing.T) {
	for _, runs := range []int32{1, 5} {
		rng := rand.New(rand.NewPCG(10, uint64(runs)))
		lies, within := 0, 0
		const experiments = 2000
		for range experiments {
			draw := func() float64 { return 1000 * (1 + 0.05*rng.NormFloat64()) }
			paper := 0.0
			for range runs {
				paper += draw() / float64(runs)
			}
			var ls []results.TrialLine
			for k := range 10 {
				ls = append(ls, results.TrialLine{Number: int32(k), Repetition: int32(k), Outcome: stats.Succeeded, Committed: 1000, Throughput: draw()})
			}
			c := claim("throughput()", "", "10%")
			v := v1alpha1.NewValue(fmt.Sprint(paper))
			c.Reported, c.ReportedBy = &v, &v1alpha1.ReportedBy{Runs: runs, Deviation: "5%"}
			got := claims.Evaluate([]v1alpha1.Claim{c}, stats.Points(ls), ls)[0]
			switch {
			case strings.Contains(got.Message, ": it does;"):
				lies++
			case !strings.Contains(got.Message, ": it does not;"):
				t.Fatalf("%s says nothing of replications", got.Message)
			}
			if got.Verdict == string(v1alpha1.VerdictHolds) {
				within++
			}
		}
		t.Logf("of %d runs: %.1f%% lie in the interval, %.1f%% are Holds", runs, 100*float64(lies)/experiments, 100*float64(within)/experiments)
		if share := float64(lies) / experiments; share < 0.94 || share > 0.98 {
			t.Errorf("of %d runs: %.1f%% lie in the interval", runs, 100*share)
		}
	}
}

// At one of several looks the interval of a verdict is wider. The numbers of a replication say
// otherwise: they once used the wider interval as 95%.
func TestReplicationsAtALook(t *testing.T) {
	var ls []results.TrialLine
	for k, x := range []float64{980, 1010, 1005, 990, 1020, 1000} {
		ls = append(ls, results.TrialLine{Number: int32(k), Repetition: int32(k), Outcome: stats.Succeeded, Committed: 1000, Throughput: x})
	}
	c := claim("throughput()", "", "10%")
	v := v1alpha1.NewValue("1030")
	c.Reported, c.ReportedBy = &v, &v1alpha1.ReportedBy{Runs: 3, Deviation: "5%"}
	once := claims.Evaluate([]v1alpha1.Claim{c}, stats.Points(ls), ls)[0]
	look := claims.EvaluateLook([]v1alpha1.Claim{c}, stats.Points(ls), ls, stats.Looks{First: 3, Last: 20}, 6)[0]
	if *look.High-*look.Low <= *once.High-*once.Low {
		t.Fatalf("the interval is %g to %g at a look, and %g to %g once", *look.Low, *look.High, *once.Low, *once.High)
	}
	if a, b := look.Replication, once.Replication; math.Abs(a.Low-b.Low) > 1e-9 || math.Abs(a.High-b.High) > 1e-9 {
		t.Errorf("a replication lies from %g to %g at a look, and from %g to %g once", a.Low, a.High, b.Low, b.High)
	}
}
