// Package suggest finds the name that somebody probably meant who wrote one that does not exist. It is pure.
package suggest

import "strings"

// Nearest returns the known name that a typo would turn into name: at most a third of its letters, and at most three, are wrong. Of several it is the first
// with the fewest; empty when there is none.
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
