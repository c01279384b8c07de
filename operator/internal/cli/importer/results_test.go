package importer

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/session"
)

// Imported results can be reported: both verbs together.
func TestImportedResultsAreReported(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"lat-tput.csv": "1310.5,11.7\r\n1605.4,12.8\r\n", "tput-clients.csv": "15,1310.5\r\n20,1605.4\r\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	s := &session.Session{Out: &out, Err: &errs, Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }}
	file := filepath.Join(folder, "old.json")
	if err := Results(t.Context(), s, ResultsOptions{Folders: []string{folder}, Name: "old", Output: file}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(errs.String(), "Results old: 2 points, 2 trials.") {
		t.Errorf("said:\n%s", &errs)
	}
	for _, form := range []string{"text", "markdown", "html", "csv"} {
		out.Reset()
		if err := report.Run(t.Context(), s, report.Options{File: file, Output: form}); err != nil {
			t.Errorf("report as %s: %v", form, err)
		}
		if !strings.Contains(out.String(), "1310") && !strings.Contains(out.String(), "1,310") && !strings.Contains(out.String(), "1 310") {
			t.Errorf("the report as %s lacks the throughput:\n%s", form, out.String()[:min(out.Len(), 800)])
		}
	}
	if err := Results(t.Context(), s, ResultsOptions{Folders: []string{t.TempDir()}}); err == nil || !strings.Contains(err.Error(), "no file's name tells the format") {
		t.Errorf("error = %v, want that an empty folder is none", err)
	}
}
