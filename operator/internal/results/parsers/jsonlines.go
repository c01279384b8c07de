package parsers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"assay.dev/assay/operator/internal/results"
)

// parseJSONLines reads a report with JSON objects as lines. Each object that records choose is an
// operation. Other lines, JSON or not, are skipped and counted, as for a pattern.
func parseJSONLines(r io.Reader, o Options) (results.Client, error) {
	if o.Records == nil {
		return results.Client{}, errors.New("the format JSONLines needs records")
	}
	m, err := newMembers(*o.Records)
	if err != nil {
		return results.Client{}, err
	}
	return readRecords(r, o, anyLine, m.read)
}

// members finds the members of a line's object that are read.
type members struct {
	root  member
	paths []string
	where int      // paths from here on must have the values of want
	want  []string // of each path; empty for those before where
	texts []string
	found []bool
	src   bytes.Reader
	dec   *jsontext.Decoder
}

// member is a node of the tree of paths.
type member struct {
	place   int // of its path, from 1; 0: no path ends here
	members map[string]*member
}

func newMembers(r results.Records) (*members, error) {
	m := &members{paths: r.Fields(), dec: jsontext.NewDecoder(bytes.NewReader(nil))}
	m.where = len(m.paths)
	m.want = make([]string, m.where)
	for _, path := range slices.Sorted(maps.Keys(r.Where)) {
		m.paths, m.want = append(m.paths, path), append(m.want, r.Where[path])
	}
	m.texts, m.found = make([]string, len(m.paths)), make([]bool, len(m.paths))
	for i, path := range m.paths {
		names, err := results.MemberPath(path)
		if err != nil {
			return nil, err
		}
		at := &m.root
		for _, name := range names {
			if at.members == nil {
				at.members = map[string]*member{}
			}
			if at.members[name] == nil {
				at.members[name] = &member{}
			}
			at = at.members[name]
		}
		if at.place > 0 {
			return nil, fmt.Errorf("%s is read, and where wants it to be %q: it would always be the same", path, m.want[i])
		}
		at.place = i + 1
	}
	return m, nil
}

// read gives the texts of a line's fields; nil for a line that is no operation. Such a line is no
// object, has other values than wanted, or has none of the members to read. An object that has only
// some of them is an error.
func (m *members) read(line []byte) ([]string, error) {
	if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' {
		return nil, nil
	}
	clear(m.found)
	m.src.Reset(line)
	m.dec.Reset(&m.src, jsontext.AllowInvalidUTF8(true))
	if err := m.object(&m.root); err != nil {
		return nil, fmt.Errorf("no whole JSON object: %w", err)
	}
	if _, err := m.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the object")
	}
	for i := m.where; i < len(m.paths); i++ {
		if !m.found[i] || m.texts[i] != m.want[i] {
			return nil, nil
		}
	}
	read := m.found[:m.where]
	if missing := slices.Index(read, false); missing >= 0 {
		if !slices.Contains(read, true) {
			return nil, nil
		}
		return nil, fmt.Errorf("the object has no %s; choose the lines that are operations by where", m.paths[missing])
	}
	return m.texts[:m.where], nil
}

// object reads an object, with the members of a node.
func (m *members) object(of *member) error {
	if _, err := m.dec.ReadToken(); err != nil {
		return err
	}
	for m.dec.PeekKind() != '}' {
		token, err := m.dec.ReadToken()
		if err != nil {
			return err
		}
		next := of.members[token.String()]
		switch kind := m.dec.PeekKind(); {
		case next == nil, kind == '[', kind == '{' && next.members == nil:
			err = m.dec.SkipValue()
		case kind == '{':
			err = m.object(next)
		default:
			err = m.scalar(next)
		}
		if err != nil {
			return err
		}
	}
	_, err := m.dec.ReadToken()
	return err
}

// scalar reads a text, a number, true or false. A null counts as a missing member.
func (m *members) scalar(of *member) error {
	token, err := m.dec.ReadToken()
	if err != nil || of.place == 0 || token.Kind() == 'n' {
		return err
	}
	m.texts[of.place-1], m.found[of.place-1] = token.String(), true
	return nil
}
