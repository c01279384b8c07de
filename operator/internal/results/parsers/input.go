package parsers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Bounds of the parsers. They keep memory bounded for any file.
const (
	// maxRows of one table, maxValues of all of its rows together.
	maxRows   = 100_000
	maxValues = 500_000
)

// errCutOff is the error of a last line without its newline.
var errCutOff = errors.New("has no newline, so the file may be cut off")

// lines reads a text file line by line. Every error names the file and the line.
type lines struct {
	file   string
	r      io.Reader
	buf    []byte // of maxLine
	at     int    // where the next line begins in buf, which is filled up to fill
	fill   int
	err    error // of the last read
	number int   // of the line that next returned last, from 1
	// begin and end of that line in the file, its newline included.
	begin, end int64
	// carriageReturns: a carriage return ends a line, too, as in progress bars.
	carriageReturns bool
	// skipLong skips lines that are too long, and long counts them.
	skipLong bool
	long     int
	// last is a last line without its newline, once next has returned errCutOff.
	last []byte
}

func newLines(file string, r io.Reader) *lines {
	return &lines{file: file, r: r, buf: make([]byte, maxLine)}
}

// next returns the next line without its end, valid until the next call. At the end of the file the
// error is io.EOF itself. A last line without its newline is refused: what was cut off may be
// digits of its last number.
func (l *lines) next() ([]byte, error) {
	searched := 0 // of what is there, without an end of a line
	for {
		text := l.buf[l.at:l.fill]
		if end := l.endOf(text, searched); end > 0 {
			return l.take(text[:end]), nil
		}
		switch {
		case errors.Is(l.err, io.EOF) && len(text) == 0:
			return nil, io.EOF
		case errors.Is(l.err, io.EOF):
			l.last = l.take(text)
			return nil, l.errorf("the last line, %q, %w; add the newline if it is whole", short(text), errCutOff)
		case l.err != nil:
			l.number++
			return nil, fmt.Errorf("%s:%d: read: %w", l.file, l.number, l.err)
		case len(text) == len(l.buf) && !l.skipLong:
			l.number++
			return nil, l.errorf("the line is longer than %d bytes", maxLine)
		case len(text) == len(l.buf):
			l.skip()
			searched = 0
			continue
		}
		searched = max(0, len(text)-1) // a carriage return at its end is looked at again
		l.read()
	}
}

// endOf is where the line at the beginning of a text ends, its end included; 0 where there is none
// yet.
func (l *lines) endOf(text []byte, from int) int {
	end := bytes.IndexByte(text[from:], '\n') + from + 1
	if end == from {
		end = 0
	}
	if !l.carriageReturns {
		return end
	}
	within := text[from:]
	if end > 0 {
		within = text[from:end]
	}
	at := bytes.IndexByte(within, '\r') + from
	switch {
	case at < from, end > 0 && at+2 == end, at+1 == len(text) && l.err == nil:
		return end // none, one before the newline, or what follows is not read yet
	}
	return at + 1
}

// read more into the buffer.
func (l *lines) read() {
	if l.at > 0 {
		l.fill = copy(l.buf, l.buf[l.at:l.fill])
		l.at = 0
	}
	for range 100 { // as bufio does
		n, err := l.r.Read(l.buf[l.fill:])
		l.fill += n
		l.err = err
		if n > 0 || err != nil {
			return
		}
	}
	l.err = io.ErrNoProgress
}

// take gives out a line.
func (l *lines) take(text []byte) []byte {
	l.number++
	l.begin, l.end = l.end, l.end+int64(len(text))
	l.at += len(text)
	for len(text) > 0 && (text[len(text)-1] == '\n' || text[len(text)-1] == '\r') {
		text = text[:len(text)-1]
	}
	return text
}

// skip reads over the rest of a line that is too long.
func (l *lines) skip() {
	l.number++
	l.long++
	for {
		text := l.buf[l.at:l.fill]
		end := l.endOf(text, 0)
		if end == 0 {
			end = len(text)
		} else {
			l.end += int64(end)
			l.at += end
			return
		}
		l.end += int64(end)
		l.at, l.fill = 0, 0
		if l.err != nil {
			return
		}
		l.read()
	}
}

// errorf makes an error at the current line.
func (l *lines) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: "+format, append([]any{l.file, l.number}, args...)...)
}

// parseNumber reads a decimal number. A text that is no number of a measurement (NaN, infinities,
// hexadecimal) is refused.
func parseNumber(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) || !isDecimal(text) {
		return 0, fmt.Errorf("%q is not a decimal number", text[:min(len(text), 120)])
	}
	return x, nil
}

// parseCountable reads a decimal number of 0 or more: a count or a time.
func parseCountable(text string) (float64, error) {
	x, err := parseNumber(text)
	if err == nil && x < 0 {
		return 0, fmt.Errorf("%s is negative", text)
	}
	return x, err
}

// isDecimal: strconv also reads hexadecimal numbers and digits with underscores.
func isDecimal(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c == '.', c == '-', c == '+', c == 'e', c == 'E':
		default:
			return false
		}
	}
	return s != ""
}
