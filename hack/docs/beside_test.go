package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// It matches the rows of a table that lists files.
	fileTable = regexp.MustCompile(`(?m)^\| *[Ff]iles? *\|.*\n\|[-| :]+\|\n((?:\|.*\n?)+)`)
	script    = regexp.MustCompile(`^[A-Za-z0-9_./-]+\.(sh|py)$`)
)

// besides are the files that a README says to be in its folder: those in the first column of a
// table of files, and scripts anywhere in the text.
func besides(text string) (found []string) {
	for _, m := range fileTable.FindAllStringSubmatch(text, -1) {
		for row := range strings.Lines(m[1]) {
			cells := strings.Split(row, "|")
			found = append(found, spans(cells[1])...)
		}
	}
	for _, s := range spans(text) {
		if script.MatchString(s) {
			found = append(found, s)
		}
	}
	return found
}

// missing are the names without a file or folder. A name is a path from the folder or from the
// repository's root, or the base of a file anywhere below the folder.
func missing(t *testing.T, repository, folder string, names []string) (found []string) {
	t.Helper()
	below := map[string]bool{}
	err := filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			below[d.Name()] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		there := below[name]
		for _, from := range []string{folder, repository} {
			_, err := os.Stat(filepath.Join(from, filepath.FromSlash(name)))
			there = there || err == nil
		}
		if !there {
			found = append(found, name)
		}
	}
	return found
}

// The READMEs of systems name no missing file, such as a build.sh that was removed.
func TestReadmesOfSystemsNameFilesThatExist(t *testing.T) {
	readmes, err := filepath.Glob(filepath.Join(root, "systems/*/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, file := range readmes {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		names := besides(string(text))
		looked += len(names)
		for _, name := range missing(t, root, filepath.Dir(file), names) {
			t.Errorf("%s: there is no %s", strings.TrimPrefix(file, root+"/"), name)
		}
	}
	if looked < 20 {
		t.Errorf("%d names of files were looked at; the READMEs have more", looked)
	}
}

func TestMissingFilesOfAReadmeAreFound(t *testing.T) {
	repository := t.TempDir()
	folder := filepath.Join(repository, "systems", "kv")
	for _, name := range []string{"hack/all.sh", "systems/kv/images.txt", "systems/kv/internal/message/generate.sh"} {
		path := filepath.Join(repository, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct{ text, want string }{
		"a table":                    {"| file | does |\n|---|---|\n| `build.sh` | builds |\n| `images.txt` | lists |\n", "build.sh build.sh"},
		"two files of a row":         {"| file | is |\n|---|---|\n| `pom.xml`, `images.txt` | versions |\n", "pom.xml"},
		"the second column":          {"| file | is |\n|---|---|\n| `images.txt` | of `assay/kv` |\n", ""},
		"a script in the text":       {"Then `load.sh` does it.\n", "load.sh"},
		"a script from the root":     {"Then `hack/all.sh` does it.\n", ""},
		"a script deep below":        {"The code that `generate.sh` makes.\n", ""},
		"a folder":                   {"| file | does |\n|---|---|\n| `internal/message` | the schema |\n", ""},
		"another table":              {"| what | is |\n|---|---|\n| `build` | a word |\n", ""},
		"no script but an argument":  {"Run `go run x.sh now`.\n", ""},
		"a block of code is no name": {"```\nmissing.sh\n```\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(missing(t, repository, folder, besides(tc.text)), " "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
