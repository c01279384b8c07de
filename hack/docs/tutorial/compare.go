package main

import (
	"fmt"
	"regexp"
	"strings"
)

// number is a number with its sign, or a duration: 1m2.5s is one.
var number = regexp.MustCompile(`[-+]?(\d+(\.\d+)?(h|ms|us|m|s))+\b|[-+]?\d+([.,]\d+)*(e[-+]?\d+)?`)

// unit of a time or a share, which changes with the number.
var unit = regexp.MustCompile(`^(us|ms|s|min|h)([.,;:)\]]*)$`)

// given matches the random part of a name that Assay makes: the names of a try, and of the trials
// of an experiment.
var given = regexp.MustCompile(`(-try)-[a-z0-9]{4}\b|()-[0-9a-f]{4}(?:-\d+\b)`)

// words of a text. A number becomes a "#". Line breaks and the widths of columns depend on the
// numbers, and are removed, too.
func words(text string) []string {
	var all []string
	for _, w := range strings.Fields(text) {
		if strings.Trim(w, "-=─━│|+") == "" && len(w) > 1 {
			continue // a rule of a table is as wide as its numbers
		}
		w = number.ReplaceAllString(given.ReplaceAllString(w, "$1-#"), "#")
		if m := unit.FindStringSubmatch(w); m != nil && len(all) > 0 && strings.HasSuffix(all[len(all)-1], "#") {
			w = "TIME" + m[2]
		}
		all = append(all, w)
	}
	return all
}

// gap in a page stands for any words.
const gap = "..."

// differs says where a command's output differs from the page. It is empty if they match. Numbers
// are left out, and gaps stand for any text.
func differs(want, got string) string {
	have := words(got)
	at := 0
	floating := false // the next part may begin anywhere
	for _, p := range parts(want) {
		if p == nil {
			floating = true
			continue
		}
		i, best := find(have, p, at, floating)
		if i < 0 {
			begin := max(0, best-6)
			return fmt.Sprintf("the page has %q, and the command printed %q", strings.Join(p, " "), strings.Join(have[min(begin, len(have)):min(len(have), best+len(p))], " "))
		}
		at, floating = i+len(p), false
	}
	if !floating && at < len(have) {
		return fmt.Sprintf("the page ends, and the command goes on with %q", strings.Join(have[at:min(len(have), at+12)], " "))
	}
	return ""
}

// parts splits the output in a page at its gaps. A nil part is a gap.
func parts(want string) [][]string {
	var all [][]string
	open := false
	for _, w := range words(want) {
		switch {
		case w == gap:
			all, open = append(all, nil), false
		case !open:
			all, open = append(all, []string{w}), true
		default:
			all[len(all)-1] = append(all[len(all)-1], w)
		}
	}
	return all
}

// find returns where p is in have, from at on. If it is not there, find returns -1 and the place
// with the longest match.
func find(have, p []string, at int, floating bool) (int, int) {
	best, most := at, -1
	for i := at; i <= len(have); i++ {
		n := 0
		for n < len(p) && i+n < len(have) && have[i+n] == p[n] {
			n++
		}
		if n == len(p) {
			return i, i
		}
		if n > most {
			best, most = i, n
		}
		if !floating {
			break
		}
	}
	return -1, best
}
