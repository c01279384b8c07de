package parsers

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Bounds of what is read, so that memory stays bounded whatever a file holds.
const (
	// maxRows of one table, maxValues of all of its rows together.
	maxRows   = 100_000
	maxValues = 500_000
)

// errCutOff is what a last line without its newline comes to.
var errCutOff = errors.New("has no newline, so the file may be cut off")

// lines reads a text file line by line. Every error names the file and the line.
type lines struct {
	file   string
	in     *bufio.Reader
	number int // of the line that next returned last, from 1
	// begin and end of that line in the file, its newline included.
	begin, end int64
}

func newLines(file string, r io.Reader) *lines {
	return &lines{file: file, in: bufio.NewReaderSize(r, maxLine)}
}

// next returns the next line without its end, valid until the next call. At the end of the file the
// error is io.EOF itself. A last line without its newline is refused: what was cut off may be
// digits of its last number.
func (l *lines) next() ([]byte, error) {
	line, err := l.in.ReadSlice('\n')
	if err != nil && errors.Is(err, io.EOF) && len(line) == 0 {
		return nil, io.EOF
	}
	l.number++
	l.begin, l.end = l.end, l.end+int64(len(line))
	switch {
	case err == nil:
		return bytes.TrimRight(line, "\r\n"), nil
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, l.errorf("the line is longer than %d bytes", maxLine)
	case errors.Is(err, io.EOF):
		return nil, l.errorf("the last line, %q, %w; add the newline if it is whole", short(line), errCutOff)
	}
	return nil, fmt.Errorf("%s:%d: read: %w", l.file, l.number, err)
}

// errorf makes an error at the current line.
func (l *lines) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: "+format, append([]any{l.file, l.number}, args...)...)
}

// parseNumber reads a decimal number. What is no number of a measurement (NaN, infinities,
// hexadecimal) is refused.
func parseNumber(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) || !isDecimal(text) {
		return 0, fmt.Errorf("%q is not a decimal number", text[:min(len(text), 120)])
	}
	return x, nil
}

// parseCountable reads a decimal number of 0 or more: what is counted or timed.
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
