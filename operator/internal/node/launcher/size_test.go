package launcher

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The size of a directory equals that of du. The directory has folders, a file with two names, one
// with a hole, and a link to another place.
func TestSizeEqualsDu(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, n int) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.Repeat([]byte("x"), n), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first := file("log/1", 100_000)
	file("log/deep/2", 5000)
	if err := os.Link(first, filepath.Join(dir, "another-name")); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file("hole", 0), 10<<20); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr", filepath.Join(dir, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("du", "-sx", "--block-size=1", dir).Output()
	if err != nil {
		t.Skipf("du: %v", err)
	}
	want, err := strconv.ParseInt(strings.Fields(string(out))[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	got := sizes(Size{Paths: []string{dir, filepath.Join(dir, "nothing")}})
	if got[0] != (Sized{Bytes: want, ContentBytes: 105_000 + 10<<20, Files: 3}) {
		t.Errorf("%+v; du says %d", got[0], want)
	}
	if !strings.Contains(got[1].Error, "no such file") {
		t.Errorf("a directory that is not there: %+v", got[1])
	}
}

func TestSizeOfMoreFilesThanItMayLookAt(t *testing.T) {
	dir := t.TempDir()
	for i := range 1001 {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := size(dir, time.Now()); err == nil || !strings.Contains(err.Error(), "too many files") {
		t.Errorf("after the time was over: %v", err)
	}
}
