package conditions

import (
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func TestSameButMessages(t *testing.T) {
	one := metav1.Condition{Type: "Deployed", Status: metav1.ConditionFalse, Reason: "PodsPending", Message: "2 of 8"}
	message, status, reason := one, one, one
	message.Message, status.Status, reason.Reason = "3 of 8", metav1.ConditionTrue, "Configuring"
	for name, tc := range map[string]struct {
		after []metav1.Condition
		want  bool
	}{
		"another message":       {[]metav1.Condition{message}, true},
		"nothing":               {[]metav1.Condition{one}, true},
		"another status":        {[]metav1.Condition{status}, false},
		"another reason":        {[]metav1.Condition{reason}, false},
		"a condition more":      {[]metav1.Condition{one, {Type: "Started"}}, false},
		"a condition that goes": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := SameButMessages([]metav1.Condition{one}, tc.after); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
