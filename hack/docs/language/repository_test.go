package main

import (
	"slices"
	"testing"
)

const root = "../../.."

// Every document that pending.txt does not list keeps the rules.
func TestTheDocumentsAreInPlainEnglish(t *testing.T) {
	files, err := Documents(root)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(files, "README.md") {
		t.Fatalf("README.md is not among the %d documents", len(files))
	}
	files = slices.DeleteFunc(files, func(f string) bool { return slices.Contains(Pending(), f) })
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
		t.Fatal("every document is pending")
	}
	if m := Median(sum.Prose()); m > medianMax {
		t.Errorf("the median sentence has %d words, at most %d are wanted", m, medianMax)
	}
}

// The list of documents to rewrite shrinks: a document that keeps the rules leaves it.
func TestPendingDocumentsNeedWork(t *testing.T) {
	sum, err := Read(root, Pending())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Pending() {
		if len(sum.Findings[f]) == 0 {
			t.Errorf("%s keeps the rules: take it out of hack/docs/language/pending.txt", f)
		}
	}
}
