// Package archive writes and reads bundles: an experiment's results as a compressed tar file. Its
// last entry, SHA256SUMS, has the checksums of all others, in the form that sha256sum -c reads. The
// same files with the same time give the same bytes. It knows nothing of what is in the files.
package archive

import (
	"archive/tar"
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

// Sums is the name of the entry with the checksums.
const Sums = "SHA256SUMS"

// Read accepts entries of at most this size each, at most this size together, and at most this
// number. So a file of a stranger cannot fill the memory or keep it busy.
const (
	maxEntry   = 64 << 20
	maxTotal   = 16 << 30
	maxEntries = 200_000
)

// Writer writes a bundle, file by file.
type Writer struct {
	zip      io.WriteCloser
	tar      *tar.Writer
	sorted   bool
	folder   string
	modified time.Time
	sums     []string
	names    map[string]bool
	entries  []Entry
	// waiting files are written when they are window bytes together, like files side by side.
	waiting      []waiting
	waitingBytes int
}

type waiting struct {
	name string
	data []byte
}

// Entry is a file of a bundle.
type Entry struct {
	Name   string
	Size   int64
	SHA256 string // in hexadecimal
}

// Entries are the files that were added, in their order.
func (w *Writer) Entries() []Entry { return slices.Clone(w.entries) }

// NewWriter starts a bundle whose files are in a folder and were last changed then (to the second).
func NewWriter(w io.Writer, form *Form, folder string, modified time.Time) (*Writer, error) {
	zip, err := form.compress(w)
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	return &Writer{
		zip: zip, tar: tar.NewWriter(zip), sorted: form.sorted, folder: folder, modified: modified.UTC().Truncate(time.Second), names: map[string]bool{},
	}, nil
}

// Add writes a file. Files must be added in the same order for the same bytes.
func (w *Writer) Add(name string, data []byte) error {
	if !plain(name) || name == Sums || w.names[name] {
		return fmt.Errorf("bundle: %q cannot be the name of a file, or is already one", name)
	}
	w.names[name] = true
	sum := sha256.Sum256(data)
	w.sums = append(w.sums, hex.EncodeToString(sum[:])+"  "+name)
	w.entries = append(w.entries, Entry{Name: name, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])})
	if !w.sorted {
		return w.write(name, data)
	}
	w.waiting = append(w.waiting, waiting{name, data})
	if w.waitingBytes += len(data); w.waitingBytes < window {
		return nil
	}
	return w.flush()
}

// flush writes the files that wait. Like files stand together, in the order in which they were
// added.
func (w *Writer) flush() error {
	slices.SortStableFunc(w.waiting, func(a, b waiting) int { return cmp.Compare(likeness(a.name), likeness(b.name)) })
	for _, f := range w.waiting {
		if err := w.write(f.name, f.data); err != nil {
			return err
		}
	}
	w.waiting, w.waitingBytes = nil, 0
	return nil
}

// likeness is the same for files that are written alike: all after the first dot of the name, or
// the name of a file without one.
func likeness(name string) string {
	base := path.Base(name)
	if _, ending, ok := strings.Cut(base, "."); ok {
		return ending
	}
	return base
}

func (w *Writer) write(name string, data []byte) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: path.Join(w.folder, name), Mode: 0o644, Size: int64(len(data)), ModTime: w.modified}
	if err := w.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("bundle: write %s: %w", name, err)
	}
	if _, err := w.tar.Write(data); err != nil {
		return fmt.Errorf("bundle: write %s: %w", name, err)
	}
	return nil
}

// Close writes the checksums and ends the bundle. The writer stays open.
func (w *Writer) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	slices.SortFunc(w.sums, func(a, b string) int { return strings.Compare(a[sha256.Size*2:], b[sha256.Size*2:]) })
	if err := w.write(Sums, []byte(strings.Join(append(w.sums, ""), "\n"))); err != nil {
		return err
	}
	if err := errors.Join(w.tar.Close(), w.zip.Close()); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return nil
}

// Is says whether data begins like a bundle.
func Is(data []byte) bool { return Sniff(data) != nil }

// errNone is the error of a file that begins otherwise.
var errNone = errors.New("not a bundle: a bundle is a .tar.zst or .tar.gz file, as kubectl assay bundle writes it")

// Read gives each wanted file to visit, in the order of the bundle, by its name within the bundle's
// folder. It fails when the bundle is damaged or larger than it may be. It also fails when a file
// does not match its checksum or has none, and when visit fails. Then files that were visited
// before cannot be trusted.
func Read(r io.Reader, wanted func(name string) bool, visit func(name string, data []byte) error) error {
	unzipped, err := Unzip(r)
	if err != nil {
		return errNone
	}
	defer func() { _ = unzipped.Close() }() // nothing is written
	all := &io.LimitedReader{R: unzipped, N: maxTotal}
	entries := tar.NewReader(all)
	seen := map[string]string{}
	var sums []byte
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) && all.N > 0 {
			break
		}
		if err != nil {
			return fmt.Errorf("bundle: damaged, or of more than %d bytes, after %d files: %w", int64(maxTotal), len(seen), inWords(err))
		}
		if header.Typeflag == tar.TypeDir {
			continue
		}
		_, name, inFolder := strings.Cut(header.Name, "/")
		switch {
		case header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeGNUSparse || !inFolder || !plain(header.Name) || !plain(name):
			return fmt.Errorf("bundle: entry %q is not a file in the bundle's folder", header.Name)
		case sparse(header):
			return fmt.Errorf("bundle: %s is a sparse file, which no bundle has", name)
		case header.Size > maxEntry:
			return fmt.Errorf("bundle: %s has %d bytes; %d are allowed", name, header.Size, maxEntry)
		case len(seen) == maxEntries:
			return fmt.Errorf("bundle: more than %d files", maxEntries)
		case seen[name] != "":
			return fmt.Errorf("bundle: %s is in it twice", name)
		}
		data, err := io.ReadAll(entries)
		if err != nil {
			return fmt.Errorf("bundle: damaged in %s: %w", name, inWords(err))
		}
		if name == Sums {
			sums = data
			continue
		}
		sum := sha256.Sum256(data)
		seen[name] = hex.EncodeToString(sum[:])
		if wanted(name) {
			if err := visit(name, data); err != nil {
				return fmt.Errorf("bundle: %s: %w", name, err)
			}
		}
	}
	return check(seen, sums)
}

// Unzip reads what a form has compressed. It finds the form by the first bytes.
func Unzip(r io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReader(r)
	first, err := buffered.Peek(len(Zstd.magic))
	if form := Sniff(first); form != nil {
		return form.open(buffered)
	}
	return nil, cmp.Or(err, errNone)
}

// sparse files have zeros that take no bytes of the bundle, and so are not within maxTotal.
func sparse(header *tar.Header) bool {
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return header.Typeflag == tar.TypeGNUSparse
}

// inWords words an unexpected end of a file.
func inWords(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file is cut off there")
	}
	return err
}

// ChangedError names the files that do not match their checksums. All files were visited.
type ChangedError struct {
	// Files in the order of their names, each with what is wrong.
	Files []string
}

func (e *ChangedError) Error() string { return "bundle: " + strings.Join(e.Files, "; ") }

// check compares the files with the checksums, both ways.
func check(seen map[string]string, sums []byte) error {
	if sums == nil {
		return fmt.Errorf("bundle: it has no %s, so it is cut off or none", Sums)
	}
	var changed ChangedError
	listed := map[string]bool{}
	for line := range strings.Lines(string(sums)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok {
			return fmt.Errorf("bundle: %s has the line %q, which is not a checksum and a name", Sums, line)
		}
		listed[name] = true
		switch {
		case seen[name] == "":
			changed.Files = append(changed.Files, fmt.Sprintf("%s is in %s and not in the bundle", name, Sums))
		case seen[name] != sum:
			changed.Files = append(changed.Files, fmt.Sprintf("%s was changed: its checksum is not that of %s", name, Sums))
		}
	}
	for name := range seen {
		if !listed[name] {
			changed.Files = append(changed.Files, fmt.Sprintf("%s has no checksum: %d files and %d checksums", name, len(seen), len(listed)))
		}
	}
	if len(changed.Files) == 0 {
		return nil
	}
	slices.Sort(changed.Files)
	return &changed
}

// plain names stay in their folder and on their line.
func plain(name string) bool {
	return name != "" && path.Clean(name) == name && !path.IsAbs(name) && name != ".." && !strings.HasPrefix(name, "../") && !strings.ContainsAny(name, "\n\\")
}
