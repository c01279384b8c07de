package site

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The programs that build the site are the reviewed ones: each has a pinned version and hash.
func TestProgramsOfTheSiteArePinned(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "hack", "docs", "site", "requirements.txt"))
	if err != nil {
		t.Fatal(err)
	}
	programs := 0
	for entry := range strings.SplitSeq(strings.ReplaceAll(string(text), "\\\n", " "), "\n") {
		if entry == "" || strings.HasPrefix(strings.TrimSpace(entry), "#") {
			continue
		}
		programs++
		if !strings.Contains(entry, "==") || !strings.Contains(entry, "--hash=sha256:") {
			t.Errorf("%s has no version or no hash", strings.Fields(entry)[0])
		}
		if strings.Contains(entry, "://") {
			t.Errorf("%s comes from an address", strings.Fields(entry)[0])
		}
	}
	if programs < 10 {
		t.Errorf("there are %d programs, want all that MkDocs needs", programs)
	}
}
