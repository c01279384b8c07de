// Package few shortens lists in messages: it names a few items and counts the others.
package few

import (
	"fmt"
	"strings"
)

// most is how many are named. The others are counted.
const most = 3

// Names joins a few names with commas, and counts the others.
func Names(names []string) string { return Of(names, ", ") }

// Of is Names with another separator.
func Of(list []string, separator string) string {
	if len(list) <= most {
		return strings.Join(list, separator)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], separator), len(list)-most)
}
