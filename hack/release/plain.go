package main

import (
	"fmt"
	"io"
	"strings"
)

// namespaceObject comes first in objects for use without Helm. Otherwise Helm would make the
// namespace.
const namespaceObject = `---
apiVersion: v1
kind: Namespace
metadata:
  name: assay-system
`

// ofHelm are lines that name the owner of an object. Without Helm, they would be wrong.
var ofHelm = []string{"# Source: ", "helm.sh/chart: ", "helm.sh/resource-policy: ", "app.kubernetes.io/managed-by: Helm"}

// plain copies the output of `helm template --no-hooks` without the lines that name Helm. It keeps
// all other lines as they are: decoding could change numbers. It fails at an unknown line that
// names Helm.
func plain(in io.Reader, out io.Writer) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read what helm printed: %w", err)
	}
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		if namesHelm(line) {
			continue
		}
		if strings.Contains(line, "helm.sh/") {
			return fmt.Errorf("the chart says %q, which means nothing without Helm: leave it out in hack/release/plain.go, or keep it from being rendered", strings.TrimSpace(line))
		}
		kept.WriteString(line)
	}
	_, err = io.WriteString(out, kept.String())
	return err
}

// namesHelm reports whether only Helm needs a line.
func namesHelm(line string) bool {
	for _, of := range ofHelm {
		if strings.HasPrefix(strings.TrimSpace(line), of) {
			return true
		}
	}
	return false
}
