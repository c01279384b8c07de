package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// After a change of the code that a mutant breaks, the mutant must change, too.
func TestMutantsApply(t *testing.T) {
	const root = "../.."
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			tree := t.TempDir()
			text, err := os.ReadFile(filepath.Join(root, m.file))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(tree, filepath.Dir(m.file)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(tree, m.file), text, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := m.apply(tree); err != nil {
				t.Error(err)
			}
			if !declared(t, filepath.Join(root, m.pkg), m.run) {
				t.Errorf("%s has no %s", m.pkg, m.run)
			}
		})
	}
	if len(chosen) < 12 || len(reviewed) != 22 {
		t.Errorf("%d chosen mutants and %d reviewed ones, want at least 12 and 22", len(chosen), len(reviewed))
	}
}

func declared(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(name) + `\(`).Match(text) {
			return true
		}
	}
	return false
}
