package raster

import (
	"fmt"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// regular is the font; it is part of the program, so that reading it does not fail.
var regular = sync.OnceValue(func() *sfnt.Font {
	f, err := sfnt.Parse(goregular.TTF)
	if err != nil {
		panic(fmt.Sprintf("raster: read the Go font: %v", err))
	}
	return f
})

// unitsOfGlyphs is the size at which outlines are read, large enough that rounding to 1/64 does not
// show; they are scaled down as they are drawn.
const unitsOfGlyphs = 1000

// write draws a line of text by filling its outlines, so that turned text is as sharp as other
// text.
func (d *drawing) write(e *element, said string) error {
	x, err := e.number("x", 0)
	if err != nil {
		return err
	}
	y, err := e.number("y", 0)
	if err != nil {
		return err
	}
	size, err := e.number("font-size", 13)
	if err != nil {
		return err
	}
	glyphs, width, err := outline(said)
	if err != nil {
		return err
	}
	d.canvas.Push()
	defer d.canvas.Pop()
	if err := d.transform(e.attributes["transform"]); err != nil {
		return err
	}
	d.canvas.Translate(x, y)
	d.canvas.Scale(size/unitsOfGlyphs, size/unitsOfGlyphs)
	switch anchor := e.attributes["text-anchor"]; anchor {
	case "", "start":
	case "middle":
		d.canvas.Translate(-width/2, 0)
	case "end":
		d.canvas.Translate(-width, 0)
	default:
		return fmt.Errorf("text-anchor is %q, not start, middle or end", anchor)
	}
	d.canvas.ClearPath()
	for _, g := range glyphs {
		d.trace(g)
	}
	return d.paint(e)
}

// trace adds a glyph's outline to the path.
func (d *drawing) trace(g glyph) {
	for _, s := range g.segments {
		at := func(i int) (float64, float64) { return g.x + units(s.Args[i].X), units(s.Args[i].Y) }
		switch s.Op {
		case sfnt.SegmentOpMoveTo:
			d.canvas.MoveTo(at(0))
		case sfnt.SegmentOpLineTo:
			d.canvas.LineTo(at(0))
		case sfnt.SegmentOpQuadTo:
			x1, y1 := at(0)
			x2, y2 := at(1)
			d.canvas.QuadraticTo(x1, y1, x2, y2)
		case sfnt.SegmentOpCubeTo:
			x1, y1 := at(0)
			x2, y2 := at(1)
			x3, y3 := at(2)
			d.canvas.CubicTo(x1, y1, x2, y2, x3, y3)
		}
	}
}

// glyph of a line, at its place.
type glyph struct {
	x        float64
	segments sfnt.Segments
}

// outline gives a line's outlines and its width, at unitsOfGlyphs to the em.
func outline(said string) (glyphs []glyph, width float64, err error) {
	var buffer sfnt.Buffer
	ppem := fixed.I(unitsOfGlyphs)
	before := sfnt.GlyphIndex(0)
	for i, r := range said {
		index, err := regular().GlyphIndex(&buffer, r)
		if err != nil {
			return nil, 0, fmt.Errorf("find %q in the font: %w", r, err)
		}
		if i > 0 {
			if kern, err := regular().Kern(&buffer, before, index, ppem, font.HintingNone); err == nil { // fonts may have no kerning
				width += units(kern)
			}
		}
		segments, err := regular().LoadGlyph(&buffer, index, ppem, nil)
		if err != nil {
			return nil, 0, fmt.Errorf("read %q in the font: %w", r, err)
		}
		glyphs = append(glyphs, glyph{width, append(sfnt.Segments(nil), segments...)}) // the buffer is used again
		advance, err := regular().GlyphAdvance(&buffer, index, ppem, font.HintingNone)
		if err != nil {
			return nil, 0, fmt.Errorf("read %q in the font: %w", r, err)
		}
		width += units(advance)
		before = index
	}
	return glyphs, width, nil
}

func units(v fixed.Int26_6) float64 { return float64(v) / 64 }
