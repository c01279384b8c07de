package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page that compares figures has today's figures of the bundles, and no other picture. Renew it
// by go run ./operator/test/gallery -compared experiments docs/design/figures-compared.md
func TestFiguresComparedAreCurrent(t *testing.T) {
	const pictures = "../../../docs/pictures/compared"
	page, err := os.ReadFile("../../../docs/design/figures-compared.md")
	if err != nil {
		t.Fatal(err)
	}
	text, files, err := compared(experiments, string(page))
	if err != nil {
		t.Fatal(err)
	}
	if text != string(page) {
		t.Error("the page is not what the bundles give; see the comment of this test")
	}
	if n := strings.Count(text, "<!-- figure: "); n != 6 || len(files) != 2*n {
		t.Errorf("%d figures in %d files are compared, want 6 in 12", n, len(files))
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(pictures, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what its bundle gives (%v)", name, err)
		}
	}
	kept, err := os.ReadDir(pictures)
	if err != nil || len(kept) != len(files) {
		t.Errorf("%d pictures are kept, %d are shown (%v)", len(kept), len(files), err)
	}
}

// For a figure that a bundle lacks, the error names the figures that it has.
func TestFigureThatIsNotThere(t *testing.T) {
	_, _, err := compared(experiments, "<!-- figure: pesto/point-scan abort-rate -->\n<!-- end of figure -->\n")
	if err == nil || !strings.Contains(err.Error(), "pesto/point-scan abort-rate: the bundle has no such plot with numbers of the source, but: mean-latency") {
		t.Errorf("the error is %v", err)
	}
	if _, _, err := compared(experiments, "no figure"); err == nil {
		t.Error("a page without a figure is taken")
	}
}
