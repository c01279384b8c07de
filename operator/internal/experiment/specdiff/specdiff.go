// Package specdiff says in which fields two values differ that JSON has written: parts of a spec,
// for instance. It is pure.
package specdiff

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Change is a field that two values differ in.
type Change struct {
	// Path of the field, as in claims[a].within.
	Path string
	// Was and Is are its values, as JSON. Empty: it was not there, or is not.
	Was, Is string
}

// String is the change in words. Long values are shortened.
func (c Change) String() string { return Words(c.Path, shorten(c.Was), shorten(c.Is)) }

// Words say what has become of something, from its values as JSON. Empty: it has none.
func Words(what, was, is string) string {
	switch {
	case was == "":
		return what + " is new"
	case is == "":
		return what + " is gone"
	}
	return fmt.Sprintf("%s was %s, is %s", what, was, is)
}

// Of says at which paths below path two values differ that JSON was decoded to. Nil is an absent
// value, and an empty list or object is as good as none. Elements of a list are compared by their
// names, where all have one.
func Of(path string, was, is any) []Change {
	if isEmpty(was) && isEmpty(is) {
		return nil
	}
	a, objectA := was.(map[string]any)
	b, objectB := is.(map[string]any)
	if objectA && objectB {
		var all []Change
		for _, key := range Keys(a, b) {
			below := path + "." + key
			if path == "" {
				below = key
			}
			all = append(all, Of(below, a[key], b[key])...)
		}
		return all
	}
	namedA, listA := byName(was)
	namedB, listB := byName(is)
	if listA && listB {
		var all []Change
		for _, key := range Keys(namedA, namedB) {
			all = append(all, Of(path+"["+key+"]", namedA[key], namedB[key])...)
		}
		return all
	}
	c := Change{Path: path, Was: text(was), Is: text(is)}
	if c.Was == c.Is {
		return nil
	}
	return []Change{c}
}

// Keys of two objects, sorted.
func Keys(a, b map[string]any) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

func isEmpty(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case []any:
		return len(x) == 0
	case map[string]any:
		return len(x) == 0
	}
	return false
}

// byName gives the objects of a list by what names them; false where one of them has no name.
func byName(v any) (map[string]any, bool) {
	list, ok := v.([]any)
	if !ok && v != nil {
		return nil, false
	}
	named := map[string]any{}
	for _, element := range list {
		object, _ := element.(map[string]any)
		name, _ := object["name"].(string)
		if axis, ok := object["axis"].(string); ok && name == "" {
			name = axis
		}
		if name == "" || named[name] != nil {
			return nil, false
		}
		named[name] = element
	}
	return named, true
}

// text of a value, as JSON; empty for an absent one.
func text(v any) string {
	if v == nil {
		return ""
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // it is for people
	if err := encoder.Encode(v); err != nil {
		panic(fmt.Sprintf("specdiff: a value that came as JSON cannot be written as JSON: %v", err))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// mostText is how much of a value a change shows, in characters.
const mostText = 80

func shorten(text string) string {
	if r := []rune(text); len(r) > mostText {
		return strings.TrimSpace(string(r[:mostText-1])) + "…"
	}
	return text
}
