// Package conditions writes the messages of status conditions.
package conditions

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxMessage is the most bytes that the message of a condition may have. The results have the full
// text.
const MaxMessage = 1024

const ellipsis = "..."

// Truncate returns at most the given number of bytes of a text. It cuts the middle out and marks
// the cut. A message begins with its subject. It ends with the last output of a process, which
// mostly has the reason of the failure. It cuts no character in two.
func Truncate(text string, most int) string {
	if len(text) <= most {
		return text
	}
	kept := most - len(ellipsis)
	begin := kept / 3
	return strings.ToValidUTF8(text[:begin], "") + ellipsis + strings.ToValidUTF8(text[len(text)-(kept-begin):], "")
}

// SameButMessages reports whether two lists of conditions differ only in messages.
func SameButMessages(before, after []metav1.Condition) bool {
	return slices.EqualFunc(before, after, func(b, a metav1.Condition) bool {
		b.Message = a.Message
		return b == a
	})
}

// Sentence makes a sentence of an error's text.
func Sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
