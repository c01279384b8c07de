package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test that the page of over-claims names exists.
func TestOverClaimsNameTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/design/review-2026-11-verdicts.md"))
	if err != nil {
		t.Fatal(err)
	}
	exist := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for file, text := range sources(t) {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range declared.FindAllStringSubmatch(text, -1) {
			exist[m[1]] = true
		}
	}
	rows := regexp.MustCompile(`(?m)^\| (O\d+) \|.*\|$`).FindAllStringSubmatch(string(page), -1)
	if len(rows) != 15 {
		t.Errorf("the page has %d findings, want 15", len(rows))
	}
	for _, row := range rows {
		named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(row[0], -1)
		if len(named) == 0 {
			t.Errorf("%s names no test", row[1])
		}
		for _, n := range named {
			if !exist[n[1]] {
				t.Errorf("%s names %s, which does not exist", row[1], n[1])
			}
		}
	}
}
