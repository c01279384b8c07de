// Command gallery writes a page of all evidence in the repository. For each bundle it shows what
// ran, its verdicts with a picture, the source's numbers beside the measured ones, and a plot. The
// site of the documents includes the page (hack/docs/site).
//
//	go run ./operator/test/gallery EXPERIMENTS OUT
//	go run ./operator/test/gallery -compared EXPERIMENTS docs/design/figures-compared.md
//
// The second form renews the figures of a page that compares figures with those of their sources.
//
// Inputs are the bundles EXPERIMENTS/*/evidence/*.tar.zst. Outputs are OUT/gallery.md and pictures
// in OUT/gallery/. People write only the names of the evaluations; the rest of the page is
// generated.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/bundle"
	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/analysis/report/plot"
	"assay.dev/assay/operator/internal/analysis/report/strip"
	"assay.dev/assay/operator/internal/results"
)

// evaluations are the folders of the evidence, in the order of the page.
var evaluations = []struct {
	title   string
	folders []string
}{
	{"Pesto and Basil", []string{"pesto", "basil"}},
	{"ELECT and DMTree", []string{"dmtree"}},
	{"HotStuff", []string{"hotstuff", "hotstuff-reference"}},
	{"Eiger-PORT", []string{"eiger-port"}},
	{"HATS", []string{"hats"}},
	{"Experiments of our own", []string{"etcd", "postgres", "cometbft"}},
}

// mostBeside rows of a table are shown before the rest is folded.
const mostBeside = 12

func main() {
	args, do := os.Args[1:], write
	if len(args) > 0 && args[0] == "-compared" {
		args, do = args[1:], compare
	}
	if len(args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gallery EXPERIMENTS OUT, or gallery -compared EXPERIMENTS PAGE")
		os.Exit(2)
	}
	if err := do(args[0], args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "gallery:", err)
		os.Exit(1)
	}
}

// shown is the evidence of one evaluation.
type shown struct {
	title       string
	experiments []results.Experiment
	names       []string // of the bundles, with their folders
	files       []string // the experiments' files, as the page links them; empty: unknown
}

func write(experiments, out string) error {
	if err := os.MkdirAll(filepath.Join(out, "gallery"), 0o750); err != nil {
		return err
	}
	all, err := read(experiments)
	if err != nil {
		return err
	}
	b := &strings.Builder{}
	b.WriteString("# Gallery of evidence\n\n" +
		"Every bundle in this repository: what ran in place of what the source measured, its verdicts, and the source's numbers beside the measured ones. " +
		"A program makes this page of the bundles, when the site is built. " +
		"What has a file and what has none is in [the catalogue](../experiments/README.md).\n\n" +
		ranOn(all) + "\n\n")
	b.WriteString("| evaluation | bundles | claims by verdict |\n|---|---:|---|\n")
	for _, v := range all {
		fmt.Fprintf(b, "| [%s](#%s) | %d | %s |\n", v.title, anchor(v.title), len(v.experiments), tally(v.experiments))
	}
	for _, v := range all {
		fmt.Fprintf(b, "\n## %s\n", v.title)
		for i, e := range v.experiments {
			if err := section(b, e, v.names[i], v.files[i], out); err != nil {
				return fmt.Errorf("%s: %w", v.names[i], err)
			}
		}
	}
	return os.WriteFile(filepath.Join(out, "gallery.md"), []byte(b.String()), 0o600)
}

// ranOn says which profiles and processors all of it ran on.
func ranOn(all []shown) string {
	profiles, processors := map[string]bool{}, map[string]bool{}
	for _, v := range all {
		for _, e := range v.experiments {
			profiles[cmp.Or(e.Profile, "none: the full evaluation")] = true
			if e.Provenance != nil {
				for _, cpu := range e.Provenance.CPUs {
					processors[cpu] = true
				}
			}
		}
	}
	list := func(set map[string]bool) string {
		return cell(cmp.Or(strings.Join(slices.Sorted(maps.Keys(set)), ", "), "not known"))
	}
	return fmt.Sprintf("Profiles: %s. Processors of the nodes: %s. What ran on two shared processors is no figure of performance.", list(profiles), list(processors))
}

func read(experiments string) ([]shown, error) {
	var all []shown
	known := map[string]bool{}
	for _, v := range evaluations {
		s := shown{title: v.title}
		for _, folder := range v.folders {
			bundles, err := filepath.Glob(filepath.Join(experiments, folder, "evidence", "*.tar.zst"))
			if err != nil {
				return nil, err
			}
			for _, path := range bundles {
				known[path] = true
				data, err := os.ReadFile(path)
				if err != nil {
					return nil, err
				}
				e, err := bundle.Read(data, func(results.Trial) {})
				if err != nil {
					return nil, fmt.Errorf("%s: %w", path, err)
				}
				s.experiments = append(s.experiments, e)
				name := strings.TrimSuffix(filepath.Base(path), ".tar.zst")
				s.names = append(s.names, folder+"/"+name)
				s.files = append(s.files, fileOf(experiments, folder, name))
			}
		}
		all = append(all, s)
	}
	every, err := filepath.Glob(filepath.Join(experiments, "*", "evidence", "*.tar.zst"))
	if err != nil {
		return nil, err
	}
	if len(every) == 0 {
		return nil, errors.New("there is no bundle")
	}
	for _, path := range every {
		if !known[path] {
			return nil, fmt.Errorf("the gallery knows no evaluation for %s: name its folder in operator/test/gallery", path)
		}
	}
	return all, nil
}

// fileOf is the file of the experiment with the name of the bundle, if there is one.
func fileOf(experiments, folder, name string) string {
	for _, file := range []string{filepath.Join(folder, name+".yaml"), name + ".yaml"} {
		if _, err := os.Stat(filepath.Join(experiments, file)); err == nil {
			return filepath.ToSlash(file)
		}
	}
	return ""
}

func section(b *strings.Builder, e results.Experiment, name, file, out string) error {
	fmt.Fprintf(b, "\n### %s\n\n", name)
	if title := e.Source["title"]; title != "" {
		fmt.Fprintf(b, "Source: %s.\n\n", strings.TrimSuffix(cell(title+", "+e.Source["section"]), ", "))
	}
	for _, fact := range document.WhatRan(e) {
		b.WriteString(cell(fact) + "\n\n")
	}
	if file != "" {
		fmt.Fprintf(b, "[%s](../experiments/%s)\n\n", file, file)
	}
	if len(e.Claims) > 0 {
		b.WriteString("| verdict | claim | result |\n|---|---|---|\n")
		for _, c := range e.Claims {
			word := "**" + c.Verdict + "**"
			if c.Distance != "" {
				word += ": " + cell(c.Distance)
			}
			fmt.Fprintf(b, "| %s | %s | %s |\n", word, cell(c.Statement), cell(strip.Sentence(c)))
		}
	}
	picture, drawn, err := plot.VerdictPicture(e)
	if err != nil {
		return err
	}
	if drawn {
		if err := keep(b, name, picture, out); err != nil {
			return err
		}
	}
	beside(b, document.BesideThePaper(e))
	plots, err := plot.Pictures(e)
	if err != nil {
		return err
	}
	if i := best(plots); i >= 0 {
		return keep(b, name, plots[i], out)
	}
	return nil
}

// best is the plot that shows most of an experiment. It prefers a curve of latency, then a figure
// that the experiment declares, then bars, then the course of a fault.
func best(plots []plot.Picture) int {
	for _, kind := range []string{"curve-03", "curve-", "figure-", "time-01", "bars-01", "cdf-"} {
		if i := slices.IndexFunc(plots, func(p plot.Picture) bool { return strings.HasPrefix(p.Name, kind) }); i >= 0 {
			return i
		}
	}
	return -1
}

func keep(b *strings.Builder, of string, p plot.Picture, out string) error {
	dark, err := p.Dark()
	if err != nil {
		return err
	}
	// The site shows the picture for the colour scheme that its reader has chosen.
	b.WriteString("\n")
	for _, v := range []struct {
		colors string
		svg    []byte
	}{{"light", p.SVG}, {"dark", dark}} {
		name := strings.ReplaceAll(of, "/", "-") + "-" + p.Name + "-" + v.colors + ".svg"
		fmt.Fprintf(b, "![%s](gallery/%s#only-%s)\n", cell(p.Title), name, v.colors)
		if err := os.WriteFile(filepath.Join(out, "gallery", name), v.svg, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// beside writes the source's numbers beside the measured ones.
func beside(b *strings.Builder, rows []document.Beside) {
	if len(rows) == 0 {
		b.WriteString("\nNo number of the source has a measurement beside it.\n")
		return
	}
	line := func(r document.Beside) {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", cell(r.At), cell(r.What), cell(r.Paper), cell(r.Measured), r.Ratio)
	}
	b.WriteString("\n| at | what | source | measured | ratio |\n|---|---|---:|---:|---:|\n")
	for i, r := range rows {
		if i == mostBeside {
			fmt.Fprintf(b, "\n%d more are in the bundle's report.\n", len(rows)-mostBeside)
			return
		}
		line(r)
	}
}

func tally(experiments []results.Experiment) string {
	counts := map[string]int{}
	for _, e := range experiments {
		for _, c := range e.Claims {
			counts[c.Verdict]++
		}
	}
	var parts []string
	for _, v := range strip.Words {
		if n := counts[string(v)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	return strings.Join(parts, ", ")
}

// cell escapes text so that it ends neither a cell nor a line, and so that Markdown does not
// interpret it.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", ">", "&gt;", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`).Replace(text)
}

// anchor of a heading, as the site makes it.
func anchor(title string) string { return strings.ReplaceAll(strings.ToLower(title), " ", "-") }
