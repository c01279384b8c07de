package plan

import (
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/suggest"
)

// unknownName says that there is no thing of that name, which one was probably meant, and which there are.
func unknownName(what, name string, known []string) string {
	known = slices.Clone(known)
	slices.Sort(known)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q", what, name)
	if near := suggest.Nearest(name, known); near != "" {
		fmt.Fprintf(&b, "; did you mean %q?", near)
	}
	if len(known) == 0 {
		b.WriteString("; there are none")
		return b.String()
	}
	fmt.Fprintf(&b, "; there are: %s", strings.Join(known, ", "))
	return b.String()
}
