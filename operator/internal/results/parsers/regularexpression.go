package parsers

import (
	"errors"
	"fmt"
	"io"
	"regexp"
)

// parseRegularExpression makes a row of each line that the pattern matches; the other lines are
// counted as skipped. RE2 takes time that is linear in the line, whatever the pattern.
func parseRegularExpression(file string, r io.Reader, spec Spec) (*Table, error) {
	if err := spec.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	pattern, err := regexp.Compile(spec.Pattern)
	if err != nil {
		return nil, fmt.Errorf("%s: the pattern: %w", file, err)
	}
	groups := make([]int, len(spec.Fields))
	for i, f := range spec.Fields {
		if groups[i] = pattern.SubexpIndex(f.From); groups[i] == -1 {
			return nil, fmt.Errorf("%s: the pattern has no group (?P<%s>...)", file, f.From)
		}
	}
	in, t := newLines(file, r), newTable()
	for {
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		match := pattern.FindSubmatch(line)
		if match == nil {
			t.Skipped["other lines"]++
			continue
		}
		row := Row{Line: in.number, Labels: map[string]string{}}
		for i, f := range spec.Fields {
			if err := f.put(&row, string(match[groups[i]])); err != nil {
				return nil, in.errorf("%v", err)
			}
		}
		if err := t.add(row); err != nil {
			return nil, in.errorf("%v", err)
		}
	}
	if len(t.Rows) == 0 {
		return nil, in.errorf("no line matches the pattern %s", spec.Pattern)
	}
	return t, nil
}
