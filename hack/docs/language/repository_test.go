package main

import (
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

// Every document keeps the rules.
func TestTheDocumentsAreInPlainEnglish(t *testing.T) {
	files, err := Documents(root)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(files, "README.md") {
		t.Fatalf("README.md is not among the %d documents", len(files))
	}
	sum, err := Read(root, files)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		for _, found := range sum.Findings[f] {
			t.Errorf("%s:%d: %s", f, found.Line, found.Message)
		}
	}
	if len(sum.Prose()) == 0 {
		t.Fatal("no document has a sentence")
	}
	if m := Median(sum.Prose()); m > medianMax {
		t.Errorf("the median sentence has %d words, at most %d are wanted", m, medianMax)
	}
}

// People who doubt it read the page of statistics, so its own median sentence must be short.
func TestThePageOfStatisticsHasShortSentences(t *testing.T) {
	const page = "docs/reference/statistics.md"
	sum, err := Read(root, []string{page})
	if err != nil {
		t.Fatal(err)
	}
	prose := sum.Prose()
	if len(prose) < 100 {
		t.Fatalf("%s has %d sentences", page, len(prose))
	}
	if m := Median(prose); m > medianMax {
		t.Errorf("the median sentence of %s has %d words, at most %d are wanted", page, m, medianMax)
	}
}

func TestCommentsAreWrapped(t *testing.T) {
	found, err := readComments(root, WideComments)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := found["hack/docs/language/comments.go"]; !ok {
		t.Fatalf("comments.go is not among the %d files", len(found))
	}
	for f, findings := range found {
		for _, w := range findings {
			t.Errorf("%s:%d: %s", f, w.Line, w.Message)
		}
	}
}

// unchanged are folders whose files are the key of a cache: an edit there makes every machine build
// Kubernetes anew. Their comments change with the next version of Kubernetes.
var unchanged = []string{"hack/without-registry/node-image/", "hack/images/imagetar/"}

// Comments keep the rules of documents.
func TestCommentsAreInPlainEnglish(t *testing.T) {
	found, err := readComments(root, CommentProse)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := found["hack/docs/language/comments.go"]; !ok {
		t.Fatalf("comments.go is not among the %d files", len(found))
	}
	for f, findings := range found {
		if slices.ContainsFunc(unchanged, func(folder string) bool { return strings.HasPrefix(f, folder) }) {
			continue
		}
		for _, w := range findings {
			t.Errorf("%s:%d: %s", f, w.Line, w.Message)
		}
	}
}
