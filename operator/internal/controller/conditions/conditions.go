// Package conditions writes the messages of status conditions.
package conditions

import "strings"

// MaxMessage is the most bytes that the message of a condition may take. What is longer is in the
// results.
const MaxMessage = 1024

const ellipsis = "..."

// Truncate returns at most the given number of bytes of a text, and marks what it cuts. It never
// cuts a character in two: messages carry what processes print.
func Truncate(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}

// Sentence makes a sentence of an error's text.
func Sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
