package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const experiments = "../../../experiments"

// The page has every bundle of the repository, each claim's word, and only pictures that exist.
func TestGalleryHasAllEvidence(t *testing.T) {
	out := t.TempDir()
	if err := write(experiments, out); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(out, "gallery.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	all, err := read(experiments)
	if err != nil {
		t.Fatal(err)
	}
	bundles := 0
	for _, v := range all {
		if len(v.experiments) == 0 {
			t.Errorf("%s has no evidence", v.title)
		}
		for i, e := range v.experiments {
			bundles++
			_, own, found := strings.Cut(page, "\n### "+v.names[i]+"\n")
			if !found {
				t.Errorf("the page lacks %s", v.names[i])
				continue
			}
			own, _, _ = strings.Cut(own, "\n### ")
			for _, c := range e.Claims {
				if !strings.Contains(own, "**"+c.Verdict+"**") || !strings.Contains(own, cell(c.Statement)) {
					t.Errorf("%s lacks the claim %s, %s", v.names[i], c.Name, c.Verdict)
				}
			}
		}
	}
	if bundles < 40 {
		t.Errorf("%d bundles, where the repository had 43", bundles)
	}
	pictures := regexp.MustCompile(`!\[[^\]]*\]\((gallery/[^)#]+)#only-(light|dark)\)`).FindAllStringSubmatch(page, -1)
	if len(pictures) < 2*bundles {
		t.Errorf("%d pictures of %d bundles", len(pictures), bundles)
	}
	seen := map[string]bool{}
	for _, p := range pictures {
		if seen[p[1]] {
			t.Errorf("%s is the picture of two", p[1])
		}
		seen[p[1]] = true
		svg, err := os.ReadFile(filepath.Join(out, p[1]))
		if err != nil {
			t.Error(err)
		}
		if dark := !strings.Contains(string(svg), `fill="#fff"/>`); dark != (p[2] == "dark") {
			t.Errorf("%s is on dark paper: %v", p[0], dark)
		}
	}
}

// Evidence in a new folder makes the test fail until the page has it.
func TestGalleryRefusesUnknownFolders(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "new", "evidence"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "new", "evidence", "a.tar.zst"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(dir, t.TempDir()); err == nil || !strings.Contains(err.Error(), "name its folder") {
		t.Errorf("got %v", err)
	}
}
