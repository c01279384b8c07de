package parsers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/theory/jsonpath"
)

type jsonPath = *jsonpath.Path

// readJSON collects the numbers of each JSON document of the output. There may be one document that
// fills it, one in each line, or one after other output. Lines outside of documents are skipped.
func (s *summaryText) readJSON(r io.Reader) error {
	docs := jsonDocuments{in: bufio.NewReaderSize(r, maxLine), skipped: s.skipped}
	for number := 1; ; number++ {
		document, line, err := docs.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range s.readers {
			n := &s.readers[i]
			for _, node := range n.path.Select(document) {
				text, err := nodeText(node)
				var q quantity
				if err == nil {
					q, err = parseQuantity(n.SummaryNumber, text, "")
				}
				if err == nil {
					err = n.take(q, "", line)
				}
				if err != nil {
					return fmt.Errorf("the client's output:%d: %s: %s: %w", line, n.Name, n.Path, err)
				}
			}
		}
	}
}

// nodeText is the number of a node, as it is written.
func nodeText(node any) (string, error) {
	switch v := node.(type) {
	case json.Number:
		return v.String(), nil
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	}
	return "", errors.New("it is neither a number nor text")
}

// jsonDocuments finds the JSON objects and arrays of a text in which there may be other lines.
type jsonDocuments struct {
	in      *bufio.Reader
	line    int // lines that were read
	skipped func(line []byte)
}

// beforeJSON is what may stand in a line before its document.
const beforeJSON = " \t\r\xef\xbb\xbf"

// next returns the next document and the line that it begins in.
func (d *jsonDocuments) next() (document any, line int, err error) {
	for {
		text, err := d.readLine()
		if err != nil {
			return nil, 0, err
		}
		begin := bytes.TrimLeft(text, beforeJSON)
		if len(begin) == 0 || begin[0] != '{' && begin[0] != '[' {
			d.skipped(text)
			continue
		}
		line = d.line
		kept := bytes.Clone(text) // the lines after it may take its place
		whole, err := d.finish(bytes.TrimLeft(kept, beforeJSON))
		if err != nil {
			return nil, 0, err
		}
		decoder := json.NewDecoder(bytes.NewReader(whole))
		decoder.UseNumber()
		if err := decoder.Decode(&document); err == nil {
			return document, line, nil
		} else if whole[0] == '{' && d.line > line {
			return nil, 0, fmt.Errorf("the client's output:%d: the JSON document that begins here: %w", line, err)
		}
		d.skipped(kept) // [main] INFO and the like
	}
}

// readLine reads a line, of which maxJSONDocument bytes at most are kept.
func (d *jsonDocuments) readLine() ([]byte, error) {
	var long []byte
	for {
		part, err := d.in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull) || long != nil && err == nil || long != nil && errors.Is(err, io.EOF):
			if len(long)+len(part) > maxJSONDocument {
				return nil, fmt.Errorf("the client's output:%d: the document is larger than %d bytes", d.line+1, maxJSONDocument)
			}
			long = append(long, part...)
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			d.line++
			return long, nil
		case errors.Is(err, io.EOF) && len(part) == 0:
			return nil, io.EOF
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("the client's output:%d: read: %w", d.line+1, err)
		}
		d.line++
		return part, nil
	}
}

// finish reads on until the brackets of the text are closed. A text such as "[main] INFO {" is no
// document: it begins with [, and no JSON value follows.
func (d *jsonDocuments) finish(text []byte) ([]byte, error) {
	var s bracketScan
	s.scan(text)
	if text[0] == '[' && s.depth > 0 && len(bytes.TrimSpace(text[1:])) > 0 && !bytes.ContainsAny(text[1:2], "{[\" \t-0123456789") {
		return text, nil
	}
	for s.depth > 0 {
		next, err := d.readLine()
		if errors.Is(err, io.EOF) {
			return text, nil // it is cut off, and does not decode
		}
		if err != nil {
			return nil, err
		}
		if len(text)+len(next) > maxJSONDocument {
			return nil, fmt.Errorf("the client's output:%d: the document is larger than %d bytes", d.line, maxJSONDocument)
		}
		s.scan(next)
		text = append(text, next...)
	}
	return text, nil
}

// bracketScan counts the brackets that are open, outside of strings.
type bracketScan struct {
	depth           int
	inside, escaped bool
}

func (s *bracketScan) scan(text []byte) {
	for _, c := range text {
		switch {
		case s.escaped:
			s.escaped = false
		case s.inside && c == '\\':
			s.escaped = true
		case c == '"':
			s.inside = !s.inside
		case s.inside:
		case c == '{' || c == '[':
			s.depth++
		case c == '}' || c == ']':
			s.depth--
		}
	}
}
