package evidence

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// No committed verdict may say more than was judged. With -v the test prints each decided verdict
// with its word, distance, sentence and expression, and how often each word occurs:
//
//	go test ./operator/test/evidence -run TestNoVerdictSaysMoreThanWasJudged -v
func TestNoVerdictSaysMoreThanWasJudged(t *testing.T) {
	words := map[string]int{}
	for _, file := range bundles(t) {
		name := filepath.Base(filepath.Dir(filepath.Dir(file))) + "/" + stemOf(filepath.Base(file))
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r, err := readJudged(data)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range r.results.Claims {
				words[c.Verdict]++
				if v := v1alpha1.Verdict(c.Verdict); v.Supports() || v.Refutes() {
					t.Logf("%s: %s\n  distance:   %s\n  sentence:   %s\n  expression: %s", c.Verdict, c.Name, cmp.Or(c.Distance, "none: the statement is the experiment's own"), c.Statement, c.Expr)
				}
			}
			for _, fault := range r.overclaims() {
				t.Error(fault)
			}
		})
	}
	for _, word := range slices.Sorted(maps.Keys(words)) {
		t.Logf("%-13s %d", word, words[word])
	}
}

// The check finds a forged word, and a forged record of what ran.
func TestForgedWordsAreSeen(t *testing.T) {
	value := func(n int) v1alpha1.Value { return v1alpha1.NewValue(strconv.Itoa(n)) }
	// made is a bundle in which a source's own program and a stand-in ran every load.
	made := func() judgedRun {
		return judgedRun{
			spec: v1alpha1.ExperimentSpec{
				Source:  &v1alpha1.Source{Systems: []v1alpha1.SourceSystem{{Name: "Alpha"}}},
				Systems: []v1alpha1.SystemReference{{Name: "alpha"}, {Name: "beta"}},
				Sweep:   []v1alpha1.Axis{{Axis: "clients", Values: []v1alpha1.Value{value(1), value(8)}}},
				Claims:  []v1alpha1.Claim{{Name: "fast", Statement: "Alpha is fast.", Expr: "throughput(system='alpha') > 5"}},
				Profiles: []v1alpha1.Profile{
					{Name: "small", Sweep: []v1alpha1.Axis{{Axis: "clients", Values: []v1alpha1.Value{value(1)}}}},
					{Name: "other", Claims: []v1alpha1.ProfileClaim{{Name: "fast", Statement: "Alpha runs.", Expr: "throughput(system='alpha') > 0"}}},
				},
			},
			systems: map[string]v1alpha1.SystemSpec{"alpha": {Program: &v1alpha1.Program{Name: "Alpha"}}, "beta": {Program: &v1alpha1.Program{Name: "Beta"}}},
			results: results.Experiment{
				Fidelity: &results.Fidelity{Size: full, Class: standIn, Systems: []results.SystemFidelity{{System: "alpha", Class: original}, {System: "beta", Class: standIn}}},
				Claims:   []results.ClaimResult{{Name: "fast", Verdict: "Reproduced", Expr: "throughput(system='alpha') > 5"}},
			},
		}
	}
	for name, tc := range map[string]struct {
		forge func(*judgedRun)
		want  string // empty: no error is found
	}{
		"the source's own program, all of it": {func(*judgedRun) {}, ""},
		"a stand-in is read, too": {func(r *judgedRun) {
			r.results.Claims[0].Expr = "throughput(system='alpha') > throughput(system='beta')"
		}, "fast is Reproduced, which says more than was judged"},
		"a function names no system": {func(r *judgedRun) { r.results.Claims[0].Expr = "throughput(system='alpha') > throughput(clients=1)" }, "fast is Reproduced"},
		"a re-implementation": {func(r *judgedRun) {
			r.systems["alpha"] = v1alpha1.SystemSpec{Program: &v1alpha1.Program{Name: "Alpha in Go", Reimplements: "Alpha"}}
			r.results.Fidelity.Systems[0].Class = reimplementation
		}, "fast is Reproduced"},
		"a re-implementation replicates": {func(r *judgedRun) {
			r.systems["alpha"] = v1alpha1.SystemSpec{Program: &v1alpha1.Program{Name: "Alpha in Go", Reimplements: "Alpha"}}
			r.results.Fidelity.Systems[0].Class, r.results.Claims[0].Verdict = reimplementation, "Replicated"
		}, ""},
		"reduced":                  {func(r *judgedRun) { r.spec.Profile, r.results.Fidelity.Size = "small", reduced }, "size: Reduced"},
		"reduced, said to be full": {func(r *judgedRun) { r.spec.Profile = "small" }, "it says size Full; its spec gives Reduced"},
		"another statement":        {func(r *judgedRun) { r.spec.Profile = "other" }, "rewritten by the profile: true"},
		"a statement of one's own": {func(r *judgedRun) { r.spec.Claims[0].Basis = v1alpha1.BasisOwn }, "statement of the source: false"},
		"an own one refuted": {func(r *judgedRun) {
			r.spec.Claims[0].Basis, r.results.Claims[0].Verdict = v1alpha1.BasisOwn, "NotReplicated"
		}, "fast is NotReplicated"},
		"an own one, consistent":        {func(r *judgedRun) { r.spec.Source, r.results.Claims[0].Verdict = nil, "Consistent" }, "fast is Consistent, which says more"},
		"no distance":                   {func(r *judgedRun) { r.results.Claims[0].Verdict = "Contradicted" }, "does not say how far"},
		"a stand-in said to be its own": {func(r *judgedRun) { r.results.Fidelity.Systems[1].Class = original }, `it says that system beta is "Original"; spec and System give "StandIn"`},
		"words of an older version":     {func(r *judgedRun) { r.results.Fidelity = nil }, "it does not say what ran"},
		"no word":                       {func(r *judgedRun) { r.results.Claims[0].Verdict = "Confirmed" }, "which is none"},
	} {
		t.Run(name, func(t *testing.T) {
			r := made()
			tc.forge(&r)
			got := strings.Join(r.overclaims(), "\n")
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("faults: %q; want %q", got, tc.want)
			}
		})
	}
}

// The READMEs beside the bundles use only words that a report in their folder has. They said
// Reproduced long after the reports did not.
func TestReadmesSayAtMostWhatReportsSay(t *testing.T) {
	readmes, err := filepath.Glob("../../../experiments/*/evidence/README.md")
	if err != nil || len(readmes) == 0 {
		t.Fatalf("%d READMEs, %v", len(readmes), err)
	}
	words := regexp.MustCompile(`\b(Not)?(Reproduced|Replicated)\b`)
	for _, readme := range readmes {
		text, err := os.ReadFile(readme)
		if err != nil {
			t.Fatal(err)
		}
		reports, err := filepath.Glob(filepath.Join(filepath.Dir(readme), "*.txt"))
		if err != nil {
			t.Fatal(err)
		}
		said := map[string]bool{}
		for _, report := range reports {
			content, err := os.ReadFile(report)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(content)) {
				said[words.FindString(line)] = true
			}
		}
		for _, word := range words.FindAllString(string(text), -1) {
			if !said[word] {
				t.Errorf("%s says %s, and no report beside it does", readme, word)
			}
		}
	}
}
