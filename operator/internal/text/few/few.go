// Package few names a few of many, for messages that must stay short.
package few

import (
	"fmt"
	"strings"
)

// most that are named; the others are counted.
const most = 3

// Names joins a few names with commas.
func Names(names []string) string { return Of(names, ", ") }

// Of is Names with another separator. It says how many more there are.
func Of(list []string, separator string) string {
	if len(list) <= most {
		return strings.Join(list, separator)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], separator), len(list)-most)
}
