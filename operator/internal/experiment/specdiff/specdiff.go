// Package specdiff finds the fields in which two JSON values differ, such as parts of a spec. It is
// pure.
package specdiff

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Change is a field in which two values differ.
type Change struct {
	// Path of the field, as in claims[a].within.
	Path string
	// Was and Is are its values, as JSON. Empty: the field did not exist, or no longer exists.
	Was, Is string
}

// String describes the change in words. It shortens long values.
func (c Change) String() string { return Words(c.Path, shorten(c.Was), shorten(c.Is)) }

// Words describes a change, from values as JSON. Empty: there is no value.
func Words(what, was, is string) string {
	switch {
	case was == "":
		return what + " is new"
	case is == "":
		return what + " is gone"
	}
	return fmt.Sprintf("%s was %s, is %s", what, was, is)
}

// Of returns the changes below path between two values that were decoded from JSON. Nil is an
// absent value. An empty list or object counts as absent. Elements of a list are compared by their
// names, if all have one.
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

// Keys returns the keys of two objects, sorted.
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

// byName returns the objects of a list by their names. It returns false if one of them has no name.
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

// text returns a value as JSON, or "" for an absent one.
func text(v any) string {
	if v == nil {
		return ""
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // people read it
	if err := encoder.Encode(v); err != nil {
		panic(fmt.Sprintf("specdiff: a value that came as JSON cannot be written as JSON: %v", err))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// mostText is how many characters of a value a change shows.
const mostText = 80

func shorten(text string) string {
	if r := []rune(text); len(r) > mostText {
		return strings.TrimSpace(string(r[:mostText-1])) + "…"
	}
	return text
}
