package main

import (
	"fmt"
	"io"
	"strings"
)

// namespaceObject comes first in what is applied without Helm, which would make the namespace.
const namespaceObject = `---
apiVersion: v1
kind: Namespace
metadata:
  name: assay-system
`

// ofHelm are lines that say who keeps an object. Where no Helm is, they would be wrong.
var ofHelm = []string{"# Source: ", "helm.sh/chart: ", "helm.sh/resource-policy: ", "app.kubernetes.io/managed-by: Helm"}

// plain copies what `helm template --no-hooks` printed, without the lines that name Helm. It keeps
// all other lines as they are: a decoded number would not come back as it was written. It fails
// where a line names Helm that it does not know.
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

// namesHelm reports whether a line says only what Helm needs.
func namesHelm(line string) bool {
	for _, of := range ofHelm {
		if strings.HasPrefix(strings.TrimSpace(line), of) {
			return true
		}
	}
	return false
}
