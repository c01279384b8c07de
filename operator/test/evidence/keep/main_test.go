package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The evidence of an undecided profile is kept beside that of the last version.
func TestEvidenceKeepsWhatWasUndecided(t *testing.T) {
	const folder = "../../../../experiments/"
	for name, tc := range map[string]struct {
		old, newer string
		kept       bool
	}{
		"undecided, and other claims now": {"eiger-port/evidence/eiger-port", "pesto/evidence/failure-fp", true},
		"undecided, and the same claims":  {"eiger-port/evidence/eiger-port", "eiger-port/evidence/eiger-port", false},
		"decided, and other claims now":   {"pesto/evidence/failure-fp", "eiger-port/evidence/eiger-port", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, ending := range []string{".tar.zst", ".txt"} {
				for to, from := range map[string]string{"e": tc.old, "new": tc.newer} {
					data, err := os.ReadFile(folder + from + ending)
					if err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(dir, to+ending), data, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			old := filepath.Join(dir, "e.tar.zst")
			kept, err := keep(old, filepath.Join(dir, "new.tar.zst"))
			if err != nil || (kept != "") != tc.kept {
				t.Fatalf("kept as %q (%v), want it kept: %t", kept, err, tc.kept)
			}
			if _, err := os.Stat(old); (err != nil) != tc.kept {
				t.Errorf("the old bundle: %v", err)
			}
			if !tc.kept {
				return
			}
			for _, ending := range []string{".tar.zst", ".txt", ".as-run.yaml"} {
				text, err := os.ReadFile(strings.TrimSuffix(kept, ".tar.zst") + ending)
				if err != nil || len(text) == 0 {
					t.Errorf("%s is not kept: %v", ending, err)
				}
			}
		})
	}
	if kept, err := keep(filepath.Join(t.TempDir(), "none.tar.zst"), "any"); err != nil || kept != "" {
		t.Errorf("there is no old bundle: %q, %v", kept, err)
	}
}
