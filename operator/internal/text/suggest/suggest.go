// Package suggest finds the known name that an author probably meant by an unknown one. It is pure.
package suggest

import (
	"fmt"
	"slices"
	"strings"
)

// Nearest returns the known name that is nearest to name. At most a third of the letters, and at
// most three, may be wrong. If several names are equally near, it returns the first. If none is
// near, it returns the empty string.
func Nearest(name string, known []string) string {
	best, bestDistance := "", min(3, len(name)/3)+1
	for _, k := range known {
		if strings.EqualFold(k, name) {
			return k
		}
		if d := editDistance(strings.ToLower(name), strings.ToLower(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// editDistance is Levenshtein's: the least number of letters to insert, remove or replace.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := diagonal
			if a[i-1] != b[j-1] {
				replace++
			}
			diagonal = row[j]
			row[j] = min(replace, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

// Unknown says that no thing has this name. It adds the probable name and all known names.
func Unknown(what, name string, known []string) string {
	known = slices.Clone(known)
	slices.Sort(known)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q", what, name)
	if near := Nearest(name, known); near != "" {
		fmt.Fprintf(&b, "; did you mean %q?", near)
	}
	if len(known) == 0 {
		b.WriteString("; there are none")
		return b.String()
	}
	fmt.Fprintf(&b, "; there are: %s", strings.Join(known, ", "))
	return b.String()
}
