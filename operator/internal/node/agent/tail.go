package agent

import (
	"bytes"
	"io"
	"os"
	"regexp"

	"golang.org/x/sys/unix"
)

// logTailer reads a file that grows, line by line.
type logTailer struct {
	path    string
	file    *os.File
	partial []byte
	chunk   []byte
}

// maxLine bounds a line without an end: find searches only the tail of a longer one.
const maxLine = 1 << 20

// follow the kept output of a container: "Stdout", "Stderr", or both for "Any" or nothing.
func follow(container, stream string, file func(container, stream string) string) []*logTailer {
	var tailers []*logTailer
	for _, one := range []string{"Stdout", "Stderr"} {
		if stream == one || stream == "" || stream == "Any" {
			tailers = append(tailers, &logTailer{path: file(container, one)})
		}
	}
	return tailers
}

// find counts the new whole lines that match, and stops when it has found enough.
func (f *logTailer) find(pattern *regexp.Regexp, enough int) (found int, err error) {
	err = f.lines(func(line []byte) bool {
		if pattern.Match(bytes.TrimSuffix(line, []byte("\r"))) {
			found++
		}
		return found == enough
	})
	return found, err
}

// lines calls take for each new whole line, until take returns true.
func (f *logTailer) lines(take func(line []byte) (enough bool)) error {
	if f.file == nil {
		// It does not follow a link in place of the file, and does not wait for a pipe.
		file, err := os.OpenFile(f.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		f.file = file
	}
	if f.chunk == nil {
		f.chunk = make([]byte, 64<<10)
	}
	for {
		n, err := f.file.Read(f.chunk)
		f.partial = append(f.partial, f.chunk[:n]...)
		for {
			line, rest, whole := bytes.Cut(f.partial, []byte("\n"))
			if !whole {
				break
			}
			f.partial = rest
			if take(line) {
				return nil
			}
		}
		if extra := len(f.partial) - maxLine; extra > 0 {
			f.partial = f.partial[extra:]
		}
		if err == io.EOF {
			f.partial = bytes.Clone(f.partial) // the earlier lines need no memory any more
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (f *logTailer) close() {
	if f.file != nil {
		f.file.Close()
	}
}
