//go:build browser

// Package site opens the static site of the documents in a real browser.
package site

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/testkit/testbrowser"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

const patience = time.Minute

// built is the site. The first test that needs it builds it.
var built = sync.OnceValues(func() (root string, err error) {
	if root, err = testenv.Root(); err != nil {
		return "", err
	}
	if out, err := exec.Command(filepath.Join(root, "hack", "docs", "site", "site.sh")).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the site: %w\n%s", err, out)
	}
	return root, nil
})

// A reader finds a page by a word, in light and dark, without files from another host. The browser
// of this test reaches only this machine.
func TestSiteInABrowser(t *testing.T) {
	root, err := built()
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(root, ".work", "docs", "site"))))
	defer web.Close()
	b := testbrowser.Open(t, 5*time.Minute, patience)
	b.Go(web.URL + "/index.html")
	b.Until("the first page", `document.querySelector("h1")?.textContent.includes("Assay") && [...document.querySelectorAll("article img")].every(i => { i.scrollIntoView(); return i.complete && i.getBoundingClientRect().height > 100; })`)
	b.Text(`(() => { const s = document.createElement("style"); s.textContent = "* { transition: none !important; animation: none !important; }"; document.head.append(s); scrollTo(0, 0); return ""; })()`)
	b.Picture("site-light")
	b.Until("the dark colors", `(() => { for (let i = 0; i < 3 && document.body.dataset.mdColorScheme !== "slate"; i++) document.querySelector('[data-md-component="palette"] label:not([hidden])').click(); return document.body.dataset.mdColorScheme === "slate"; })()`)
	b.Picture("site-dark")
	b.Until("the search", `(() => { const i = document.querySelector('[data-md-component="search-query"]'); i.focus(); i.value = "placement"; i.dispatchEvent(new Event("input", {bubbles: true})); i.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true})); return document.querySelector(".md-search-result__item a"); })()`)
	b.Picture("site-search")
	if from := b.Text(`performance.getEntriesByType("resource").map(e => e.name).filter(n => !n.startsWith(location.origin) && !n.startsWith("data:")).join(" ")`); from != "" {
		t.Errorf("the page loads %s", from)
	}
}

// A link to a missing page fails the build, and so does a link to a missing heading.
func TestBrokenLinksFailTheSiteInABrowser(t *testing.T) {
	root, err := built()
	if err != nil {
		t.Fatal(err)
	}
	site := filepath.Join(root, "hack", "docs", "site")
	for name, link := range map[string]string{"a page": "[x](missing.md)", "a heading": "[x](docs/README.md#missing)", "something from elsewhere": "![x](https://example.org/x.png)"} {
		t.Run(name, func(t *testing.T) {
			tree := t.TempDir()
			for file, text := range map[string]string{"README.md": "# A\n\n" + link + "\n", "docs/README.md": "# B\n\n## C\n\n[a](../README.md)\n"} {
				path := filepath.Join(tree, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if out, err := exec.CommandContext(t.Context(), "git", "-C", tree, "init", "-q").CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			out, err := exec.CommandContext(t.Context(), filepath.Join(root, ".work", "docs", "venv", "bin", "python"), filepath.Join(site, "build.py"), tree, filepath.Join(tree, "out")).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "missing") && !strings.Contains(string(out), "example.org") {
				t.Errorf("the site is built: %v\n%s", err, out)
			}
		})
	}
}
