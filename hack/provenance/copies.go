package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha1" //nolint:gosec // G505: Git names contents by it
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Bounds of the comparison.
const (
	leastBytes = 100     // smaller files may be equal by chance
	mostBytes  = 1 << 30 // how many bytes of an unpacked archive are compared
)

// report writes the common files of the repository and the clone, and returns their number.
func report(w io.Writer, repository, clone string) (int, error) {
	theirs, newHash, err := blobs(clone)
	if err != nil {
		return 0, err
	}
	ours, err := contents(repository, newHash)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, c := range ours {
		if theirs[c.id] {
			n++
			fmt.Fprintf(w, "%s is blob %s of %s\n", c.name, c.id, clone)
		}
	}
	fmt.Fprintf(w, "%d contents of this repository, %d blobs in the history of %s, %d in both\n", len(ours), len(theirs), clone, n)
	return n, nil
}

// git runs it in a directory, and returns its output.
func git(directory string, arguments ...string) ([]byte, error) {
	cmd := exec.Command("git", append([]string{"-C", directory}, arguments...)...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("git %s in %s: %s", strings.Join(arguments, " "), directory, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return nil, fmt.Errorf("git %s in %s: %w", strings.Join(arguments, " "), directory, err)
	}
	return out, nil
}

// blobs are the names of all contents of a clone: of its whole history, and of objects without a
// branch. It includes the names of contents that a partial clone lacks.
func blobs(clone string) (map[string]bool, func() hash.Hash, error) {
	format, err := git(clone, "rev-parse", "--show-object-format")
	if err != nil {
		return nil, nil, err
	}
	newHash := sha1.New
	if strings.TrimSpace(string(format)) == "sha256" {
		newHash = sha256.New
	}
	found := map[string]bool{}
	objects, err := git(clone, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)")
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.Lines(string(objects)) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "blob "); ok {
			found[id] = true
		}
	}
	missing, err := git(clone, "rev-list", "--objects", "--all", "--missing=print")
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.Lines(string(missing)) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "?"); ok {
			found[id] = true
		}
	}
	if len(found) == 0 {
		return nil, nil, fmt.Errorf("%s has no blob: it is no clone with a history", clone)
	}
	return found, newHash, nil
}

// content is a file, or a member of an archive, with the name that Git would give its content.
type content struct{ name, id string }

// contents of the repository's files, tracked and new.
func contents(repository string, newHash func() hash.Hash) ([]content, error) {
	names, err := git(repository, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	list := slices.Compact(strings.Split(strings.TrimSuffix(string(names), "\x00"), "\x00"))
	var out []content
	for _, name := range list {
		path := filepath.Join(repository, name)
		if info, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue // deleted, a link, another repository
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		add := func(name string, b []byte) {
			if len(b) >= leastBytes {
				out = append(out, content{name, blobName(newHash, b)})
			}
		}
		add(name, b)
		unpack(name, b, add)
	}
	return out, nil
}

// unzip reads an archive by the ending of its name. It returns nil for other files.
func unzip(name string, b []byte) io.Reader {
	switch filepath.Ext(name) {
	case ".gz", ".tgz":
		if z, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
			return z
		}
	case ".zst":
		if z, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(mostBytes)); err == nil {
			return z.IOReadCloser()
		}
	}
	return nil
}

// unpack returns the content of an archive by gzip or zstd, and the members of a tar file in it.
// Some archives of tests are damaged on purpose: it reads them up to the damage.
func unpack(name string, b []byte, add func(name string, b []byte)) {
	z := unzip(name, b)
	if z == nil {
		return
	}
	whole, _ := io.ReadAll(io.LimitReader(z, mostBytes))
	add(name+" (unpacked)", whole)
	if base := strings.TrimSuffix(name, filepath.Ext(name)); filepath.Ext(base) != ".tar" && filepath.Ext(name) != ".tgz" {
		return
	}
	archive := tar.NewReader(bytes.NewReader(whole))
	for {
		header, err := archive.Next()
		if err != nil {
			return
		}
		member, err := io.ReadAll(archive)
		add(name+": "+header.Name, member)
		if err != nil {
			return
		}
	}
}

// blobName is the hash of "blob", the length, a zero byte and the content.
func blobName(newHash func() hash.Hash, b []byte) string {
	h := newHash()
	fmt.Fprintf(h, "blob %d\x00", len(b))
	h.Write(b)
	return hex.EncodeToString(h.Sum(nil))
}
