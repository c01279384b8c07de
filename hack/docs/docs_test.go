// Package docs checks the documents of the repository; reference.sh beside it
// writes one of them.
package docs

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// documents returns every Markdown file of the repository.
func documents(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir // .git, .work
		}
		if strings.HasSuffix(path, ".md") {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	code    = regexp.MustCompile("(?ms)^```.*?\n```|`[^`\n]*`")
	// It matches the characters of a heading that its anchor leaves out.
	dropped = regexp.MustCompile(`[^\p{L}\p{N}\s_-]`)
)

func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		found[strings.ReplaceAll(strings.ToLower(dropped.ReplaceAllString(m[1], "")), " ", "-")] = true
	}
	return found
}

func TestLinksLeadSomewhere(t *testing.T) {
	headings := map[string]map[string]bool{} // by file
	for _, file := range documents(t) {
		t.Run(filepath.ToSlash(strings.TrimPrefix(file, root+"/")), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
				u, err := url.Parse(m[1])
				if err != nil || u.IsAbs() {
					if err != nil {
						t.Errorf("link %s: %v", m[1], err)
					}
					continue // other sites are not visited
				}
				target := file
				if u.Path != "" {
					target = filepath.Join(filepath.Dir(file), filepath.FromSlash(u.Path))
				}
				if _, err := os.Stat(target); err != nil {
					t.Errorf("link %s: there is no %s", m[1], target)
					continue
				}
				if u.Fragment == "" || !strings.HasSuffix(target, ".md") {
					continue
				}
				if headings[target] == nil {
					linked, err := os.ReadFile(target)
					if err != nil {
						t.Fatal(err)
					}
					headings[target] = anchors(string(linked))
				}
				if !headings[target][u.Fragment] {
					t.Errorf("link %s: %s has no such heading", m[1], target)
				}
			}
		})
	}
}

// target matches a call of make. make test-NAME stands for several targets, so it does not match.
var target = regexp.MustCompile(`make ((?:[A-Z_]+=\S+ )*)([a-z](?:[a-z0-9-]*[a-z0-9])?)(?:[^A-Za-z0-9-]|$)`)

// Documents name only make targets that exist.
func TestTargetsExist(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "hack/make/*.mk"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no hack/make/*.mk: %v", err)
	}
	rules := regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	known := map[string]bool{"help": true}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range rules.FindAllStringSubmatch(string(text), -1) {
			known[m[1]] = true
		}
	}
	commands := regexp.MustCompile("(?m)`[^`\n]+`|^    .*$")
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range commands.FindAllString(string(text), -1) {
			for _, m := range target.FindAllStringSubmatch(c, -1) {
				if !known[m[2]] {
					t.Errorf("%s says %q, which is no target", strings.TrimPrefix(file, root+"/"), m[0])
				}
			}
		}
	}
}

// row is a row of a table. A row that an editor has wrapped is not a row any more.
var row = regexp.MustCompile(`(?m)^\|.*$`)

// Every row of a table is one line: it ends with a bar, and holds no second row.
func TestRowsOfTablesAreWhole(t *testing.T) {
	looked := 0
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range row.FindAllString(code.ReplaceAllString(string(text), "x"), -1) {
			looked++
			if r = strings.TrimRight(r, " "); !strings.HasSuffix(r, "|") || strings.Contains(r, "| |--") {
				t.Errorf("%s: a broken row of a table: %s", strings.TrimPrefix(file, root+"/"), r)
			}
		}
	}
	if looked < 1000 {
		t.Errorf("%d rows were looked at; the documents have more", looked)
	}
}
