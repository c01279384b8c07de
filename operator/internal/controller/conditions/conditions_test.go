package conditions

import (
	"testing"
	"unicode/utf8"
)

func TestTruncate(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"short":               {"as it is", "as it is"},
		"long":                {"It printed: panic", "It...panic"},
		"in a character":      {"aüxxxxbbbbb", "a...bbbbb"},
		"after the character": {"üxxxxxbbbbb", "ü...bbbbb"},
		"before the end":      {"aaxxxxübbbb", "aa...bbbb"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Truncate(tc.text, 10); got != tc.want || !utf8.ValidString(got) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSentence(t *testing.T) {
	for text, want := range map[string]string{"": "", "read it: gone": "Read it: gone."} {
		if got := Sentence(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
