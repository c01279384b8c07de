package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis/report/archive"
)

var day = time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)

func bundle(t *testing.T, form *archive.Form, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := writer(t, &b, form)
	for _, name := range files {
		if err := w.Add(name, []byte("content of "+name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func writer(t testing.TB, to io.Writer, form *archive.Form) *archive.Writer {
	t.Helper()
	w, err := archive.NewWriter(to, form, "e", day)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

var both = map[string]*archive.Form{"gzip": archive.Gzip, "zstd": archive.Zstd}

func read(b []byte) (map[string]string, error) {
	got := map[string]string{}
	err := archive.Read(bytes.NewReader(b), func(string) bool { return true }, func(name string, data []byte) error {
		got[name] = string(data)
		return nil
	})
	return got, err
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	for name, form := range both {
		t.Run(name, func(t *testing.T) {
			b := bundle(t, form, "results.json", "trials/t-0/trial.json")
			if !archive.Is(b) || archive.Is([]byte("{}")) {
				t.Error("a bundle does not look like one, or something else does")
			}
			got, err := read(b)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"results.json": "content of results.json", "trials/t-0/trial.json": "content of trials/t-0/trial.json"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !bytes.Equal(b, bundle(t, form, "results.json", "trials/t-0/trial.json")) {
				t.Error("the same files give other bytes")
			}
			failed := errors.New("no")
			if err := archive.Read(bytes.NewReader(b), func(n string) bool { return n == "results.json" }, func(string, []byte) error { return failed }); !errors.Is(err, failed) {
				t.Errorf("the visitor's error is lost: %v", err)
			}
		})
	}
}

// Zstd finds in a trial's files what those of another trial have if these are side by side.
func TestLikeFilesStandTogether(t *testing.T) {
	var order []string
	b := bundle(t, archive.Zstd, "trials/2/trial.json", "trials/2/reports/c.json.gz", "trials/10/trial.json", "trials/10/reports/c.json.gz", "README.md")
	if err := archive.Read(bytes.NewReader(b), func(string) bool { return true }, func(name string, _ []byte) error { order = append(order, name); return nil }); err != nil {
		t.Fatal(err)
	}
	want := []string{"trials/2/trial.json", "trials/10/trial.json", "trials/2/reports/c.json.gz", "trials/10/reports/c.json.gz", "README.md"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A bundle that is longer than zstd's window is read back whole.
func TestLongBundlesAreRead(t *testing.T) {
	var b bytes.Buffer
	w := writer(t, &b, archive.Zstd)
	large := make([]byte, 33<<20)
	for _, name := range []string{"a.json", "b.csv", "c.json"} {
		if err := w.Add(name, large); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := read(b.Bytes())
	if err != nil || len(got) != 3 || len(got["c.json"]) != len(large) {
		t.Errorf("%d files are read, %v", len(got), err)
	}
}

func TestNamesSayTheForm(t *testing.T) {
	for name, want := range map[string]struct {
		stem string
		form *archive.Form
	}{
		"a/e.tar.gz": {"a/e", archive.Gzip}, "e.tgz": {"e", archive.Gzip}, "e.2026-11-23.tar.zst": {"e.2026-11-23", archive.Zstd}, "e.zip": {"e.zip", nil}, "": {"", nil},
	} {
		if stem, form := archive.Cut(name); stem != want.stem || form != want.form || archive.FormOf(name) != want.form {
			t.Errorf("%q is %q of %v", name, stem, form)
		}
	}
}

func TestRefusesNames(t *testing.T) {
	w := writer(t, io.Discard, archive.Gzip)
	for _, name := range []string{"", "/etc/passwd", "../x", "..", "a/../b", "a\nb", "SHA256SUMS"} {
		if w.Add(name, nil) == nil {
			t.Errorf("%q is a file's name", name)
		}
	}
	if w.Add("a", nil) != nil || w.Add("a", nil) == nil {
		t.Error("a name is refused once, or allowed twice")
	}
}

// packed is a tar file by another program.
func packed(t *testing.T, entries ...[2]string) []byte {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	w := tar.NewWriter(gz)
	for _, e := range entries {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: e[0], Size: int64(len(e[1])), Mode: 0o644}
		if e[1] == "link" {
			header.Typeflag, header.Linkname, header.Size = tar.TypeSymlink, "/etc/passwd", 0
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if header.Size > 0 {
			if _, err := w.Write([]byte(e[1])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), gz.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRefusesDamage(t *testing.T) {
	whole, small := bundle(t, archive.Gzip, "a", "b"), bundle(t, archive.Zstd, "a", "b")
	sumOfX := strings.Repeat("0", 64) + "  x\n"
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"empty":               {nil, "not a bundle"},
		"something else":      {[]byte("{}"), "not a bundle"},
		"cut off":             {whole[:len(whole)-30], "bundle: damaged"},
		"cut off, of zstd":    {small[:len(small)-30], "bundle: damaged"},
		"no sums":             {packed(t, [2]string{"e/a", "1"}), "it has no SHA256SUMS"},
		"changed":             {packed(t, [2]string{"e/x", "1"}, [2]string{"e/SHA256SUMS", sumOfX}), "x was changed"},
		"a file is missing":   {packed(t, [2]string{"e/SHA256SUMS", sumOfX}), "x is in SHA256SUMS and not in the bundle"},
		"a file is not in it": {packed(t, [2]string{"e/x", "1"}, [2]string{"e/SHA256SUMS", "\n"}), "which is not a checksum"},
		"no folder":           {packed(t, [2]string{"x", "1"}), "is not a file in the bundle's folder"},
		"out of its folder":   {packed(t, [2]string{"e/../../x", "1"}), "is not a file in the bundle's folder"},
		"a link":              {packed(t, [2]string{"e/x", "link"}), "is not a file in the bundle's folder"},
		"twice":               {packed(t, [2]string{"e/x", "1"}, [2]string{"e/x", "2"}), "x is in it twice"},
	} {
		if _, err := read(tc.data); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want: %s", name, err, tc.want)
		}
	}
}

// A file of zeros took none of the bytes that a bundle may have, and all of its own size in memory.
func TestRefusesSparseFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "e"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int64{"e/x": 1 << 20, "e/SHA256SUMS": 1} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for _, format := range []string{"posix", "gnu"} {
		out, err := exec.Command("tar", "--create", "--sparse", "--format="+format, "--directory="+dir, "e").Output()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		gz := gzip.NewWriter(&b)
		if _, err := gz.Write(out); err != nil {
			t.Fatal(err)
		}
		if err := gz.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := read(b.Bytes()); err == nil || !strings.Contains(err.Error(), "sparse") {
			t.Errorf("format %s: got %v, want a word about sparse files", format, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, form := range both {
		var b bytes.Buffer
		w := writer(f, &b, form)
		if err := errors.Join(w.Add("results.json", []byte("{}")), w.Close()); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = read(data) })
}
