package model

import (
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/results"
)

// At writes coordinates in the order of the axes.
func At(axes []results.Axis, coordinates map[string]string) string {
	var parts []string
	for _, a := range axes {
		if value, ok := coordinates[a.Name]; ok { // else it tells rows of a script apart
			parts = append(parts, a.Name+"="+value)
		}
	}
	return strings.Join(parts, ", ")
}

// Count writes n things.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
