// Command release writes the files of a release besides its programs: the checksums of all files,
// and the plugin's manifest for krew.
//
//	release -dir DIR -version v0.2.0 -url https://example.org/releases/v0.2.0 -krew .krew.yaml
//
// It writes into DIR
//
//	checksums.txt    SHA-256 of every file, as sha256sum -c reads it
//	assay.yaml       the manifest, with the address and checksum of each archive
//	checksums.txt.sig  with -key FILE: their signature by that private key; -new-key FILE makes one
//
// It also converts the chart's objects for kubectl apply -f and for kustomize:
//
//	helm template assay CHART --no-hooks | release -plain [-namespace]
//
// prints them without the lines that name Helm; with -namespace, the namespace comes first.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

const (
	checksums = "checksums.txt"
	manifest  = "assay.yaml"
)

func main() {
	dir := flag.String("dir", "", "directory with the files of the release")
	version := flag.String("version", "", "version, as v0.2.0")
	url := flag.String("url", "", "address of the directory where the files will be")
	krew := flag.String("krew", ".krew.yaml", "template of the manifest")
	key := flag.String("key", "", "private key (PEM) to sign the checksums with; empty: they are not signed")
	newKey := flag.String("new-key", "", "write a private key to this file, and the public one beside it with the ending .pub; do nothing else")
	objects := flag.Bool("plain", false, "read what helm template prints, and print it without Helm's labels")
	namespace := flag.Bool("namespace", false, "with -plain: print the namespace assay-system first")
	flag.Parse()
	if err := do(*newKey, *objects, *namespace, func() error {
		if err := run(*dir, *version, *url, *krew); err != nil || *key == "" {
			return err
		}
		return sign(*dir, *key)
	}); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// do one of the three tasks of the program.
func do(newKey string, objects, namespace bool, release func() error) error {
	switch {
	case newKey != "":
		return makeKey(newKey)
	case objects:
		if namespace {
			fmt.Print(namespaceObject)
		}
		return plain(os.Stdin, os.Stdout)
	}
	return release()
}

// archive is an archive of the plugin.
type archive struct{ OS, Arch, URL, SHA256 string }

var archiveName = regexp.MustCompile(`^kubectl-assay-([a-z]+)-([a-z0-9]+)\.tar\.gz$`)

func run(dir, version, url, krew string) error {
	sums, err := sumsOf(dir)
	if err != nil {
		return err
	}
	var archives []archive
	for _, name := range sortedNames(sums) {
		if m := archiveName.FindStringSubmatch(name); m != nil {
			archives = append(archives, archive{OS: m[1], Arch: m[2], URL: strings.TrimSuffix(url, "/") + "/" + name, SHA256: sums[name]})
		}
	}
	if len(archives) == 0 {
		return fmt.Errorf("%s has no archive of the plugin", dir)
	}
	text, err := os.ReadFile(krew) // #nosec G304 -- the caller names it
	if err != nil {
		return err
	}
	t, err := template.New(krew).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(dir, manifest)) // #nosec G304 -- as above
	if err != nil {
		return err
	}
	err = t.Execute(out, struct {
		Version  string
		Archives []archive
	}{version, archives})
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	if sums, err = sumsOf(dir); err != nil { // the checksums include the manifest
		return err
	}
	var lines strings.Builder
	for _, name := range sortedNames(sums) {
		fmt.Fprintf(&lines, "%s  %s\n", sums[name], name)
	}
	return os.WriteFile(filepath.Join(dir, checksums), []byte(lines.String()), 0o644) // #nosec G306 -- for everybody
}

func sortedNames(sums map[string]string) []string {
	var names []string
	for name := range sums {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// sumsOf returns the SHA-256 sums of the files in a directory, by name.
func sumsOf(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for _, e := range entries {
		if e.IsDir() || e.Name() == checksums || e.Name() == signature {
			continue
		}
		f, err := os.Open(filepath.Join(dir, e.Name())) // #nosec G304 -- a file of the directory
		if err != nil {
			return nil, err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		sums[e.Name()] = hex.EncodeToString(h.Sum(nil))
	}
	return sums, nil
}
