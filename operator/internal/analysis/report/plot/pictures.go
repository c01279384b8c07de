package plot

import (
	"cmp"
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/results"
)

// Picture is one plot of a report, as a file of its own.
type Picture struct {
	// Name of the file without its ending. It says what is drawn, and is the same each time a
	// report is made.
	Name string
	// Title as the page has it above the plot.
	Title string
	// SVG that needs nothing else: colours of a light page, no stylesheet, a text alternative.
	SVG []byte

	page string // the same as the page has it
}

// newPicture makes a file of a picture of the page.
func newPicture(name, title, page string) (Picture, error) {
	svg, err := standalone(page, lightStyle())
	if err != nil {
		return Picture{}, fmt.Errorf("%s: %w", title, err)
	}
	return Picture{Name: name, Title: title, SVG: svg, page: page}, nil
}

// Dark is the picture as SVG in the colours of a dark page.
func (p Picture) Dark() ([]byte, error) {
	svg, err := standalone(p.page, darkStyle())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Title, err)
	}
	return svg, nil
}

// Pictures are the plots of the page (HTML), in its order.
func Pictures(e results.Experiment) ([]Picture, error) {
	var named []namedPlot
	lines, _ := DrawnLines(e, "curve")
	for _, p := range lines {
		named = append(named, namedPlot{"curve", p})
	}
	for _, p := range DrawnSearches(e, "search") {
		named = append(named, namedPlot{"search", p})
	}
	bars, _ := DrawnBars(e, "bar")
	for _, p := range bars {
		named = append(named, namedPlot{"bars", p})
	}
	for i, f := range document.DeclaredFigures(e) {
		for k, p := range f.Plots {
			named = append(named, namedPlot{"figure", Drawn{Title: f.TitleOf(p), SVG: escaped(drawDeclared(p, fmt.Sprintf("figure%d-%d", i, k))), file: FileName(f.Name + " " + p.Of)}})
		}
	}
	overTime, _ := OverTime(e)
	for _, p := range overTime {
		named = append(named, namedPlot{"time", p})
	}
	distributions, _ := Distributions(e)
	for _, p := range distributions {
		named = append(named, namedPlot{"cdf", p})
	}
	var pictures []Picture
	numbers := map[string]int{}
	for _, p := range named {
		numbers[p.kind]++
		picture, err := newPicture(fmt.Sprintf("%s-%02d-%s", p.kind, numbers[p.kind], cmp.Or(p.file, FileName(p.Title))), p.Title, string(p.SVG))
		if err != nil {
			return nil, err
		}
		pictures = append(pictures, picture)
	}
	return pictures, nil
}

type namedPlot struct {
	kind string
	Drawn
}

// longestName is the longest name of a file that every file system accepts, with room for kind,
// number and ending.
const longestName = 80

// FileName turns a title into a name that every shell and file system accepts: lower-case letters,
// digits, and a hyphen for anything else. The part in brackets is left out.
func FileName(title string) string {
	title, _, _ = strings.Cut(title, " (")
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	name := strings.Join(words, "-")
	return strings.Trim(cmp.Or(name[:min(len(name), longestName)], "plot"), "-")
}
