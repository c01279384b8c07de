package strip

import (
	"fmt"
	"math"
	"strings"

	"assay.dev/assay/operator/internal/results"
)

// WordWidth is the length of the longest verdict.
const WordWidth = len("NotReproduced")

// widestLine of a Line in characters, where the terminal has room.
const widestLine = 60

// Word pads a verdict and colours it for a terminal. The verdict is green if it supports the claim,
// red if it refutes it, and yellow if it decides nothing. It is grey for a claim that was not
// evaluated.
func Word(verdict string, color bool) string {
	padded := fmt.Sprintf("%-*s", WordWidth, verdict)
	if !color {
		return padded
	}
	code := map[State]string{Supported: "32", Refuted: "31", Open: "33", NotJudged: "90"}[StateOf(verdict)]
	return "\x1b[" + code + "m" + padded + "\x1b[0m"
}

// Lines are the tracks of a claim, each in one Line, for a terminal with room for so many
// characters.
func Lines(c results.ClaimResult, room int) (lines []string) {
	for _, track := range Tracks(c) {
		lines = append(lines, Line(track, min(widestLine, room)))
	}
	return lines
}

// sparks are the heights of a sparkline, from nothing to the greatest value.
var sparks = []rune("▁▂▃▄▅▆▇█")

// Spark draws values as a row of bars over 0, in at most so many characters. Where there are more
// values, each bar is the mean of neighbours.
func Spark(values []float64, width int) string {
	n := min(len(values), width)
	if n <= 0 {
		return ""
	}
	means, most := make([]float64, n), 0.0
	for i := range means {
		from, to := i*len(values)/n, (i+1)*len(values)/n
		for _, v := range values[from:to] {
			means[i] += v / float64(to-from)
		}
		most = max(most, means[i])
	}
	var b strings.Builder
	for _, v := range means {
		height := 0
		if most > 0 {
			height = int(math.Round(max(0, v) / most * float64(len(sparks)-1)))
		}
		b.WriteRune(sparks[height])
	}
	return b.String()
}
