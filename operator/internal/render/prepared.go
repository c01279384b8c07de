package render

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"path"

	"assay.dev/assay/operator/internal/protocol"
)

// unpackLimit bounds what a packed output may hold.
const unpackLimit = 16 << 20

// UnpackOutput reads the files of a prepare step's output, a gzipped tar, which lie in a directory
// of the pods.
func UnpackOutput(dir string, packed []byte) ([]protocol.File, error) {
	gz, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	tr := tar.NewReader(io.LimitReader(gz, unpackLimit))
	files := []protocol.File{}
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			return nil, err
		}
		// Clean with a leading slash cannot leave the directory.
		files = append(files, protocol.File{Path: path.Join(dir, path.Clean("/"+h.Name)), Mode: uint32(h.Mode & 0o777), Content: content})
	}
}
