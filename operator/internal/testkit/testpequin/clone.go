package testpequin

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Clone unpacks directories of the last commit of the clone in ASSAY_ARTIFACT, bare or not, and
// returns where they are. It changes nothing in the clone.
func Clone(t *testing.T, directories ...string) string {
	t.Helper()
	source := os.Getenv("ASSAY_ARTIFACT")
	if source == "" {
		t.Fatal("ASSAY_ARTIFACT names no clone of the Pequin artifact: make artifact SOURCE=CLONE sets it")
	}
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", source, "archive", "--format=tar", "HEAD"}, directories...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	if err := unpackTo(to, out); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("git archive in %s: %v", source, err)
	}
	return to
}

func unpackTo(to string, r io.Reader) error {
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg || !filepath.IsLocal(header.Name) {
			continue
		}
		path := filepath.Join(to, header.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if _, err := io.Copy(file, archive); err != nil {
			return errors.Join(err, file.Close())
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
}
