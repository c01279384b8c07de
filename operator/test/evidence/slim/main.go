// Command slim makes bundles slim: BUNDLE.tar.gz becomes BUNDLE.tar.zst, as kubectl assay bundle
// writes it today. The program zstd must be installed. It takes minutes for what our writer does in
// a second, and about a tenth of the bytes less.
//
// usage: slim BUNDLE...
//
// The new bundle lacks the files that are made from its other files. The files that list them
// (SHA256SUMS, ro-crate-metadata.json) and the README, which names them, change. All other files
// stay as they are, byte by byte.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
		fmt.Fprintln(os.Stderr, "usage: slim BUNDLE...")
		os.Exit(1)
	}
}

func slimFile(name string) error {
	stem, form := archive.Cut(name)
	if form == nil {
		return errors.New("not the name of a bundle")
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	slimmed, err := slim(data)
	if err != nil {
		return err
	}
	if slimmed, err = packed(slimmed); err != nil {
		return err
	}
	to := stem + archive.Zstd.Ending()
	fmt.Printf("%s: %d bytes of %d\n", to, len(slimmed), len(data))
	if err := os.WriteFile(to, slimmed, 0o644); err != nil || to == name { // #nosec G306 -- a file of the repository
		return err
	}
	return os.Remove(name)
}

// packed is a .tar.zst file with the same tar file, which the program zstd has compressed as well
// as it can. Our readers accept this window.
func packed(data []byte) ([]byte, error) {
	var errs, out bytes.Buffer
	unzip := exec.Command("zstd", "-q", "-d", "-c")
	unzip.Stdin, unzip.Stderr = bytes.NewReader(data), &errs
	text, err := unzip.Output()
	if err != nil {
		return nil, fmt.Errorf("zstd: %w: %s", err, errs.String())
	}
	zip := exec.Command("zstd", "-q", "--ultra", "-22", "--long=26", "-c")
	zip.Stdin, zip.Stdout, zip.Stderr = bytes.NewReader(text), &out, &errs
	if err := zip.Run(); err != nil {
		return nil, fmt.Errorf("zstd: %w: %s", err, errs.String())
	}
	return out.Bytes(), nil
}

// slim returns a bundle in the slim form.
func slim(data []byte) ([]byte, error) {
	text, err := archive.Unzip(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	first, err := tar.NewReader(text).Next()
	if err := errors.Join(err, text.Close()); err != nil {
		return nil, fmt.Errorf("not a bundle: %w", err)
	}
	folder, _, _ := strings.Cut(first.Name, "/")
	var out bytes.Buffer
	w, err := archive.NewWriter(&out, archive.Zstd, folder, first.ModTime)
	if err != nil {
		return nil, err
	}
	changed := false
	err = archive.Read(bytes.NewReader(data), func(string) bool { return true }, func(name string, file []byte) error {
		switch {
		case bundle.IsMade(name):
			changed = true
			return nil
		case name == "README.md":
			file = []byte(bundle.WithoutMade(string(file)))
		case name == bundle.CrateFile && changed:
			var err error
			if file, err = slimCrate(file, w.Entries()); err != nil {
				return err
			}
		}
		return w.Add(name, file)
	})
	if err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// slimCrate removes the entities of files that are left out, and all references to them, from the
// metadata. It updates the entities of changed files.
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

// without is a JSON value. It removes the objects about files that are left out from every list.
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
			return ok && bundle.IsMade(id)
		})
		for i := range value {
			value[i] = without(value[i])
		}
		return value
	}
	return value
}
