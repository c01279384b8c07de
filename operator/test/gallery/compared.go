package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/bundle"
	"assay.dev/assay/operator/internal/analysis/report/plot"
	"assay.dev/assay/operator/internal/results"
)

// figureBlock is a figure in a page of comparisons: it names a bundle and a plot.
var figureBlock = regexp.MustCompile(`(?s)(<!-- figure: (\S+) (\S+) -->\n).*?(<!-- end of figure -->\n)`)

// compared returns a page with the figures of the bundles, and the files that it shows, by name.
// Text outside of the blocks stays as it is.
func compared(experiments, page string) (text string, files map[string][]byte, err error) {
	files = map[string][]byte{}
	blocks := 0
	text = figureBlock.ReplaceAllStringFunc(page, func(block string) string {
		m := figureBlock.FindStringSubmatch(block)
		blocks++
		body, failed := figure(experiments, m[2], m[3], files)
		if failed != nil && err == nil {
			err = fmt.Errorf("%s %s: %w", m[2], m[3], failed)
		}
		return m[1] + body + m[4]
	})
	if blocks == 0 && err == nil {
		err = errors.New("the page has no figure")
	}
	return text, files, err
}

// figure draws a figure of a bundle and of its source, with a table that says how each is drawn.
func figure(experiments, name, drawn string, files map[string][]byte) (string, error) {
	folder, of, _ := strings.Cut(name, "/")
	data, err := os.ReadFile(filepath.Join(experiments, folder, "evidence", of+".tar.zst"))
	if err != nil {
		return "", err
	}
	e, err := bundle.Read(data, func(results.Trial) {})
	if err != nil {
		return "", err
	}
	pairs, err := plot.SideBySide(e)
	if err != nil {
		return "", err
	}
	var names []string
	for _, p := range pairs {
		if p.Ours.Name != drawn+"-ours" {
			names = append(names, strings.TrimSuffix(p.Ours.Name, "-ours"))
			continue
		}
		prefix := folder + "-" + of + "-"
		files[prefix+p.Paper.Name+".svg"], files[prefix+p.Ours.Name+".svg"] = p.Paper.SVG, p.Ours.SVG
		b := &strings.Builder{}
		fmt.Fprintf(b, "| %s | [%s](../../experiments/%s/evidence/%s.txt): %s |\n|---|---|\n", cell(p.Source), name, folder, of, cell(strings.TrimSuffix(p.Caption, ".")))
		fmt.Fprintf(b, "| ![%s, the source's numbers](../pictures/compared/%s%s.svg) | ![%s, ours](../pictures/compared/%s%s.svg) |\n",
			cell(p.Paper.Title), prefix, p.Paper.Name, cell(p.Ours.Title), prefix, p.Ours.Name)
		b.WriteString("\n| form | source | ours |\n|---|---|---|\n")
		for _, row := range p.Form {
			fmt.Fprintf(b, "| %s | %s | %s |\n", cell(row[0]), cell(row[1]), cell(row[2]))
		}
		return b.String(), nil
	}
	return "", fmt.Errorf("the bundle has no such plot with numbers of the source, but: %s", strings.Join(names, ", "))
}

// compare renews a page and the pictures below it.
func compare(experiments, path string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, files, err := compared(experiments, string(page))
	if err != nil {
		return err
	}
	folder := filepath.Join(filepath.Dir(path), "..", "pictures", "compared")
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(path, []byte(text), 0o600)
}
