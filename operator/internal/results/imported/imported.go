// Package imported reads measurements of others: files of benchmark programs and of other
// artifacts. They become trials of an Experiment that Assay did not run. The package touches only
// the files that it is given.
//
//	files --parsers--> rows --numbers.go--> results with labels --points.go--> trials of points
//
// A file that cannot be read as a whole is an error. Set.Skipped names the parts that did not
// become trials: files that the pattern does not match, lines, columns, failed runs.
package imported

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/parsers"
)

// Bounds of what is imported.
const (
	maxFiles = 10_000
	maxFile  = 64 << 20
)

// Options say how files are read.
type Options struct {
	// Format of the files: one of Formats.
	Format string
	// Point is a pattern of the names of files, relative to the folder:
	// {system}/{clients}c/run{repetition}.txt. Files that differ in {client} alone are clients of
	// one run. Empty: all files are read, and their names say nothing.
	Point string
	// Rename has, by the name of an axis, the label that files have for it. It also renames the
	// values of labels: system:Eiger-PORT=eiger-port.
	Rename map[string]string
	// At are labels of all files.
	At map[string]string
	// Only are the files that are read. Empty: all of the folder.
	Only []string
	// Summary says where the format Summary has its numbers.
	Summary []results.SummaryNumber
	// ByOperation makes a result of each kind of operation, with the label operation. The format
	// YCSB tells kinds apart, and HdrHistogram by its tags.
	ByOperation bool
	// Unit of the values of HdrPercentiles and HdrHistogram: ns, us, ms or s.
	Unit string
}

// Result is one measurement of one point.
type Result struct {
	From   results.Imported
	Labels map[string]string
	Numbers
}

// String says where a result is from.
func (r Result) String() string {
	if r.From.Line > 0 {
		return fmt.Sprintf("%s:%d", r.From.File, r.From.Line)
	}
	return r.From.File
}

// repetition is the label that numbers the results of a point. It is no axis.
const repetition = "repetition"

// Set is what was read.
type Set struct {
	Format  string
	Files   int
	Results []Result
	// Skipped names the parts of the files that were not read.
	Skipped []string
}

// Read reads a folder.
func Read(folder fs.FS, o Options) (*Set, error) {
	pattern, err := compilePattern(o.Point)
	if err != nil {
		return nil, fmt.Errorf("--point %s: %w", o.Point, err)
	}
	names := o.Only
	if len(names) == 0 {
		if names, err = filesIn(folder); err != nil {
			return nil, err
		}
	}
	s := &Set{Format: o.Format}
	var unmatched []string
	for _, name := range names {
		labels, ok := pattern.match(name)
		if !ok {
			unmatched = append(unmatched, name)
			continue
		}
		if err := s.readFile(folder, name, labels, o); err != nil {
			return nil, err
		}
	}
	if len(unmatched) > 0 {
		s.Skipped = append(s.Skipped, fmt.Sprintf("%s, whose names do not match --point %s: %s", count(len(unmatched), "file"), o.Point, some(unmatched)))
	}
	if len(s.Results) == 0 {
		return nil, fmt.Errorf("no file has a result: %s", strings.Join(append(s.Skipped, count(len(names), "file")+" in the folder"), "; "))
	}
	return s, s.mergeClients()
}

// filesIn lists the regular files below a folder, in the order of their names. Hidden ones are not
// among them.
func filesIn(folder fs.FS) ([]string, error) {
	var names []string
	err := fs.WalkDir(folder, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(path.Base(p), ".") && p != ".":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.Type().IsRegular():
			names = append(names, p)
		}
		if len(names) > maxFiles {
			return fmt.Errorf("it holds more than %d files", maxFiles)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look through the folder: %w", err)
	}
	if len(names) == 0 {
		return nil, errors.New("the folder has no file")
	}
	return names, nil
}

func (s *Set) readFile(folder fs.FS, name string, labels map[string]string, o Options) error {
	info, err := fs.Stat(folder, name)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if info.Size() > maxFile {
		return fmt.Errorf("%s has %d bytes; at most %d are read", name, info.Size(), maxFile)
	}
	data, err := fs.ReadFile(folder, name)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	read, skipped, err := readers[o.Format].read(name, data, o)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	s.Files++
	s.Skipped = append(s.Skipped, skipped...)
	for _, r := range read {
		r.From.Format, r.From.File, r.From.SHA256 = o.Format, name, hex.EncodeToString(sum[:])
		all := map[string]string{}
		for _, from := range []map[string]string{r.Labels, labels, o.At} { // the options win
			maps.Copy(all, from)
		}
		r.Labels = rename(all, o.Rename)
		s.Results = append(s.Results, r)
	}
	return nil
}

// rename gives labels the names and the values that axes have.
func rename(labels, names map[string]string) map[string]string {
	out := map[string]string{}
	for name, value := range labels {
		for axis, label := range names {
			if label == name {
				name = axis
				break
			}
		}
		if renamed, ok := names[name+":"+value]; ok {
			value = renamed
		}
		out[name] = value
	}
	return out
}

// Formats that can be imported, in the order of the alphabet.
func Formats() []string { return slices.Sorted(maps.Keys(readers)) }

// CheckFormat refuses a format that cannot be imported.
func CheckFormat(format string) error {
	if _, ok := readers[format]; !ok {
		return fmt.Errorf("%q is no format of results that were measured elsewhere; those are %s", format, strings.Join(Formats(), ", "))
	}
	return nil
}

// Guess returns the format of a folder if a file shows it, and else nothing.
func Guess(folder fs.FS, only []string) string {
	names := only
	if len(names) == 0 {
		var err error
		if names, err = filesIn(folder); err != nil {
			return ""
		}
	}
	for _, name := range names {
		switch base := path.Base(name); {
		case path.Ext(base) == ".csv":
			return parsers.FormatCSV
		case base == "combined.graph":
			return parsers.FormatEigerGraph
		case path.Ext(base) == ".hgrm":
			return FormatHdrPercentiles
		case path.Ext(base) == ".hlog":
			return parsers.FormatHdrHistogram
		case path.Ext(base) == ".json":
			return FormatResults
		}
	}
	return ""
}

// most names that a message lists.
const most = 5

func some(names []string) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
