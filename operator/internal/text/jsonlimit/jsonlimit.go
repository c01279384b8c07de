// Package jsonlimit rejects JSON whose decoded form takes far more memory than its text. The two
// characters {} in a list become a record of some hundred bytes. So does a 0 in the place of a
// record, since encoding/json goes on after a value of a wrong type. Decoders of data from other
// programs call Check first.
package jsonlimit

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
)

// Limit says how much a JSON document may hold. For makes it.
type Limit struct {
	records, objects int
	// lists are the names, in lower case, of the members that hold many records.
	lists map[string]bool
}

// For makes the limit of documents that are decoded into a value like v. All its lists and maps of
// structs together may have so many records. The document may have so many objects.
func For(v any, records, objects int) Limit {
	l := Limit{records: records, objects: objects, lists: map[string]bool{}}
	l.add(reflect.TypeOf(v), map[reflect.Type]bool{})
	return l
}

// With returns the limit with other numbers. It does not inspect the type again.
func (l Limit) With(records, objects int) Limit {
	return Limit{records: records, objects: objects, lists: l.lists}
}

// add finds the members that hold many records, in a type and in the types of its members.
func (l Limit) add(t reflect.Type, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		l.add(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				name = f.Name
			}
			if k := f.Type.Kind(); (k == reflect.Slice || k == reflect.Map) && large(f.Type.Elem()) {
				l.lists[strings.ToLower(name)] = true
			}
			l.add(f.Type, seen)
		}
	}
}

// large reports whether a value takes more memory than its shortest text.
func large(t reflect.Type) bool {
	return t.Kind() != reflect.Uint8 && t.Size() > reflect.TypeFor[int64]().Size()
}

// maxDepth is how deep objects and lists may nest.
const maxDepth = 64

// level is an open object or list.
type level struct {
	list bool
	// records: each of its elements is a record.
	records bool
}

// Check reads a document once, without decoding it. Its error names the limit that the document
// exceeds. It does not check whether the document is valid JSON.
func Check(data []byte, l Limit) error {
	var open [maxDepth]level
	var text, name []byte // the last string, and the last one before a colon
	depth, records, objects := 0, 0, 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '"':
			end := endOfString(data, i+1)
			text, i = data[i+1:end], end
		case ':':
			name = text
		case ',':
			if depth > 0 && open[depth-1].records {
				records++
			}
		case '{', '[':
			if depth == maxDepth {
				return fmt.Errorf("its objects and lists nest deeper than %d", maxDepth)
			}
			inList := depth > 0 && open[depth-1].list
			if inList {
				records++
			}
			if c == '{' {
				objects++
			}
			open[depth] = level{list: c == '[', records: depth > 0 && !inList && l.isList(name)}
			depth++
		case '}', ']':
			depth = max(0, depth-1)
		}
		if records > l.records {
			return fmt.Errorf("its lists hold more than %d records", l.records)
		}
		if objects > l.objects {
			return fmt.Errorf("it holds more than %d objects", l.objects)
		}
	}
	return nil
}

// endOfString returns the index of the quote that ends a string, or the length of data if the
// string does not end.
func endOfString(data []byte, i int) int {
	for ; i < len(data); i++ {
		switch data[i] {
		case '"':
			return i
		case '\\':
			i++ // the next character is escaped
		}
	}
	return len(data)
}

// isList reports whether a member of that name holds many records. encoding/json accepts names in
// any case, and escaped ones. So a name with unusual characters counts as such a member.
func (l Limit) isList(name []byte) bool {
	if bytes.ContainsFunc(name, func(r rune) bool { return r == '\\' || r >= 0x80 }) {
		return true
	}
	return l.lists[string(bytes.ToLower(name))]
}
