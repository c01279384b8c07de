package judge_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/cli/judge"
	"assay.dev/assay/operator/internal/cli/session"
)

// The README begins with a command. As printed there, it gives verdicts and a page within ten
// seconds, without a cluster.
func TestQuickLookOfTheReadme(t *testing.T) {
	const root = "../../../../"
	readme, err := os.ReadFile(root + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^    bin/kubectl-assay judge -f (\S+) --results (\S+) -o (\S+)$`).FindStringSubmatch(string(readme))
	if found == nil {
		t.Fatal("README.md has no line with kubectl-assay judge --results")
	}
	page := filepath.Join(t.TempDir(), found[3])
	began := time.Now()
	_, stderr, err := run(t, judge.Options{Files: []string{root + found[1]}, Results: []string{root + found[2]}, Output: page}, 2)
	var verdict *session.Verdict
	if !errors.As(err, &verdict) || verdict.Code != session.ExitRefuted {
		t.Fatalf("got %v, want verdicts of which one refutes its claim\n%s", err, stderr)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"15 imported trials over 3 points", "whether they are valid was not judged", "half-the-throughput", "fast-path.csv"} {
		if !strings.Contains(string(html), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// A bundle can keep verdicts on results that were measured without Assay, and such a bundle passes
// verify.
func TestResultsOfElsewhereInABundle(t *testing.T) {
	bundle := filepath.Join(t.TempDir(), "fast-path.tar.gz")
	const examples = "../../../../docs/examples/"
	_, stderr, err := run(t, judge.Options{Files: []string{examples + "fast-path.yaml"}, Results: []string{examples + "fast-path.csv"}, Output: bundle}, 2)
	var verdict *session.Verdict
	if !errors.As(err, &verdict) {
		t.Fatalf("%v\n%s", err, stderr)
	}
	verified(t, bundle)
	e := decode(t, files(t, bundle)["results.json"])
	for _, l := range e.Trials {
		if l.Imported == nil {
			t.Errorf("trial %s is not marked as imported", l.Name)
		}
	}
	for _, c := range e.Claims {
		if len(c.Caveats) == 0 || c.Caveats[len(c.Caveats)-1].Kind != "Imported" {
			t.Errorf("claim %s has no caveat: %+v", c.Name, c.Caveats)
		}
	}
}
