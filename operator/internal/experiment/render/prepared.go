package render

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"assay.dev/assay/operator/internal/node/protocol"
)

// unpackLimit is the most bytes in a packed output: in its files, and in the archive itself.
const unpackLimit = 16 << 20

// UnpackOutput reads the files of a prepare step's output, which is a gzipped tar. dir is their
// directory in the pods. It rejects an output whose files have more than 16 MiB.
func UnpackOutput(dir string, packed []byte) ([]protocol.File, error) {
	gz, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	tr := tar.NewReader(io.LimitReader(gz, unpackLimit))
	files, left := []protocol.File{}, int64(unpackLimit)
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
		// A sparse file has few bytes in the archive, but takes its whole size in memory.
		if left -= h.Size; left < 0 {
			return nil, fmt.Errorf("its files take more than %d MiB", unpackLimit>>20)
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			return nil, err
		}
		// A path that is cleaned with a leading slash cannot leave the directory.
		files = append(files, protocol.File{Path: path.Join(dir, path.Clean("/"+h.Name)), Mode: uint32(h.Mode & 0o777), Content: content})
	}
}

// SharedPrepared names the Secret that hands the output of a prepare step on to later trials of its
// experiment. There is one for each snapshot of a System.
func SharedPrepared(revision string) string { return revision + "-prepared" }

// PrepareDigest is equal for equal prepare steps: of one System, with one image, command and
// environment. It ignores the variables that name the trial and its pod.
func (t *Trial) PrepareDigest() (string, error) {
	p, err := t.Prepare()
	if err != nil {
		return "", err
	}
	image, err := t.ctx.text("spec.prepare.container.image", t.system.Prepare.Container.Image)
	if err != nil {
		return "", err
	}
	containers := slices.Clone(p.Directive.Containers)
	for i := range containers {
		containers[i].Env = containers[i].Env[ownVariables:]
	}
	content, err := json.Marshal(struct {
		Revision, Image, Output string
		Containers              []protocol.Container
	}{t.spec.System.Revision, image, p.Directive.Prepare.OutputPath, containers})
	if err != nil {
		return "", fmt.Errorf("describe the prepare step: %w", err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8]), nil
}
