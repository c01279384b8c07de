package evidence

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/plot"
	shown "assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/session"
)

var update = flag.Bool("update", false, "write the reports and pictures that documents show")

// The reports and pictures in documents are those of committed bundles. Renew them by
//
//	go test ./operator/test/evidence -run TestDocumentsShowEvidence -update
func TestDocumentsShowEvidence(t *testing.T) {
	const experiments, pictures = "../../../experiments/", "../../../docs/pictures/"
	for file, tc := range map[string]struct {
		bundle string
		make   func(t *testing.T, bundle string) []byte
	}{
		"../../../README.md":             {"pesto/evidence/failure-fp.tar.zst", readmeOf},
		pictures + "verdicts.svg":        {"pesto/evidence/failure-fp.tar.zst", stripOf},
		pictures + "fault-over-time.svg": {"postgres/evidence/tpcc-crash.tar.zst", plotOf("time-01-variant-primary-killed")},
	} {
		t.Run(filepath.Base(file), func(t *testing.T) { compare(t, file, experiments+tc.bundle, tc.make) })
	}
}

// The report beside each bundle equals the report that today's code makes from it. Renew all of
// them by
//
//	go test ./operator/test/evidence -run TestReportsBesideBundles -update
func TestReportsBesideBundles(t *testing.T) {
	for _, bundle := range bundles(t) {
		t.Run(filepath.Base(bundle), func(t *testing.T) { compare(t, stemOf(bundle)+".txt", bundle, reportOf) })
	}
}

// compare compares a file with the output made from a bundle, or writes it.
func compare(t *testing.T, file, bundle string, made func(t *testing.T, bundle string) []byte) {
	t.Helper()
	got := made(t, bundle)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil { // #nosec G306 -- a document
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run the test with -update", err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s is not what %s shows; run the test with -update", file, bundle)
	}
}

func reportOf(t *testing.T, bundle string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := shown.Run(t.Context(), &session.Session{Out: &out, Err: &out}, shown.Options{File: bundle, Output: "text"}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var excerpt = regexp.MustCompile("(?s)(\n<!-- excerpt: experiments/pesto/evidence/failure-fp.txt -->\n```\n)(.*?)(```\n)")

// readmeOf is the README with an excerpt of the report: what ran, and the claims that were judged,
// without their expressions and caveats. The heading says how many were not judged.
func readmeOf(t *testing.T, bundle string) []byte {
	t.Helper()
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !excerpt.Match(readme) {
		t.Fatal("README.md has no excerpt of the report")
	}
	head, rest, found := strings.Cut(string(reportOf(t, bundle)), "\nVerdicts\n\n")
	verdicts, _, closed := strings.Cut(rest, "\n\n")
	if !found || !closed {
		t.Fatal("the report has no verdicts")
	}
	kept, judged := head+"\n", false
	for line := range strings.Lines(verdicts + "\n") {
		switch {
		case !strings.HasPrefix(line, " "):
			judged = !strings.HasPrefix(line, string(v1alpha1.VerdictNotEvaluated))
		case strings.HasPrefix(line, strings.Repeat(" ", 15)+"judged: "):
			judged = false
		}
		if judged {
			kept += line
		}
	}
	return excerpt.ReplaceAll(readme, []byte("${1}"+strings.ReplaceAll(kept, "$", "$$")+"${3}"))
}

func stripOf(t *testing.T, bundle string) []byte {
	t.Helper()
	e, err := shown.Load(t.Context(), &session.Session{}, bundle)
	if err != nil {
		t.Fatal(err)
	}
	picture, drawn, err := plot.VerdictPicture(e)
	if err != nil || !drawn {
		t.Fatalf("%s has no verdicts to draw (%v)", bundle, err)
	}
	return picture.SVG
}

func plotOf(name string) func(t *testing.T, bundle string) []byte {
	return func(t *testing.T, bundle string) []byte {
		t.Helper()
		e, err := shown.Load(t.Context(), &session.Session{}, bundle)
		if err != nil {
			t.Fatal(err)
		}
		all, err := plot.Pictures(e)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range all {
			if p.Name == name {
				return p.SVG
			}
			names = append(names, p.Name)
		}
		t.Fatalf("%s has no plot %s, but %s", bundle, name, strings.Join(names, ", "))
		return nil
	}
}
