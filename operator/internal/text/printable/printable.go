// Package printable shows text of other programs so that a terminal does not act on it. A terminal
// carries out escape sequences, which can hide lines and rewrite earlier output. The log of a
// program under test may contain some, and so may a bundle. kubectl had this fault as
// CVE-2021-25743.
package printable

import (
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns a text with escapes as in a Go string (\x1b, \u202e). It escapes control characters
// except \n and \t, and characters that change the direction of writing.
func Text(s string) string {
	if strings.IndexFunc(s, acts) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case acts(r) && r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case acts(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// acts reports whether a terminal acts on a character instead of showing it.
func acts(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// ours are the sequences that this program writes itself: colours, and moves back over lines to
// redraw them.
var ours = regexp.MustCompile(`^\x1b\[(?:(?:0|3[0-7]|90)m|[0-9]+A\x1b\[J)`)

// Writer writes text to a terminal in the form of Text. It lets the sequences pass that this
// program uses. The caller must not split a sequence or a character over two calls.
type Writer struct{ To io.Writer }

// Write returns the length of p if it wrote all of p in the new form.
func (w Writer) Write(p []byte) (int, error) {
	var b strings.Builder
	for rest := string(p); rest != ""; {
		if own := ours.FindString(rest); own != "" {
			b.WriteString(own)
			rest = rest[len(own):]
			continue
		}
		next := strings.IndexByte(rest[1:], 0x1b) + 1
		if next == 0 {
			next = len(rest)
		}
		b.WriteString(Text(rest[:next]))
		rest = rest[next:]
	}
	if _, err := io.WriteString(w.To, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// All returns a copy of a value in which show has replaced every string. Bytes stay as they are.
func All[T any](v T, show func(string) string) T {
	out := reflect.New(reflect.TypeFor[T]()).Elem()
	out.Set(copyOf(reflect.ValueOf(&v).Elem(), show))
	return out.Interface().(T)
}

func copyOf(v reflect.Value, show func(string) string) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.String:
		out.SetString(show(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(copyOf(v.Elem(), show))
		}
	case reflect.Interface:
		if !v.IsNil() {
			out.Set(copyOf(v.Elem(), show))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(copyOf(v.Field(i), show))
			}
		}
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 {
			break
		}
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(copyOf(v.Index(i), show))
		}
	case reflect.Array:
		for i := range v.Len() {
			out.Index(i).Set(copyOf(v.Index(i), show))
		}
	case reflect.Map:
		if v.IsNil() {
			break
		}
		out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		for it := v.MapRange(); it.Next(); {
			out.SetMapIndex(copyOf(it.Key(), show), copyOf(it.Value(), show))
		}
	}
	return out
}
