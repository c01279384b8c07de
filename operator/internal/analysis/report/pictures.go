package report

import (
	"cmp"
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/results"
)

// Picture is one plot of a report, as a file of its own.
type Picture struct {
	// Name of the file without its ending: what is drawn, and in a report with many the same every
	// time.
	Name string
	// Title as the page has it above the plot.
	Title string
	// SVG that needs nothing else: colours of a light page, no stylesheet, a text alternative.
	SVG []byte
}

// Pictures are the plots of the page (HTML), in its order.
func Pictures(e results.Experiment) ([]Picture, error) {
	var named []namedPlot
	curves, _ := plots(e)
	for i, p := range curves {
		named = append(named, namedPlot{"curve", htmlPlot{Title: p.title, SVG: escaped(p.svg(fmt.Sprintf("curve%d", i)))}})
	}
	bars, _ := htmlBars(e, "bar")
	for _, p := range bars {
		named = append(named, namedPlot{"bars", p})
	}
	for i, f := range declaredFigures(e) {
		for k, p := range f.plots {
			named = append(named, namedPlot{"figure", htmlPlot{Title: f.titleOf(p), SVG: escaped(p.svg(fmt.Sprintf("figure%d-%d", i, k))), file: fileName(f.name + " " + p.of)}})
		}
	}
	overTime, _ := overTime(e)
	for _, p := range overTime {
		named = append(named, namedPlot{"time", p})
	}
	distributions, _ := distributions(e)
	for _, p := range distributions {
		named = append(named, namedPlot{"cdf", p})
	}
	var pictures []Picture
	numbers := map[string]int{}
	for _, p := range named {
		svg, err := standalone(string(p.SVG))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Title, err)
		}
		numbers[p.kind]++
		pictures = append(pictures, Picture{Name: fmt.Sprintf("%s-%02d-%s", p.kind, numbers[p.kind], cmp.Or(p.file, fileName(p.Title))), Title: p.Title, SVG: svg})
	}
	return pictures, nil
}

type namedPlot struct {
	kind string
	htmlPlot
}

// longestName of a file is what every file system takes, with room for kind, number and ending.
const longestName = 80

// fileName turns a title into what every shell and file system takes: lower-case letters, digits,
// and a hyphen for anything else. What is in brackets is left out.
func fileName(title string) string {
	title, _, _ = strings.Cut(title, " (")
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	name := strings.Join(words, "-")
	return strings.Trim(cmp.Or(name[:min(len(name), longestName)], "plot"), "-")
}
