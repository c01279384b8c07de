package strip

import (
	"fmt"
	"html"
	"math"
	"strings"

	"assay.dev/assay/operator/internal/results"
)

// The geometry of a track, in pixels of a page: the estimate's number above, the band with the
// interval over it, and the numbers of the band's edges below.
const (
	trackWidth  = 320.0
	trackHeight = 56.0
	trackMargin = 12.0 // left and right of the scale
	bandTop     = 18.0
	bandHeight  = 20.0
	middle      = bandTop + bandHeight/2
	aboveText   = 12.0
	belowText   = 52.0
	// charWidth is how wide a character of the labels is at most, on average.
	charWidth = 7.4
	// widestLinear is the quotient of the largest and the least number of a track beyond which its
	// scale is logarithmic.
	widestLinear = 20.0
)

// scale of one track.
type scale struct {
	low, high float64
	log       bool
}

// scaleOf makes room for everything that a track shows: logarithmic for ratios and for wide ranges,
// if all numbers are above 0.
func scaleOf(t Track) scale {
	all := []float64{t.Value}
	for _, x := range []*float64{t.Low, t.High, t.BoundLow, t.BoundHigh, t.Reference} {
		if x != nil && !math.IsInf(*x, 0) && !math.IsNaN(*x) {
			all = append(all, *x)
		}
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, x := range all {
		low, high = math.Min(low, x), math.Max(high, x)
	}
	s := scale{log: low > 0 && (t.Quantity == Ratio || t.Quantity == Value && t.Unit == "" || high/low > widestLinear)}
	a, b := s.of(low), s.of(high)
	room := (b - a) * 0.15 // so that neither an interval's end nor an open band stops at the frame
	if room == 0 {
		room = math.Max(math.Abs(a)*0.1, 0.1)
	}
	s.low, s.high = a-room, b+room
	return s
}

func (s scale) of(v float64) float64 {
	if s.log {
		return math.Log(v)
	}
	return v
}

func (s scale) x(v float64) float64 {
	share := (s.of(v) - s.low) / (s.high - s.low)
	return trackMargin + (trackWidth-2*trackMargin)*math.Min(1, math.Max(0, share))
}

// end returns the place of the end of an interval or band, and whether it goes on beyond the frame.
func (s scale) end(v *float64, open float64) (x float64, goesOn bool) {
	if v == nil || math.IsInf(*v, 0) {
		return open, true
	}
	return s.x(*v), false
}

// draw writes a track with its upper left corner at x, y.
func (t Track) draw(b *strings.Builder, x, y float64, number string, weak bool) {
	s := scaleOf(t)
	fmt.Fprintf(b, `<path class="grid" d="M%.1f,%.1fh%.1f"/>`, x, y+middle, trackWidth)
	t.drawBand(b, s, x, y, weak)
	if t.Reference != nil {
		fmt.Fprintf(b, `<path class="mark ends" d="M%.1f,%.1fv%.1f"/>`, x+s.x(*t.Reference), y+bandTop-3, bandHeight+6)
	}
	fmt.Fprintf(b, `<g class="%s">`, t.State)
	if known(t.Interval) {
		t.drawInterval(b, s, x, y)
	}
	class, shape := t.mark()
	fmt.Fprintf(b, `<path class="%s" transform="translate(%.1f,%.1f)" d="%s"/></g>`, class, x+s.x(t.Value), y+middle, shape)
	t.label(b, s, x, y+aboveText, number)
	t.labelBounds(b, s, x, y+belowText)
	b.WriteString("\n")
}

func (t Track) drawBand(b *strings.Builder, s scale, x, y float64, weak bool) {
	if t.BoundLow == nil && t.BoundHigh == nil {
		return
	}
	low, openLow := s.end(t.BoundLow, 0)
	high, openHigh := s.end(t.BoundHigh, trackWidth)
	class := "allowed"
	if weak {
		class = "allowed weak"
	}
	fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, class, x+low, y+bandTop, math.Max(2, high-low), bandHeight)
	if !openLow {
		fmt.Fprintf(b, `<path class="edge" d="M%.1f,%.1fv%.1f"/>`, x+low, y+bandTop, bandHeight)
	}
	if !openHigh {
		fmt.Fprintf(b, `<path class="edge" d="M%.1f,%.1fv%.1f"/>`, x+high, y+bandTop, bandHeight)
	}
}

func (t Track) drawInterval(b *strings.Builder, s scale, x, y float64) {
	low, openLow := s.end(t.Low, 0)
	high, openHigh := s.end(t.High, trackWidth)
	if high > low {
		fmt.Fprintf(b, `<path class="line bar" d="M%.1f,%.1fH%.1f"/>`, x+low, y+middle, x+high)
	}
	stop := func(at float64, open bool) {
		if !open {
			fmt.Fprintf(b, `<path class="line" d="M%.1f,%.1fv10"/>`, x+at, y+middle-5)
		}
	}
	stop(low, openLow)
	stop(high, openHigh)
}

// The shapes of the estimate: they tell its state, as the colour does.
const (
	disc    = "M-5,0C-5,-2.8,-2.8,-5,0,-5C2.8,-5,5,-2.8,5,0C5,2.8,2.8,5,0,5C-2.8,5,-5,2.8,-5,0z"
	square  = "M-4.8,-4.8h9.6v9.6h-9.6z"
	diamond = "M0,-6.2L5.6,0L0,6.2L-5.6,0z"
)

// mark is the mark of the estimate: a disc if the claim is supported, a square if it is refuted, a
// hollow diamond if nothing is decided.
func (t Track) mark() (class, shape string) {
	switch t.State {
	case Supported:
		return "dot", disc
	case Refuted:
		return "dot", square
	}
	return "ghost", diamond
}

// label writes the estimate above its mark.
func (t Track) label(b *strings.Builder, s scale, x, y float64, number string) {
	short := t.short(t.Value)
	if known(t.Interval) {
		short = strings.Split(Show(t.Interval, t.Unit), " [")[0] + times(t.Quantity)
	} else {
		short += ", no interval"
	}
	text(b, x, y, s.x(t.Value), number+short)
}

func (t Track) short(v float64) string { return bare(v) + suffix(t.Unit) + times(t.Quantity) }

func times(q Quantity) string {
	if q == Ratio {
		return "×"
	}
	return ""
}

// labelBounds writes the edges of the band, as one label if two would overlap.
func (t Track) labelBounds(b *strings.Builder, s scale, x, y float64) {
	switch {
	case t.BoundLow != nil && t.BoundHigh != nil:
		low, high := bare(*t.BoundLow), bare(*t.BoundHigh)+suffix(t.Unit)
		a, c := s.x(*t.BoundLow), s.x(*t.BoundHigh)
		if c-a < float64(len(low)+len(high))/2*charWidth+10 || overlapAtEdge(a, c, low, high) {
			text(b, x, y, (a+c)/2, low+" to "+high)
			return
		}
		text(b, x, y, a, low)
		text(b, x, y, c, high)
	case t.BoundLow != nil:
		text(b, x, y, s.x(*t.BoundLow), t.short(*t.BoundLow))
	case t.BoundHigh != nil:
		text(b, x, y, s.x(*t.BoundHigh), t.short(*t.BoundHigh))
	case t.Reference != nil:
		text(b, x, y, s.x(*t.Reference), t.short(*t.Reference))
	}
}

// overlapAtEdge reports whether two labels that are pushed inside the frame meet.
func overlapAtEdge(a, b float64, low, high string) bool {
	wa, wb := float64(len(low))*charWidth, float64(len(high))*charWidth
	return place(b, wb)-wb/2-place(a, wa)-wa/2 < 4
}

// place of a label's middle, so that it is inside the frame.
func place(at, width float64) float64 {
	return math.Max(width/2, math.Min(trackWidth-width/2, at))
}

// text writes a label whose middle is as near to at as the frame allows.
func text(b *strings.Builder, x, y, at float64, s string) {
	at = place(at, float64(len([]rune(s)))*charWidth)
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, x+at, y, html.EscapeString(s))
}

// SVG draws the tracks of a claim, one below the other, for a page with the report's style. id is
// unique in the page. It is empty where there is nothing to draw.
func SVG(c results.ClaimResult, id string) string {
	tracks := Tracks(c)
	if len(tracks) == 0 {
		return ""
	}
	b := &strings.Builder{}
	fmt.Fprintf(b, `<svg class="track" viewBox="0 0 %g %g" role="img" aria-labelledby="%s-t %s-d"><title id="%s-t">%s</title><desc id="%s-d">%s</desc>`+"\n",
		trackWidth, trackHeight*float64(len(tracks)), id, id, id, html.EscapeString(c.Name+": "+c.Verdict), id, html.EscapeString(Sentence(c)+"."))
	drawTracks(b, tracks, 0, 0, c.Weak != "")
	b.WriteString("</svg>\n")
	return b.String()
}

func drawTracks(b *strings.Builder, tracks []Track, x, y float64, weak bool) {
	for i, t := range tracks {
		number := ""
		if len(tracks) > 1 {
			number = fmt.Sprintf("(%d) ", i+1)
		}
		t.draw(b, x, y+float64(i)*trackHeight, number, weak)
	}
}
