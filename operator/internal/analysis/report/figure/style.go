// Package figure draws the figures of a report for a paper: as PDF, and as TeX for pgfplots. Widths
// and font sizes are those on the paper. So an author includes a figure as it is and never scales
// it. Axes, ticks and numbers come from package plot; gonum/plot lays out PDF and pgfplots lays
// out TeX.
package figure

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/plot"
)

// Length is a length in points of PDF: 72 to the inch. TeX calls this unit bp; its pt is 1/72.27
// inch.
type Length float64

// lengthUnits in points of PDF.
var lengthUnits = map[string]Length{"in": 72, "cm": 72 / 2.54, "mm": 72 / 25.4, "pt": 72 / 72.27, "bp": 1}

// ParseLength reads a length as TeX writes it: a number and in, cm, mm, pt (1/72.27 inch, what
// \the\columnwidth prints) or bp (1/72 inch).
func ParseLength(s string) (Length, error) {
	text := strings.TrimSpace(s)
	for name, unit := range lengthUnits {
		if number, ok := strings.CutSuffix(text, name); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			if err != nil || !(v > 0) || math.IsInf(v, 0) {
				break
			}
			return Length(v) * unit, nil
		}
	}
	return 0, fmt.Errorf("%q is no length; write a number above 0 and in, cm, mm, pt or bp, such as 3.33in or 241pt", s)
}

// tex writes a length in TeX points.
func (l Length) tex() string {
	return strconv.FormatFloat(math.Round(float64(l)*72.27/72*1000)/1000, 'f', -1, 64) + "pt"
}

// Style is the size of a figure and of its text.
type Style struct {
	Width, Height Length
	// FreeHeight: the user asked for no height. Figures of bars are then as high as their rows
	// need.
	FreeHeight bool
	FontSize   Length
	// Sans: text without serifs. PDF has Liberation Serif or Sans; TeX takes the document's fonts.
	Sans bool
}

// The bounds of a style: below, nothing is legible; above, no page holds it.
const (
	leastWidth, mostWidth = 72, 72 * 48
	leastFont, mostFont   = 4, 72
	// goldenRatio of the width to the height of a figure that does not say how high it is.
	goldenRatio = 1.618
)

// NewStyle checks lengths. A height of 0 becomes the width divided by the golden ratio.
func NewStyle(width, height, fontSize Length, sans bool) (Style, error) {
	free := height == 0
	if free {
		height = width / goldenRatio
	}
	for _, side := range []struct {
		name string
		Length
	}{{"width", width}, {"height", height}} { // in order: the height may follow from the width
		if side.Length < leastWidth || side.Length > mostWidth {
			return Style{}, fmt.Errorf("%s: %.1f inches are outside of 1 to 48 inches", side.name, float64(side.Length)/72)
		}
	}
	if fontSize < leastFont || fontSize > mostFont {
		return Style{}, fmt.Errorf("font size: %.1f points are outside of 4 to 72", float64(fontSize))
	}
	if height < 8*fontSize {
		return Style{}, fmt.Errorf("font size: a figure %.1f inches high has no room for text of %.1f points; choose a size of at most an eighth of the height", float64(height)/72, float64(fontSize))
	}
	return Style{Width: width, Height: height, FreeHeight: free, FontSize: fontSize, Sans: sans}, nil
}

// leastFrame is how high the frame of curves is at least, with its axis, in font sizes.
const leastFrame = 14

// withLegend is the height of a figure with so many lines of a legend above the frame. It is more
// than the width asks for where the legend would leave no room, unless the user chose the height.
func (s Style) withLegend(rows int) Length {
	if !s.FreeHeight {
		return s.Height
	}
	return max(s.Height, Length(1.5*float64(rows)+leastFrame)*s.FontSize)
}

// entry of a legend: a curve, or a mark's name the first time.
type entry struct {
	name  string
	curve int // its index; -1: a mark
	ends  bool
}

// entriesOf the legend. A single curve without marks needs none.
func entriesOf(f plot.Figure) []entry {
	var entries []entry
	for i, c := range f.Curves {
		entries = append(entries, entry{name: c.Name, curve: i})
	}
	if f.One != "" {
		entries = append(entries, entry{name: f.One, curve: -1, ends: true})
	}
	seen := map[string]bool{}
	for _, m := range f.Marks {
		if !seen[m.Name] {
			seen[m.Name] = true
			entries = append(entries, entry{name: m.Name, curve: -1, ends: m.Ends})
		}
	}
	if len(entries) == 1 {
		return nil
	}
	return entries
}

// mostColumns of a legend above a figure.
const mostColumns = 4

// columns is how many entries fit beside each other if the longest entry has this width.
func columns(entries int, width, longest Length) int {
	return max(1, min(entries, mostColumns, int(width/longest)))
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
