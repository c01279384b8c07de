// Package benchmarks has the field results of a System for well-known benchmark programs as its
// client. The same texts are in docs/guide/benchmarks.md, with the flags of each program. Tests
// read an output of each.
package benchmarks

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed recipes/*.yaml
var recipes embed.FS

// Names of the programs, sorted.
func Names() []string {
	files, err := fs.ReadDir(recipes, "recipes")
	if err != nil {
		return nil // the folder is part of the program
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	return names
}

// Results is the YAML of a program: a document whose only member is results. False: there is none.
func Results(name string) (string, bool) {
	text, err := recipes.ReadFile(path.Join("recipes", name+".yaml"))
	return string(text), err == nil
}
