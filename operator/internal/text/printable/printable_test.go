package printable

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestText(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"plain":                  {"20 ms ± 3, Größe\n\tx", "20 ms ± 3, Größe\n\tx"},
		"an escape sequence":     {"\x1b]0;title\x07", `\x1b]0;title\x07`},
		"one of eight bits":      {"\u009b2J", `\u009b2J`},
		"a carriage return":      {"fails\rholds", `fails\x0dholds`},
		"a backspace":            {"fails\b\b", `fails\x08\x08`},
		"delete":                 {"\x7f", `\x7f`},
		"a change of direction":  {"\u202egnol", `\u202egnol`},
		"bytes that are no rune": {"a\xffb\x9b", `a\xffb\x9b`},
		"the replacement rune":   {"a\ufffdb", "a\ufffdb"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Text(tc.in); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWriter(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"our colours":          {"\x1b[32mholds\x1b[0m", "\x1b[32mholds\x1b[0m"},
		"lines drawn anew":     {"\x1b[12A\x1b[Jnew", "\x1b[12A\x1b[Jnew"},
		"a title":              {"a\x1b]0;title\x07b", `a\x1b]0;title\x07b`},
		"the screen cleared":   {"\x1b[2J", `\x1b[2J`},
		"up, and nothing else": {"\x1b[3A", `\x1b[3A`},
		"hidden":               {"\x1b[8msecret\x1b[0m", `\x1b[8msecret` + "\x1b[0m"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if n, err := (Writer{&b}).Write([]byte(tc.in)); n != len(tc.in) || err != nil {
				t.Errorf("got %d, %v", n, err)
			}
			if b.String() != tc.want {
				t.Errorf("got %q, want %q", b.String(), tc.want)
			}
		})
	}
}

func TestAllCopies(t *testing.T) {
	type inner struct {
		S []string
		M map[string]*string
		B []byte
	}
	s := "\a"
	in := inner{[]string{"a\a"}, map[string]*string{"k\a": &s}, []byte("\a")}
	got := All(in, Text)
	shown := `\x07`
	if diff := cmp.Diff(inner{[]string{`a\x07`}, map[string]*string{`k\x07`: &shown}, []byte("\a")}, got); diff != "" {
		t.Error(diff)
	}
	if in.S[0] != "a\a" || *in.M["k\a"] != "\a" {
		t.Error("the value itself was changed")
	}
}
