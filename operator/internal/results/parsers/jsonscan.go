package parsers

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// maxToken is the longest string or number of a JSON document that is streamed; the tokenizer has
// to hold one as a whole.
const maxToken = 1 << 20

// jsonScan reads a JSON document token by token, with the file and the line in every error. Its
// memory is bounded: by maxToken for a token, by the tokenizer (10,000 levels) for nesting. The
// caller decides about names that are there twice.
//
// jsontext was chosen by measurement, on stats.json of a real run: 470 MB/s where encoding/json's
// Decoder has 80.
type jsonScan struct {
	file string
	dec  *jsontext.Decoder
	src  *lineCounter
}

func newJSONScan(file string, r io.Reader) *jsonScan {
	src := &lineCounter{r: r}
	return &jsonScan{file: file, src: src,
		dec: jsontext.NewDecoder(src, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
}

// next returns the next token, valid until the call after it. The end of the file, where a token is
// wanted, is an error.
func (s *jsonScan) next() (jsontext.Token, error) {
	s.src.consumed = s.dec.InputOffset()
	token, err := s.dec.ReadToken()
	if err == nil {
		return token, nil
	}
	at := s.dec.InputOffset()
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, errLongToken):
		err = errLongToken
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		at, err = s.src.start+int64(len(s.src.tail)), errors.New("the document is cut off")
	case errors.As(err, &syntax):
		at, err = syntax.ByteOffset, syntax.Err
	}
	return token, fmt.Errorf("%s:%d: %w", s.file, s.src.line(at), err)
}

// errorf makes an error at the last token.
func (s *jsonScan) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: "+format, append([]any{s.file, s.src.line(s.dec.InputOffset())}, args...)...)
}

// skip reads over the rest of a value whose first token was read.
func (s *jsonScan) skip(first jsontext.Kind) error {
	if first != '{' && first != '[' {
		return nil
	}
	for depth := s.dec.StackDepth() - 1; s.dec.StackDepth() > depth; {
		if _, err := s.next(); err != nil {
			return err
		}
	}
	return nil
}

// members calls each for every member of the object whose brace was read, with the first token of
// its value. each reads the value.
func (s *jsonScan) members(each func(name string, first jsontext.Token) error) error {
	for {
		token, err := s.next()
		if err != nil {
			return err
		}
		if token.Kind() == '}' {
			return nil
		}
		name := token.String()
		if token, err = s.next(); err != nil {
			return err
		}
		if err := each(name, token); err != nil {
			return err
		}
	}
}

// end checks that nothing follows the document.
func (s *jsonScan) end() error {
	s.src.consumed = s.dec.InputOffset()
	if _, err := s.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return s.errorf("there is more after the end of the document")
	}
	return nil
}

var errLongToken = fmt.Errorf("a string or number is longer than %d bytes", maxToken)

// lineCounter counts lines up to any offset that is not consumed yet. It keeps the bytes that the
// tokenizer has not consumed. It counts the newlines of dropped bytes in bulk, at little cost.
type lineCounter struct {
	r        io.Reader
	consumed int64 // by the tokenizer
	start    int64 // offset of tail
	lines    int   // newlines before start
	tail     []byte
}

func (c *lineCounter) Read(p []byte) (int, error) {
	if drop := c.consumed - c.start; drop > 0 {
		c.lines += bytes.Count(c.tail[:drop], []byte("\n"))
		c.tail = c.tail[:copy(c.tail, c.tail[drop:])]
		c.start = c.consumed
	}
	if len(c.tail) > maxToken {
		return 0, errLongToken
	}
	n, err := c.r.Read(p)
	c.tail = append(c.tail, p[:n]...)
	return n, err
}

func (c *lineCounter) line(offset int64) int {
	at := min(max(offset-c.start, 0), int64(len(c.tail)))
	return 1 + c.lines + bytes.Count(c.tail[:at], []byte("\n"))
}
