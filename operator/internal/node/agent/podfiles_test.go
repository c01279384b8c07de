package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
)

// A system linked its progress file to /dev/zero, or wrote an endless file. The agent has no limit
// of memory, and read it until no memory was left.
func TestTheRunDirectoryIsReadWithBounds(t *testing.T) {
	dir := t.TempDir()
	files := &podFiles{config: Config{RunDir: dir}}
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
		content, err := files.readRun(name, 100)
		if (err == nil) != (want >= 0) || err == nil && len(content) != want {
			t.Errorf("%s: %d bytes, %v", name, len(content), err)
		}
	}
}

// A system could put a link, a pipe or an endless file in the journal's place. A restarted agent
// then read a file of its own container, waited for ever, or took all memory.
func TestTheJournalIsReadWithBounds(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte(`{"over":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func(path string) error{
		"a link out of the volume": func(path string) error { return os.Symlink(outside, path) },
		"a pipe":                   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a file without an end":    func(path string) error { return os.Symlink("/dev/zero", path) },
		"a file that is too long": func(path string) error {
			if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
				return err
			}
			return os.Truncate(path, journalLimit+1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := put(filepath.Join(dir, journalFile)); err != nil {
				t.Fatal(err)
			}
			if j, err := loadJournal(dir); err == nil || j.Over {
				t.Errorf("the journal is %+v, %v; want an error", j, err)
			}
		})
	}
}

// The agent does not write through a link in the place of the new journal or of the start signal.
func TestNoLinkIsWrittenThrough(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(dir string) error{
		"start signal":    func(dir string) error { return writeAtomically(filepath.Join(dir, "start"), []byte("{}"), 0o644) },
		"journal":         func(dir string) error { return (&journal{}).save(dir, false) },
		"durable journal": func(dir string) error { return (&journal{}).save(dir, true) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, file := range []string{"start", journalFile} {
				_ = os.Remove(filepath.Join(dir, file+".new")) // of the last case
				if err := os.Symlink(other, filepath.Join(dir, file+".new")); err != nil {
					t.Fatal(err)
				}
			}
			if err := write(dir); err != nil {
				t.Fatal(err)
			}
			if content, err := os.ReadFile(other); err != nil || string(content) != "theirs" {
				t.Errorf("the file of others has %q, %v", content, err)
			}
		})
	}
}

// A client's report, and the output of a prepare step, are files of the pod's shared volumes.
func TestReportsAreFilesOfSharedVolumes(t *testing.T) {
	dir := t.TempDir()
	files := &podFiles{config: Config{OutDir: dir}}
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "report"), bytes.Repeat([]byte("x"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, readable := range map[string]bool{filepath.Join(dir, "report"): true, filepath.Join(dir, "link"): false, filepath.Join(dir, "pipe"): false, secret: false, "report": false} {
		if content, err := files.readShared(path, 100); (err == nil) != readable {
			t.Errorf("%s: %q, %v", path, content, err)
		}
	}
	if _, err := files.readShared(filepath.Join(dir, "report"), 99); err == nil {
		t.Error("a file above the limit was read")
	}
	f := logTailer{path: filepath.Join(dir, "pipe")}
	if found, err := f.find(regexp.MustCompile("x"), 1); found != 0 {
		t.Errorf("a pipe in place of a log: %d lines, %v", found, err)
	}
}
