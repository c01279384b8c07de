package dataset

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxEntries bounds the files, directories and links of a set.
const MaxEntries = 1_000_000

// format of the manifest.
const format = "assay-dataset/1"

// The kinds of entries.
const (
	kindDirectory = "d"
	kindFile      = "f"
	kindLink      = "l"
)

// entry is one file, directory or link.
type entry struct {
	Path string      `json:"p"` // with slashes, below the tree
	Kind string      `json:"k"`
	Mode fs.FileMode `json:"m,omitempty"` // permissions only
	Size int64       `json:"s,omitempty"`
	// Hash of a file's content, SHA-256 in hexadecimal.
	Hash   string `json:"h,omitempty"`
	Target string `json:"t,omitempty"`
	// Modified is not part of the digest.
	Modified int64 `json:"n,omitempty"` // Unix nanoseconds
}

// Summary sums up a tree.
type Summary struct {
	// Digest of the tree, as sha256:HEX.
	Digest string `json:"digest"`
	// Bytes of all files together.
	Bytes int64 `json:"bytes"`
	// Files, directories and links not counted.
	Files int64 `json:"files"`
}

// header is the first line of a manifest.
type header struct {
	Format string `json:"format"`
	Summary
}

// scan lists a tree without its content, sorted by path. The limit is for the sum of the files'
// bytes.
func scan(root string, limit int64) (entries []entry, bytes int64, err error) {
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == root {
			return err
		}
		e, err := describe(root, name, d)
		if err != nil {
			return err
		}
		entries, bytes = append(entries, e), bytes+e.Size
		if len(entries) > MaxEntries {
			return fmt.Errorf("there are more than %d files, directories and links", MaxEntries)
		}
		if bytes > limit {
			return fmt.Errorf("there are more than %d bytes, the size that the System gives", limit)
		}
		return nil
	})
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.Path, b.Path) })
	return entries, bytes, err
}

// describe one entry, except for its hash.
func describe(root, name string, d fs.DirEntry) (entry, error) {
	below, err := filepath.Rel(root, name)
	if err != nil {
		return entry{}, err
	}
	info, err := d.Info()
	if err != nil {
		return entry{}, err
	}
	e := entry{Path: filepath.ToSlash(below), Mode: info.Mode().Perm(), Modified: info.ModTime().UnixNano()}
	if !utf8.ValidString(e.Path) {
		return e, fmt.Errorf("the name %q is not UTF-8", e.Path)
	}
	switch info.Mode().Type() {
	case 0:
		e.Kind, e.Size = kindFile, info.Size()
	case fs.ModeDir:
		e.Kind = kindDirectory
	case fs.ModeSymlink:
		e.Kind, e.Mode, e.Modified = kindLink, 0, 0
		if e.Target, err = os.Readlink(name); err != nil {
			return e, err
		}
		if err := checkLink(e); err != nil {
			return e, err
		}
	default:
		return e, fmt.Errorf("%s is neither a file nor a directory nor a link (%s)", e.Path, info.Mode().Type())
	}
	return e, nil
}

// checkLink rejects a link that leads out of the tree: it would lead to another file in each pod.
func checkLink(e entry) error {
	to := path.Join(path.Dir(e.Path), e.Target)
	if path.IsAbs(e.Target) || to == ".." || strings.HasPrefix(to, "../") {
		return fmt.Errorf("the link %s leads to %s, out of the data set; make links relative, and into the directory", e.Path, e.Target)
	}
	return nil
}

// summarize a sorted tree.
func summarize(entries []entry) Summary {
	sum, s := sha256.New(), Summary{}
	for _, e := range entries {
		fmt.Fprintf(sum, "%q %s %o %d %s %q\n", e.Path, e.Kind, e.Mode, e.Size, e.Hash, e.Target)
		s.Bytes += e.Size
		if e.Kind == kindFile {
			s.Files++
		}
	}
	s.Digest = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	return s
}

// writeManifest writes a new file that is on the disk when it returns.
func writeManifest(name string, entries []entry, s Summary) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, keptFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriter(f)
	lines := json.NewEncoder(out)
	if err := lines.Encode(header{format, s}); err != nil {
		return err
	}
	for _, e := range entries {
		if err := lines.Encode(e); err != nil {
			return err
		}
	}
	if err := errors.Join(out.Flush(), f.Chmod(keptFile)); err != nil {
		return err
	}
	return f.Sync()
}

// readManifest reads a manifest and compares it with its digest.
func readManifest(name string) ([]entry, Summary, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, Summary{}, err
	}
	defer f.Close()
	lines := json.NewDecoder(bufio.NewReader(f))
	var h header
	if err := lines.Decode(&h); err != nil {
		return nil, Summary{}, fmt.Errorf("read the manifest: %w", err)
	}
	if h.Format != format {
		return nil, Summary{}, fmt.Errorf("the manifest has format %q; this version reads %q", h.Format, format)
	}
	var entries []entry
	for {
		var e entry
		if err := lines.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, Summary{}, fmt.Errorf("read the manifest: %w", err)
		}
		if !filepath.IsLocal(filepath.FromSlash(e.Path)) || len(entries) >= MaxEntries {
			return nil, Summary{}, fmt.Errorf("the manifest is damaged at %q", e.Path)
		}
		entries = append(entries, e)
	}
	if s := summarize(entries); s != h.Summary {
		return nil, Summary{}, fmt.Errorf("the manifest is damaged: its lines have the digest %s, its head says %s", s.Digest, h.Digest)
	}
	return entries, h.Summary, nil
}
