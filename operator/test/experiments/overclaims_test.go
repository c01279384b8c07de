package experiments

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// Sentences that the review of verdicts found in files and pages stay corrected: docs/design says
// which finding each part is about.
func TestCorrectedSentencesStayCorrected(t *testing.T) {
	judged := func(file, profile, claim string) v1alpha1.Claim {
		exp := readExperiment(t, file)
		exp.Spec.Profile = profile
		claims := plan.ApplyProfile(exp.Spec).Claims
		i := slices.IndexFunc(claims, func(c v1alpha1.Claim) bool { return c.Name == claim })
		if i < 0 {
			t.Fatalf("%s has no claim %s", file, claim)
		}
		return claims[i]
	}
	says := func(file string, want ...string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("../../..", file))
		if err != nil {
			t.Fatal(err)
		}
		flat := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "#", "")), " ")
		for _, w := range want {
			if !strings.Contains(flat, w) {
				t.Errorf("%s does not say %q", file, w)
			}
		}
	}
	t.Run("O2", func(t *testing.T) {
		for _, file := range []string{"basil/sharding.yaml", "pesto/sharding.yaml"} {
			for _, c := range withFactor(t, file, "0.7 *") {
				if !strings.Contains(c.Statement, "70%") {
					t.Errorf("%s, claim %s asks for a factor of 0.7 and says: %s", file, c.Name, c.Statement)
				}
			}
		}
	})
	t.Run("O3, O8, O9", func(t *testing.T) {
		for _, c := range [][2]string{{"hats/consistency.yaml", "order"}, {"dmtree/operations.yaml", "scans"}, {"pesto/workloads-tpcc.yaml", "standby-adds-latency"}} {
			full, smoke := judged(c[0], "", c[1]), judged(c[0], "smoke", c[1])
			if full.Expr != smoke.Expr && full.Statement == smoke.Statement {
				t.Errorf("%s, claim %s: smoke judges %s under the sentence %q of %s", c[0], c[1], smoke.Expr, full.Statement, full.Expr)
			}
		}
	})
	t.Run("O4", func(t *testing.T) {
		c := judged("failure-fp.yaml", "", "one-timeout-as-reported")
		if c.Reported == nil || c.Reported.String() != "3.2ms" || strings.Count(c.Expr, "clients=25") != 2 {
			t.Errorf("the reported timeout is %v by %s", c.Reported, c.Expr)
		}
		if own := judged("failure-fp.yaml", "smoke", "one-timeout"); own.Basis != v1alpha1.BasisOwn || own.Reported != nil {
			t.Errorf("the file's own timeout is said to be of %q", own.Basis)
		}
	})
	t.Run("O6", func(t *testing.T) { says("experiments/hats/workloads.yaml", "that of disks in none") })
	t.Run("O7", func(t *testing.T) {
		c := judged("basil/beside-the-original.yaml", "", "as-fast")
		if c.Within != "" || !strings.Contains(c.Expr, "> 0.5 *") || !strings.Contains(c.Expr, "< 2 *") {
			t.Errorf("the claim is %s within %q", c.Expr, c.Within)
		}
	})
	t.Run("O10", func(t *testing.T) {
		says("experiments/pesto/originals-pesto.yaml", "nothing fails here")
		exp := readExperiment(t, "pesto/failure-original.yaml")
		var lines []string
		for _, a := range exp.Spec.Sweep {
			for _, p := range a.Points {
				lines = append(lines, p.Name)
			}
		}
		for _, line := range []string{"ideal", "failure-nofp", "failure-fp"} {
			if !slices.Contains(lines, line) {
				t.Errorf("failure-original.yaml has no line %s, only %v", line, lines)
			}
		}
	})
	t.Run("O11", func(t *testing.T) {
		numbers := 0
		for _, s := range readExperiment(t, "basil/client-failures.yaml").Spec.Reported {
			numbers += len(s.Values)
		}
		if numbers < 38 {
			t.Errorf("client-failures.yaml has %d numbers of the source", numbers)
		}
	})
	t.Run("O14", func(t *testing.T) {
		says("docs/reference/results.md", "the mean of each trial's own percentile")
	})
	t.Run("O15", func(t *testing.T) {
		for _, file := range experimentFiles(t) {
			for _, p := range readExperiment(t, file).Spec.Profiles {
				if p.Name == "testbed" && (p.Placement == nil || p.Placement.Replicas != "replicas" || p.Placement.Clients != "clients") {
					t.Errorf("%s: the testbed's pools are %+v", file, p.Placement)
				}
			}
		}
	})
}

// withFactor are the claims of the full evaluation and of smoke whose expressions contain a text.
func withFactor(t *testing.T, file, text string) (found []v1alpha1.Claim) {
	t.Helper()
	for _, profile := range []string{"", "smoke"} {
		exp := readExperiment(t, file)
		exp.Spec.Profile = profile
		for _, c := range plan.ApplyProfile(exp.Spec).Claims {
			if strings.Contains(c.Expr, text) {
				found = append(found, c)
			}
		}
	}
	if len(found) == 0 {
		t.Errorf("no claim of %s has %s", file, text)
	}
	return found
}
