// Command slim removes pixel pictures from bundles. Until November 2026 bundles had them beside the
// same plots as SVG.
//
// usage: slim BUNDLE.tar.gz...
//
// A bundle without them stays as it is, byte by byte. In other bundles, only the files that list
// them (SHA256SUMS, ro-crate-metadata.json) and the README, which names them, change.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/analysis/report/bundle"
)

func main() {
	failed := false
	for _, name := range os.Args[1:] {
		if err := slimFile(name); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			failed = true
		}
	}
	if failed || len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: slim BUNDLE.tar.gz...")
		os.Exit(1)
	}
}

func slimFile(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	slimmed, err := slim(data)
	if err != nil || bytes.Equal(slimmed, data) {
		return err
	}
	fmt.Printf("%s: %d bytes of %d\n", name, len(slimmed), len(data))
	return os.WriteFile(name, slimmed, 0o644) // #nosec G306 -- a file of the repository
}

// drawn reports whether a file of a bundle is a pixel picture of another file.
func drawn(name string) bool { return strings.HasPrefix(name, "plots/") && path.Ext(name) == ".png" }

// slim returns the bundle without pixel pictures. It returns the same bytes if the bundle has none.
func slim(data []byte) ([]byte, error) {
	gz, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("not a bundle: %w", err)
	}
	first, err := tar.NewReader(gz).Next()
	if err != nil {
		return nil, fmt.Errorf("not a bundle: %w", err)
	}
	folder, _, _ := strings.Cut(first.Name, "/")
	var out bytes.Buffer
	w := archive.NewWriter(&out, folder, first.ModTime)
	found := false
	err = archive.Read(bytes.NewReader(data), func(string) bool { return true }, func(name string, file []byte) error {
		switch {
		case drawn(name):
			found = true
			return nil
		case name == bundle.CrateFile:
			var err error
			if file, err = slimCrate(file, w.Entries()); err != nil {
				return err
			}
		case name == "README.md":
			file = bytes.Replace(file, []byte("plots/*.svg, plots/*.png"), []byte("plots/*.svg"), 1)
		}
		return w.Add(name, file)
	})
	if err != nil || !found {
		return data, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// slimCrate removes the entities of pixel pictures, and all references to them, from the metadata.
// It updates the entities of changed files.
func slimCrate(file []byte, entries []archive.Entry) ([]byte, error) {
	var crate map[string]any
	if err := json.Unmarshal(file, &crate); err != nil {
		return nil, fmt.Errorf("%s: %w", bundle.CrateFile, err)
	}
	without(crate)
	graph, _ := crate["@graph"].([]any)
	for _, e := range graph {
		of, _ := e.(map[string]any)
		i := slices.IndexFunc(entries, func(e archive.Entry) bool { return e.Name == of["@id"] })
		if _, ok := of["sha256"]; ok && i >= 0 {
			of["sha256"], of["contentSize"] = entries[i].SHA256, strconv.FormatInt(entries[i].Size, 10)
		}
	}
	b, err := json.MarshalIndent(crate, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", bundle.CrateFile, err)
	}
	return append(b, '\n'), nil
}

// without is a JSON value. It removes the objects about pixel pictures from every list.
func without(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			value[key] = without(v)
		}
	case []any:
		value = slices.DeleteFunc(value, func(v any) bool {
			of, ok := v.(map[string]any)
			id, _ := of["@id"].(string)
			return ok && drawn(id)
		})
		for i := range value {
			value[i] = without(value[i])
		}
		return value
	}
	return value
}
