package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"sort"
	"strings"
)

// content is one binary of an image, or a tree of Debian packages.
type content struct{ path, file string }

// packageList is the file in a tree that lists its packages, NAME=VERSION each.
const packageList = "usr/share/assay/packages"

// The parts of a CycloneDX 1.6 document that are used (https://cyclonedx.org/docs/1.6/json/). There
// is no time and no serial number in it: the same image has the same document.
type (
	bom struct {
		BomFormat    string       `json:"bomFormat"`
		SpecVersion  string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version,omitempty"`
		Purl       string     `json:"purl,omitempty"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn,omitempty"`
	}
)

// writeSBOM writes what is in an image: its binaries, the modules that the Go linker has noted in
// each, and Debian packages. Nothing else is in our images.
func writeSBOM(file, image, digest string, contents []content) error {
	doc, err := newBOM(image, digest, contents)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

func newBOM(image, digest string, contents []content) (*bom, error) {
	root := component{Type: "container", Ref: image, Name: image, Version: digest}
	doc := &bom{BomFormat: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{Component: root}}
	modules := map[string]component{}
	all := dependency{Ref: root.Ref}
	for _, c := range contents {
		if info, err := os.Stat(c.file); err == nil && info.IsDir() {
			debs, err := debianPackages(c.file)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.path, err)
			}
			for _, deb := range debs {
				doc.Components = append(doc.Components, deb)
				all.DependsOn = append(all.DependsOn, deb.Ref)
			}
			continue
		}
		app, uses, err := application(c, modules)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.path, err)
		}
		doc.Components = append(doc.Components, app)
		doc.Dependencies = append(doc.Dependencies, uses)
		all.DependsOn = append(all.DependsOn, app.Ref)
	}
	doc.Dependencies = append(doc.Dependencies, all)
	var refs []string
	for ref := range modules {
		refs = append(refs, ref)
	}
	sort.Strings(refs)
	for _, ref := range refs {
		doc.Components = append(doc.Components, modules[ref])
	}
	return doc, nil
}

// application describes one binary and adds its modules to those that are known.
func application(c content, modules map[string]component) (component, dependency, error) {
	info, err := buildinfo.ReadFile(c.file)
	if err != nil {
		return component{}, dependency{}, err
	}
	sum, err := sha256Of(c.file)
	if err != nil {
		return component{}, dependency{}, err
	}
	app := component{Type: "application", Ref: "file:" + c.path, Name: c.path, Hashes: []hash{{"SHA-256", sum}},
		Properties: []property{{"assay:package", info.Path}}}
	uses := dependency{Ref: app.Ref}
	for _, m := range append([]*debug.Module{&info.Main, {Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}}, info.Deps...) {
		if m.Replace != nil {
			m = m.Replace
		}
		lib := library(m)
		modules[lib.Ref] = lib
		uses.DependsOn = append(uses.DependsOn, lib.Ref)
	}
	sort.Strings(uses.DependsOn)
	return app, uses, nil
}

// debianPackages are the packages that a tree was made of.
func debianPackages(tree string) ([]component, error) {
	text, err := os.ReadFile(filepath.Join(tree, packageList))
	if err != nil {
		return nil, err
	}
	var debs []component
	for _, line := range strings.Fields(string(text)) {
		name, version, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("%s: %q is not NAME=VERSION", packageList, line)
		}
		purl := "pkg:deb/debian/" + name + "@" + url.PathEscape(version)
		debs = append(debs, component{Type: "library", Ref: purl, Name: name, Version: version, Purl: purl})
	}
	return debs, nil
}

func library(m *debug.Module) component {
	version := m.Version
	if version == "(devel)" {
		version = "" // built from sources that have no version
	}
	purl := "pkg:golang/" + m.Path
	if version != "" {
		purl += "@" + version
	}
	c := component{Type: "library", Ref: purl, Name: m.Path, Version: version, Purl: purl}
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}

func sha256Of(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
