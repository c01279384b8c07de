// Package jsonlimit rejects JSON that takes far more memory when it is decoded than it has bytes.
// The two characters {} in a list become a record of some hundred bytes. So does a 0 in the place
// of a record, since encoding/json goes on after a value of a wrong type. Decoders of what others
// send call Check first.
package jsonlimit

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
)

// Limit says how much a JSON document may hold. It is made by For.
type Limit struct {
	records, objects int
	// lists are the names, in lower case, of the members that hold many records.
	lists map[string]bool
}

// For makes the limit of documents that are decoded into a value like v. Its lists and maps of
// structs may have so many records together, and the document so many objects.
func For(v any, records, objects int) Limit {
	l := Limit{records: records, objects: objects, lists: map[string]bool{}}
	l.add(reflect.TypeOf(v), map[reflect.Type]bool{})
	return l
}

// With is the same limit for other numbers: what is found out of the type is kept.
func (l Limit) With(records, objects int) Limit {
	return Limit{records: records, objects: objects, lists: l.lists}
}

// add finds the members of a type, and of the types of its members, that hold many records.
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

// large reports whether a value takes more memory than the shortest text that decodes to one.
func large(t reflect.Type) bool {
	return t.Kind() != reflect.Uint8 && t.Size() > reflect.TypeFor[int64]().Size()
}

// maxDepth is how deep objects and lists may nest.
const maxDepth = 64

// level is an object or a list that is open.
type level struct {
	list bool
	// records: each of its elements is one.
	records bool
}

// Check reads a document once and keeps nothing of it. It returns an error that names the limit
// that the document exceeds. It does not find out whether the document is valid JSON.
func Check(data []byte, l Limit) error {
	var open [maxDepth]level
	var text, name []byte // the last string, and the last one with a colon behind it
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

// endOfString returns the index of the quote that ends a string, or the length of data if none
// does.
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

// isList reports whether a member of that name holds many records. encoding/json takes names in
// any case, and escaped: a name that is not plain counts as one.
func (l Limit) isList(name []byte) bool {
	if bytes.ContainsFunc(name, func(r rune) bool { return r == '\\' || r >= 0x80 }) {
		return true
	}
	return l.lists[string(bytes.ToLower(name))]
}
