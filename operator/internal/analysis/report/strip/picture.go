package strip

import (
	"fmt"
	"html"
	"strings"

	"assay.dev/assay/operator/internal/results"
)

// The geometry of the picture of all claims.
const (
	pictureWidth = 940.0
	wordColumn   = 24.0
	saysColumn   = 190.0
	trackColumn  = pictureWidth - trackWidth - 10
	lineHeight   = 18.0
	rowGap       = 14.0
	keyHeight    = 26.0
	// saysCharacters fit between the columns.
	saysCharacters = 56
	wordCharacters = 22
)

// Picture draws the strip as one SVG with the report's style, for a file of its own. It is empty if
// no claim has numbers. It leaves out claims without numbers. The argument looks is as in HTML.
func Picture(claims []results.ClaimResult, looks bool, id, title string) string {
	body := &strings.Builder{}
	y := keyHeight + rowGap
	drawn, left := 0, 0
	var says []string
	for _, c := range claims {
		tracks := Tracks(c)
		if len(tracks) == 0 {
			left++
			continue
		}
		drawn++
		says = append(says, c.Name+": "+c.Verdict+", "+Sentence(c)+".")
		y += pictureRow(body, c, tracks, y) + rowGap
	}
	if drawn == 0 {
		return ""
	}
	if left > 0 {
		fmt.Fprintf(body, `<path class="grid" d="M0,%.1fh%.1f"/><text x="%.1f" y="%.1f">%s not drawn: not evaluated, or without numbers</text>`+"\n", y, pictureWidth, wordColumn, y+lineHeight+4, counted(left, "claim"))
		y += lineHeight + rowGap
	}
	b := &strings.Builder{}
	fmt.Fprintf(b, `<svg viewBox="0 0 %g %g" role="img" aria-labelledby="%s-t %s-d"><title id="%s-t">%s</title><desc id="%s-d">%s</desc>`+"\n",
		pictureWidth, y, id, id, id, html.EscapeString(title), id, html.EscapeString(strings.Join(says, " ")))
	pictureKey(b, looks)
	b.WriteString(body.String())
	b.WriteString("</svg>\n")
	return b.String()
}

// pictureRow draws a claim with its upper edge at y, and gives its height.
func pictureRow(b *strings.Builder, c results.ClaimResult, tracks []Track, y float64) float64 {
	fmt.Fprintf(b, `<path class="grid" d="M0,%.1fh%.1f"/>`, y, pictureWidth)
	state := Track{State: StateOf(c.Verdict)}
	class, shape := state.mark()
	fmt.Fprintf(b, `<g class="%s"><path class="%s" transform="translate(10,%.1f)" d="%s"/></g>`, state.State, class, y+15, shape)
	lines := func(x float64, texts []string) float64 {
		for i, text := range texts {
			fmt.Fprintf(b, `<text x="%.1f" y="%.1f">%s</text>`, x, y+20+float64(i)*lineHeight, html.EscapeString(text))
		}
		return 20 + float64(len(texts))*lineHeight
	}
	word := append([]string{c.Verdict}, wrap(c.Distance, wordCharacters)...)
	says := append([]string{c.Name}, wrap(c.Statement, saysCharacters)...)
	if n := Trials(c); n != "" {
		says[0] += ", n=" + n
	}
	height := max(lines(wordColumn, word), lines(saysColumn, says), float64(len(tracks))*trackHeight+6)
	b.WriteString("\n")
	drawTracks(b, tracks, trackColumn, y+6, c.Weak != "")
	return height
}

// pictureKey says what the marks mean.
func pictureKey(b *strings.Builder, looks bool) {
	fmt.Fprintf(b, `<rect class="allowed" x="10" y="6" width="30" height="14"/><text x="46" y="18">what the claim allows</text>`)
	at := 200.0
	for _, k := range []struct {
		state State
		says  string
	}{{Supported, intervalOf(looks) + ", estimate: supported"}, {Refuted, "refuted"}, {Open, "not decided"}} {
		class, shape := Track{State: k.state}.mark()
		fmt.Fprintf(b, `<g class="%s"><path class="line bar" d="M%.1f,13h30"/><path class="%s" transform="translate(%.1f,13)" d="%s"/></g><text x="%.1f" y="18">%s</text>`,
			k.state, at, class, at+15, shape, at+36, k.says)
		at += 44 + float64(len(k.says))*charWidth
	}
	fmt.Fprintf(b, `<path class="mark ends" d="M%.1f,4v18"/><text x="%.1f" y="18">reported, expected, or no effect</text>`+"\n", at+4, at+12)
}

// intervalOf names the interval of a track. At one of several looks, an interval is wider than a
// 95% interval, so that all looks together hold at 95%.
func intervalOf(looks bool) string {
	if looks {
		return "interval (95% over all looks)"
	}
	return "95% interval"
}

func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// wrap breaks a text between words into lines of at most width characters.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
