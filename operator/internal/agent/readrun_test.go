package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A system that linked its progress to /dev/zero, or wrote a file without an end, took all of the
// agent's memory, which has no limit.
func TestTheRunDirectoryIsReadWithBounds(t *testing.T) {
	dir := t.TempDir()
	a := &Agent{config: Config{RunDir: dir}}
	write := func(name string, size int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), bytes.Repeat([]byte("x"), size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("small", 100)
	write("large", 101)
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"small": 100, "large": -1, "link": -1, "pipe": -1, "none": -1} {
		content, err := a.readRun(name, 100)
		if (err == nil) != (want >= 0) || err == nil && len(content) != want {
			t.Errorf("%s: %d bytes, %v", name, len(content), err)
		}
	}
}
