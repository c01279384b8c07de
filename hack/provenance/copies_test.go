package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// repository makes a repository. Its history has a file that its last commit lacks.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	run := func(arguments ...string) {
		t.Helper()
		if out, err := git(dir, append([]string{"-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"}, arguments...)...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	run("init", "-q", ".")
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run("add", "-A")
	run("commit", "-q", "-m", "all", "--allow-empty")
	return dir
}

func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func tarOf(t *testing.T, name, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func packedByZstd(t *testing.T, text string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(w.EncodeAll([]byte(text), nil))
}

func TestCopiesAreFound(t *testing.T) {
	long := func(word string) string { return strings.Repeat(word+"\n", 40) }
	theirs := repository(t, map[string]string{"src/now.c": long("now"), "src/before.c": long("before"), "small": "ok\n", "empty": ""})
	if err := os.Remove(filepath.Join(theirs, "src/before.c")); err != nil {
		t.Fatal(err)
	}
	if _, err := git(theirs, "-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false", "commit", "-q", "-a", "-m", "less"); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		ours map[string]string
		want []string // names that are reported
	}{
		"nothing in common":     {map[string]string{"mine.go": long("mine")}, nil},
		"small files":           {map[string]string{"yes": "ok\n", "none": ""}, nil},
		"one byte more":         {map[string]string{"mine.c": long("now") + "\n"}, nil},
		"a file":                {map[string]string{"a/other name.txt": long("now"), "mine.go": long("mine")}, []string{"a/other name.txt"}},
		"of the past":           {map[string]string{"old.c": long("before")}, []string{"old.c"}},
		"in a gzip file":        {map[string]string{"stats.json.gz": packed(t, long("now"))}, []string{"stats.json.gz (unpacked)"}},
		"a member of a bundle":  {map[string]string{"bundle.tar.zst": packedByZstd(t, tarOf(t, "in/now.c", long("now")))}, []string{"bundle.tar.zst: in/now.c"}},
		"a member of a tarball": {map[string]string{"bundle.tar.gz": packed(t, tarOf(t, "in/now.c", long("now")))}, []string{"bundle.tar.gz: in/now.c"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			n, err := report(&out, repository(t, tc.ours), theirs)
			if err != nil || n != len(tc.want) {
				t.Fatalf("%d copies, error %v; want %d:\n%s", n, err, len(tc.want), &out)
			}
			for _, name := range tc.want {
				if !strings.Contains(out.String(), name+" is blob ") {
					t.Errorf("nothing says that %s is a copy:\n%s", name, &out)
				}
			}
		})
	}
}

// A file that is not added to git yet is checked, too.
func TestNewFilesAreLookedAt(t *testing.T) {
	text := strings.Repeat("copied\n", 40)
	theirs, ours := repository(t, map[string]string{"theirs": text}), repository(t, map[string]string{"mine": "x"})
	if err := os.WriteFile(filepath.Join(ours, "new"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if n, err := report(&out, ours, theirs); n != 1 || err != nil {
		t.Errorf("%d copies, error %v:\n%s", n, err, &out)
	}
}

func TestAMissingCloneIsReported(t *testing.T) {
	empty := t.TempDir()
	if _, err := report(&bytes.Buffer{}, ".", filepath.Join(empty, "none")); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("error = %v, want one that names the directory", err)
	}
	if _, err := git(empty, "init", "-q", "."); err != nil {
		t.Fatal(err)
	}
	if _, err := report(&bytes.Buffer{}, ".", empty); err == nil || !strings.Contains(err.Error(), "has no blob") {
		t.Errorf("error = %v, want that there is no blob", err)
	}
}
