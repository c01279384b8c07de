package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var excerpt = regexp.MustCompile("(?s)\n<!-- excerpt: (\\S+) -->\n```[a-z]*\n(.*?\n)```\n")

// A block that is marked as an excerpt of a file has only lines of that file, in its order. A row
// may be cut off at its end.
func TestExcerptsAreOfTheirFiles(t *testing.T) {
	found := 0
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range excerpt.FindAllStringSubmatch(string(text), -1) {
			found++
			source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m[1])))
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			rest := "\n" + string(source)
			for line := range strings.Lines(m[2]) {
				line = strings.TrimRight(line, " \n")
				if line == "" || line == "..." {
					continue
				}
				i := strings.Index(rest, "\n"+line)
				if i < 0 {
					t.Errorf("%s: %s does not have this line, or not after the one before it: %q", file, m[1], line)
					continue
				}
				rest = rest[i+1:]
			}
		}
	}
	if found == 0 {
		t.Error("no document has an excerpt; README.md has one")
	}
}
