package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeysFitTogether(t *testing.T) {
	dir := t.TempDir()
	if err := Generate(dir, 3, rand.Reader); err != nil {
		t.Fatal(err)
	}
	publics, err := Publics(dir, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		private, err := Private(dir, i)
		if err != nil {
			t.Fatal(err)
		}
		signature := ed25519.Sign(private, []byte("m"))
		for j := range 3 {
			if got := ed25519.Verify(publics[j], []byte("m"), signature); got != (i == j) {
				t.Errorf("signature of %d verifies with key of %d: %v", i, j, got)
			}
		}
	}
}

func TestMissingOrBrokenKeysAreRefused(t *testing.T) {
	for name, breakIt := range map[string]func(file string) error{
		"missing":   os.Remove,
		"truncated": func(file string) error { return os.Truncate(file, 10) },
		"too long":  func(file string) error { return os.WriteFile(file, []byte(strings.Repeat("0", 500)), 0o600) },
		"not hex":   func(file string) error { return os.WriteFile(file, []byte(strings.Repeat("x", 64)+"\n"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := Generate(dir, 2, rand.Reader); err != nil {
				t.Fatal(err)
			}
			if err := breakIt(filepath.Join(dir, "1.pub")); err != nil {
				t.Fatal(err)
			}
			if _, err := Publics(dir, 2); err == nil || !strings.Contains(err.Error(), "1.pub") {
				t.Errorf("error = %v, want one that names 1.pub", err)
			}
		})
	}
}
