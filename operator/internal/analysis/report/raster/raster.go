// Package raster turns the pictures that package report makes (Picture.SVG) into PNGs, without a
// browser. It knows the part of SVG that they use, and refuses anything else, so that it never
// leaves out a part of a picture in silence. Text is drawn in Go's own font, which comes with the
// program, so that a PNG is the same on every machine.
package raster

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"git.sr.ht/~sbinet/gg"
)

// The most pixels of a PNG; a picture of a report has about a million.
const maxPixels = 100e6

// Pixels of a report's PNG for each unit of a plot, which is 640 units wide: 1280, enough for a
// column of a paper at 300 dots an inch.
const Pixels = 2

// PNG draws a picture with that many pixels for each of its units, from 0.1 to 10. A report's plots
// are 640 units wide.
func PNG(svg []byte, scale float64) ([]byte, error) {
	if !(scale >= 0.1 && scale <= 10) {
		return nil, fmt.Errorf("draw a picture: the scale is %g; it must be from 0.1 to 10", scale)
	}
	d := drawing{scale: scale}
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = d.token(token)
		}
		if err != nil {
			return nil, fmt.Errorf("draw a picture: %w", err)
		}
	}
	if d.canvas == nil {
		return nil, errors.New("draw a picture: there is no svg element")
	}
	var png bytes.Buffer
	if err := d.canvas.EncodePNG(&png); err != nil {
		return nil, fmt.Errorf("write the PNG: %w", err)
	}
	return png.Bytes(), nil
}

type drawing struct {
	scale  float64
	canvas *gg.Context
	hidden int // open elements whose text is not drawn
	text   *element
	said   strings.Builder // of text
}

// element of the picture with its attributes.
type element struct {
	name       string
	attributes map[string]string
}

func (d *drawing) token(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		e := &element{name: t.Name.Local, attributes: map[string]string{}}
		for _, a := range t.Attr {
			e.attributes[a.Name.Local] = a.Value
		}
		if d.canvas == nil && e.name != "svg" {
			return fmt.Errorf("it begins with %s and not with svg", e.name)
		}
		return d.start(e)
	case xml.EndElement:
		return d.end(t.Name.Local)
	case xml.CharData:
		if d.text != nil && d.hidden == 0 {
			d.said.Write(t)
		}
	}
	return nil
}

func (d *drawing) start(e *element) error {
	switch e.name {
	case "svg":
		return d.open(e)
	case "g":
		if len(e.attributes) > 0 {
			return errors.New("a group has attributes")
		}
		return nil
	case "title", "desc":
		d.hidden++
		return nil
	case "rect":
		return d.rectangle(e)
	case "path":
		return d.path(e)
	case "text":
		d.text = e
		d.said.Reset()
		return nil
	}
	return fmt.Errorf("cannot draw the element %s", e.name)
}

func (d *drawing) end(name string) error {
	switch name {
	case "title", "desc":
		d.hidden--
	case "text":
		e := d.text
		d.text = nil
		return d.write(e, d.said.String())
	}
	return nil
}

func (d *drawing) open(e *element) error {
	width, err := e.number("width", math.NaN())
	if err != nil {
		return err
	}
	height, err := e.number("height", math.NaN())
	if err != nil {
		return err
	}
	if !(width > 0 && height > 0 && width*height*d.scale*d.scale <= maxPixels) {
		return fmt.Errorf("it is %g by %g units large", width, height)
	}
	d.canvas = gg.NewContext(int(math.Ceil(width*d.scale)), int(math.Ceil(height*d.scale)))
	d.canvas.Scale(d.scale, d.scale)
	return nil
}

func (d *drawing) rectangle(e *element) error {
	var at [4]float64
	for i, name := range []string{"x", "y", "width", "height"} {
		v, err := e.number(name, 0)
		if err != nil {
			return err
		}
		at[i] = v
	}
	d.canvas.DrawRectangle(at[0], at[1], at[2], at[3])
	return d.paint(e)
}

func (d *drawing) path(e *element) error {
	d.canvas.Push()
	defer d.canvas.Pop()
	if err := d.transform(e.attributes["transform"]); err != nil {
		return err
	}
	if err := trace(d.canvas, e.attributes["d"]); err != nil {
		return err
	}
	return d.paint(e)
}

// transform applies "translate(x,y)", and after it "rotate(degrees)".
func (d *drawing) transform(text string) error {
	for part := range strings.FieldsSeq(text) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(part, ")"), "(")
		var numbers []float64
		for field := range strings.SplitSeq(rest, ",") {
			v, err := strconv.ParseFloat(field, 64)
			if err != nil {
				return fmt.Errorf("transform %q: %w", text, err)
			}
			numbers = append(numbers, v)
		}
		switch {
		case name == "translate" && len(numbers) == 2:
			d.canvas.Translate(numbers[0], numbers[1])
		case name == "rotate" && len(numbers) == 1:
			d.canvas.Rotate(numbers[0] * math.Pi / 180)
		default:
			return fmt.Errorf("transform %q is none of translate(x,y) and rotate(degrees)", text)
		}
	}
	return nil
}

// paint fills and strokes the current path as the element says.
func (d *drawing) paint(e *element) error {
	defer d.canvas.ClearPath()
	fill, err := e.color("fill", "#000")
	if err != nil {
		return err
	}
	if fill != nil {
		d.canvas.SetColor(fill)
		d.canvas.FillPreserve()
	}
	stroke, err := e.color("stroke", "none")
	if err != nil || stroke == nil {
		return err
	}
	width, err := e.number("stroke-width", 1)
	if err != nil {
		return err
	}
	dashes, err := e.dashes()
	if err != nil {
		return err
	}
	for i := range dashes {
		dashes[i] *= d.scale
	}
	d.canvas.SetColor(stroke)
	d.canvas.SetLineWidth(width * d.scale) // lines are not scaled with the rest
	d.canvas.SetDash(dashes...)
	d.canvas.SetLineCapButt()
	d.canvas.StrokePreserve()
	return nil
}
