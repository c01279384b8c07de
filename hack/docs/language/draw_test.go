package main

import (
	"slices"
	"testing"
)

func TestWords(t *testing.T) {
	var w Words
	err := w.add("x_test.go", []byte("package x\n\n// TestIt says\n// so.\nfunc TestIt() { errors.New(\"of a test\") }\nfunc TestMain() {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	err = w.add("x.go", []byte("package x\n\nfunc f() {\n\tfmt.Errorf(\"read %s: %w\", a, b)\n\tfield.Invalid(p, v, \"must be 1\")\n\tfmt.Errorf(text)\n\tother.New(\"x\")\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"x_test.go:3: TestIt says so."}; !slices.Equal(w.Comments, want) {
		t.Errorf("comments are %q, want %q", w.Comments, want)
	}
	if want := []string{"x.go:4: read %s: %w", "x.go:5: must be 1"}; !slices.Equal(w.Errors, want) {
		t.Errorf("errors are %q, want %q", w.Errors, want)
	}
	if want := []string{"x_test.go:5: TestIt"}; !slices.Equal(w.Tests, want) {
		t.Errorf("tests are %q, want %q", w.Tests, want)
	}
}

// The texts of errors keep the rules of phrases.
func TestErrorsAreInPlainEnglish(t *testing.T) {
	w, err := ReadWords(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Errors) < 1000 {
		t.Fatalf("only %d texts of errors are found", len(w.Errors))
	}
	for _, text := range w.Errors {
		for _, b := range banned {
			if m := b.pattern.FindString(text); m != "" {
				t.Errorf("%q: write %s: %s", m, b.instead, text)
			}
		}
	}
}
