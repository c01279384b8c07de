package main

import (
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/results"
)

func TestReasons(t *testing.T) {
	claim := func(verdict, expr string) results.ClaimResult {
		return results.ClaimResult{Name: "fast", Verdict: verdict, Expr: expr, Message: "1 [0, 2] > 1 cannot be told apart"}
	}
	with := func(c results.ClaimResult, change func(*results.ClaimResult)) results.ClaimResult {
		change(&c)
		return c
	}
	for name, tc := range map[string]struct {
		then, now results.ClaimResult
		again     bool
		want      string
	}{
		"another word": {
			claim("Reproduced", "a > 1"), with(claim("Consistent", "a > 1"), func(c *results.ClaimResult) { c.Distance = "Beta in place of Alpha" }), false,
			"the word only: Beta in place of Alpha",
		},
		"another word for what is refuted": {
			claim("NotReproduced", "a > 1"), claim("Fails", "a > 1"), true,
			"the word only: the statement is the experiment's own",
		},
		"skipped": {
			claim("Reproduced", "a > 1"), with(claim("NotEvaluated", "a > 1"), func(c *results.ClaimResult) { c.Skipped = "It needs two clients." }), false,
			"the profile no longer judges it: It needs two clients.",
		},
		"another expression, however the trials": {
			claim("Reproduced", "a"), claim("Fails", "a > 1"), true,
			"the expression was `a`, and is `a > 1`",
		},
		"another bound": {
			with(claim("Reproduced", "a"), func(c *results.ClaimResult) { c.Reported, c.Within = "2", "50%" }),
			with(claim("Contradicted", "a"), func(c *results.ClaimResult) { c.Reported, c.Within = "2", "10%" }), true,
			"the bound was 2 within 50%, and is 2 within 10%",
		},
		"other trials": {claim("Reproduced", "a > 1"), claim("Inconclusive", "a > 1"), true, "other trials: the experiment ran again"},
		"the method":   {claim("Reproduced", "a > 1"), claim("Inconclusive", "a > 1"), false, "the method: 1 [0, 2] > 1 cannot be told apart"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := why(tc.then, tc.now, tc.again); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// Every claim of either version is counted once, in one of the classes.
func TestTallyCountsEachClaim(t *testing.T) {
	began := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	then := results.Experiment{Started: began, Claims: []results.ClaimResult{
		{Name: "kept", Verdict: "Holds"}, {Name: "renamed word", Verdict: "Reproduced"}, {Name: "gone", Verdict: "Holds"},
	}}
	now := results.Experiment{Started: began.Add(time.Hour), Claims: []results.ClaimResult{
		{Name: "kept", Verdict: "Holds"}, {Name: "renamed word", Verdict: "Consistent", Distance: "reduced size"}, {Name: "added", Verdict: "Fails"},
	}}
	var all tally
	all.add("alpha/beta", then, now)
	text := all.markdown("abc")
	for _, want := range []string{
		"3 verdicts in bundles that were there at abc: 1 have the same word, 1 the same outcome in another word, 2 another outcome. 0 bundles are new.",
		"| alpha/beta | renamed word | Reproduced | Consistent | the word only: reduced size |",
		"| alpha/beta | added | none | Fails | the claim is new |",
		"| alpha/beta | gone | Holds | none | the claim is gone |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table does not say %q:\n%s", want, text)
		}
	}
}

// The error for a commit that the clone does not have names the commit and the next step.
func TestUnknownCommit(t *testing.T) {
	_, _, err := earlier("0000000000000000000000000000000000000001", "a.tar.zst")
	if err == nil || !strings.Contains(err.Error(), "no commit 0000000000000000000000000000000000000001") {
		t.Errorf("err = %v", err)
	}
}
