package render

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/node/protocol"
)

// packed returns a gzipped tar of a sparse file of that size.
func packed(t *testing.T, size int64) []byte {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	tar := exec.Command("tar", "--create", "--sparse", "--format=posix", "--directory="+dir, "sparse")
	out, err := tar.Output()
	if err != nil {
		t.Fatalf("tar: %v", err)
	}
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	if _, err := gz.Write(out); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A sparse file of 269 bytes once took a gigabyte of the manager's memory.
func TestASparseOutputIsRejected(t *testing.T) {
	if files, err := UnpackOutput("/keys", packed(t, 1<<20)); err != nil || len(files) != 1 || len(files[0].Content) != 1<<20 {
		t.Fatalf("a sparse file of 1 MiB: %d files, %v", len(files), err)
	}
	if files, err := UnpackOutput("/keys", packed(t, 16<<20)); err != nil || len(files) != 1 {
		t.Errorf("a sparse file of 16 MiB, which is just allowed: %d files, %v", len(files), err)
	}
	_, err := UnpackOutput("/keys", packed(t, 1<<30))
	if want := "its files take more than 16 MiB"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a sparse file of 1 GiB: %v, want %q", err, want)
	}
}

// An agent fetches files whose digest is another one: without that, a pod would lack its keys.
func TestPreparedFilesAreInTheDigest(t *testing.T) {
	own, made := protocol.File{Path: "/config/peers", Content: []byte("peers")}, protocol.File{Path: "/keys/0", Content: []byte("key")}
	p := &Pod{Files: []protocol.File{own}}
	p.WithPrepared([]protocol.File{made})
	if want := protocol.FilesDigest([]protocol.File{own, made}); p.Directive.FilesDigest != want || len(p.Files) != 2 {
		t.Errorf("%d files of digest %q, want both, %q", len(p.Files), p.Directive.FilesDigest, want)
	}
}
