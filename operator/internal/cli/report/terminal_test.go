package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report/strip"
	"assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/session"
)

// On a terminal that can draw, the command draws each claim as a line. A pipe and a file get no
// drawing.
func TestTerminalDrawsClaims(t *testing.T) {
	const bundle = "../verify/testdata/whole.tar.gz"
	drawn := func(text string) bool {
		legend, _, _ := strings.Cut(strip.LineLegend, ":")
		return strings.Contains(text, legend) && strings.Contains(text, "░")
	}
	for name, pictures := range map[string]bool{"terminal": true, "pipe": false} {
		var out bytes.Buffer
		s := &session.Session{Out: &out, Err: &bytes.Buffer{}, Width: 100, Pictures: pictures}
		if err := report.Run(t.Context(), s, report.Options{File: bundle}); err != nil {
			t.Fatal(err)
		}
		if drawn(out.String()) != pictures {
			t.Errorf("%s: drawn is %v in\n%s", name, !pictures, out.String())
		}
	}
	file := filepath.Join(t.TempDir(), "report.txt")
	s := &session.Session{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Width: 100, Pictures: true}
	if err := report.Run(t.Context(), s, report.Options{File: bundle, Output: file}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || drawn(string(text)) {
		t.Errorf("a file has the drawing, or is not there: %v\n%s", err, text)
	}
}
