package strip

import (
	"math"
	"strings"
)

// LineLegend says how to read a Line.
const LineLegend = "In the lines below claims: ░ is what the claim allows, ├──┤ the measured interval, │ the reported or expected value, or no effect; ● supports the claim, ■ refutes it, ◇ decides nothing"

// Line draws a track in one line of width characters, at least 10, for a terminal:
//
//	░░░░░░░░░░░░░├─────●─────┤░░░░│░░░░░░░
//
// The scale is that of the page's strip.
func Line(t Track, width int) string {
	width = max(width, 10)
	s := scaleOf(t)
	cell := func(v *float64, open int) int {
		if v == nil || math.IsInf(*v, 0) {
			return open
		}
		share := (s.x(*v) - trackMargin) / (trackWidth - 2*trackMargin)
		return int(math.Round(share * float64(width-1)))
	}
	cells := []rune(strings.Repeat("·", width))
	fill := func(low, high int, with rune) {
		for i := low; i <= high; i++ {
			cells[i] = with
		}
	}
	if t.BoundLow != nil || t.BoundHigh != nil {
		fill(cell(t.BoundLow, 0), cell(t.BoundHigh, width-1), '░')
	}
	if t.Reference != nil {
		cells[cell(t.Reference, 0)] = '│'
	}
	if known(t.Interval) {
		low, high := cell(t.Low, 0), cell(t.High, width-1)
		fill(low, high, '─')
		if t.Low != nil {
			cells[low] = '├'
		}
		if t.High != nil {
			cells[high] = '┤'
		}
	}
	mark := map[State]rune{Supported: '●', Refuted: '■'}[t.State]
	if mark == 0 {
		mark = '◇'
	}
	cells[cell(&t.Value, 0)] = mark
	return string(cells)
}
