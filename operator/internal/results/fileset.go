package results

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Keys of a trial's results ConfigMap, for files that PackFiles packed: those that the pods were
// given with their commands, and the clients' reports as they were sent.
const (
	RenderedPack = "rendered.tar.gz"
	ReportsPack  = "reports.tar.gz"
)

// FileSet describes files that are kept beside results.
type FileSet struct {
	Files int `json:"files"`
	// SHA256 of the lines that sha256sum prints of the files, in the order of their names' bytes:
	// LC_ALL=C; sha256sum * | sha256sum.
	SHA256 string `json:"sha256"`
}

// DescribeFiles describes files by their names. It is nil for no files.
func DescribeFiles(files map[string][]byte) *FileSet {
	sums := map[string]string{}
	for name, data := range files {
		sum := sha256.Sum256(data)
		sums[name] = hex.EncodeToString(sum[:])
	}
	return DescribeSums(sums)
}

// DescribeSums describes files whose checksums, SHA-256 in hexadecimal, are given by their names.
func DescribeSums(sums map[string]string) *FileSet {
	if len(sums) == 0 {
		return nil
	}
	all := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(all, "%s  %s\n", sums[name], name)
	}
	return &FileSet{Files: len(sums), SHA256: hex.EncodeToString(all.Sum(nil))}
}

// PackFiles puts files into a gzipped tar. The same files give the same bytes.
func PackFiles(files map[string][]byte) ([]byte, error) {
	var b bytes.Buffer
	gz, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // fails only for other levels
	w := tar.NewWriter(gz)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
	}
	if err := errors.Join(w.Close(), gz.Close()); err != nil {
		return nil, fmt.Errorf("pack files: %w", err)
	}
	return b.Bytes(), nil
}

// Sizes of files, by their names.
func Sizes(files map[string][]byte) map[string]int64 {
	sizes := map[string]int64{}
	for name, data := range files {
		sizes[name] = int64(len(data))
	}
	return sizes
}

// UnpackFiles reads what PackFiles wrote. It refuses more than limit bytes of content, and names
// with folders in them.
func UnpackFiles(packed []byte, limit int64) (map[string][]byte, error) {
	return unpackTar(packed, limit, func(name string) bool {
		return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\\\n")
	})
}

// UnpackTree reads a gzipped tar of files in folders, as agents send it. It refuses more than limit
// bytes of content, and paths that lead elsewhere.
func UnpackTree(packed []byte, limit int64) (map[string][]byte, error) {
	return unpackTar(packed, limit, func(name string) bool { return fs.ValidPath(name) && name != "." && !strings.ContainsAny(name, "\\\n") })
}

func unpackTar(packed []byte, limit int64, allowed func(name string) bool) (map[string][]byte, error) {
	gz, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack files: %w", err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(gz); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("unpack files: %w", err)
		}
		if header.Typeflag != tar.TypeReg || !allowed(header.Name) {
			return nil, fmt.Errorf("unpack files: %q is not a file's name", header.Name)
		}
		if limit -= header.Size; limit < 0 {
			return nil, errors.New("unpack files: they are larger than they may be")
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("unpack %s: %w", header.Name, err)
		}
		files[header.Name] = data
	}
}
