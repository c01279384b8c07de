package raster

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"golang.org/x/image/font/sfnt"
)

// picture of 40 by 20 units with some elements on white.
func picture(elements string) []byte {
	return []byte(`<?xml version="1.0" encoding="UTF-8"?>
<svg viewBox="0 0 40 20" width="40" height="20"><title>t</title><rect width="40" height="20" fill="#fff"/>` + elements + `</svg>`)
}

func draw(t *testing.T, scale float64, elements string) image.Image {
	t.Helper()
	b, err := PNG(picture(elements), scale)
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// grey at a place, in units of the picture: 255 is white.
func grey(img image.Image, scale, x, y float64) int {
	return int(color.GrayModel.Convert(img.At(int(x*scale), int(y*scale))).(color.Gray).Y)
}

func TestShapes(t *testing.T) {
	const scale = 4
	for name, tc := range map[string]struct {
		elements     string
		dark, bright [][2]float64
	}{
		"a rectangle":              {`<rect x="10" y="5" width="10" height="10"/>`, [][2]float64{{11, 6}, {19, 14}}, [][2]float64{{9, 6}, {21, 6}, {11, 16}}},
		"a path, absolute":         {`<path d="M10,5L20,5V15H10Z"/>`, [][2]float64{{11, 6}, {19, 14}}, [][2]float64{{9, 6}, {11, 16}}},
		"a path, relative":         {`<path d="M10,5l10,0v10h-10z"/>`, [][2]float64{{11, 6}, {19, 14}}, [][2]float64{{9, 6}, {11, 16}}},
		"lines without a letter":   {`<path d="M10,5 20,5 20,15 10,15z"/>`, [][2]float64{{11, 6}, {19, 14}}, [][2]float64{{9, 6}}},
		"two parts":                {`<path d="M2,2h4v4h-4zM20,2h4v4h-4z"/>`, [][2]float64{{4, 4}, {22, 4}}, [][2]float64{{12, 4}}},
		"curves":                   {`<path transform="translate(20,10)" d="M-4,0C-4,-2.2,-2.2,-4,0,-4C2.2,-4,4,-2.2,4,0C4,2.2,2.2,4,0,4C-2.2,4,-4,2.2,-4,0z"/>`, [][2]float64{{20, 10}, {23, 10}, {20, 7}}, [][2]float64{{23.5, 6.5}, {16.5, 13.5}}},
		"a line":                   {`<path d="M2,10H38" fill="none" stroke="#000" stroke-width="2"/>`, [][2]float64{{5, 10}, {35, 10}}, [][2]float64{{5, 7}, {5, 13}}},
		"dashes are in units":      {`<path d="M0,10H40" fill="none" stroke="#000" stroke-width="2" stroke-dasharray="10 5"/>`, [][2]float64{{5, 10}, {20, 10}}, [][2]float64{{12.5, 10}, {27.5, 10}}},
		"a hidden title":           {`<path d="M0,0h1v1z"><title>XXXXXXXX</title></path>`, nil, [][2]float64{{20, 10}}},
		"what is drawn later wins": {`<rect width="40" height="20"/><rect x="10" y="5" width="10" height="10" fill="#ffffff"/>`, [][2]float64{{5, 5}}, [][2]float64{{15, 10}}},
	} {
		t.Run(name, func(t *testing.T) {
			img := draw(t, scale, tc.elements)
			if size := img.Bounds().Size(); size != image.Pt(160, 80) {
				t.Fatalf("it is %v large", size)
			}
			for _, p := range tc.dark {
				if g := grey(img, scale, p[0], p[1]); g > 40 {
					t.Errorf("at %v it is %d; it should be black", p, g)
				}
			}
			for _, p := range tc.bright {
				if g := grey(img, scale, p[0], p[1]); g < 215 {
					t.Errorf("at %v it is %d; it should be white", p, g)
				}
			}
		})
	}
}

func TestOpacity(t *testing.T) {
	img := draw(t, 1, `<rect width="40" height="20" fill="#000" fill-opacity="0.2"/>`)
	if g := grey(img, 1, 20, 10); g < 200 || g > 208 {
		t.Errorf("black of opacity 0.2 on white is %d, want 204", g)
	}
}

// ink is the box of all that is darker than half.
func ink(img image.Image) image.Rectangle {
	var box image.Rectangle
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if color.GrayModel.Convert(img.At(x, y)).(color.Gray).Y < 128 {
				box = box.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return box
}

func TestText(t *testing.T) {
	const scale = 10
	start := ink(draw(t, scale, `<text x="20" y="15" font-size="10">Hx</text>`))
	middle := ink(draw(t, scale, `<text x="20" y="15" font-size="10" text-anchor="middle">Hx</text>`))
	end := ink(draw(t, scale, `<text x="20" y="15" font-size="10" text-anchor="end">Hx</text>`))
	turned := ink(draw(t, scale, `<text transform="translate(20,18) rotate(-90)" font-size="10">Hx</text>`))
	if start.Empty() || start.Min.X < 200 || start.Min.X > 220 || start.Max.Y != 150 || start.Dy() < 65 || start.Dy() > 80 {
		t.Errorf("text from 20,15 has its ink in %v; a capital H of 10 units is about 7 units high and stands on the line", start)
	}
	if got := middle.Min.X + middle.Max.X; got < 380 || got > 420 {
		t.Errorf("text around 20 has its ink in %v", middle)
	}
	if end.Max.X > 200 || end.Max.X < 190 {
		t.Errorf("text up to 20 has its ink in %v", end)
	}
	if turned.Max.X > 200 || turned.Max.Y > 180 || turned.Dy() != start.Dx() || turned.Dx() != start.Dy() {
		t.Errorf("turned text has its ink in %v, the same text upright in %v", turned, start)
	}
}

// The font has every character of the labels of plots: a missing one is glyph 0, a box.
func TestFontHasWhatPlotsSay(t *testing.T) {
	var buffer sfnt.Buffer
	for _, r := range "≥≤±µ…–—×·°éüñABCxyz0189%()/=,;:'\"<>|" {
		if index, err := regular().GlyphIndex(&buffer, r); err != nil || index == 0 {
			t.Errorf("the font has no %q (%v)", r, err)
		}
	}
}

func TestRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, tc := range map[string]struct{ svg, want string }{
		"another element":  {string(picture(`<circle r="4"/>`)), "cannot draw the element circle"},
		"another command":  {string(picture(`<path d="M0,0A4,4,0,1,0,8,0"/>`)), `has the command 'A'`},
		"half a path":      {string(picture(`<path d="M0"/>`)), "has no number at 2"},
		"no command":       {string(picture(`<path d="1,2"/>`)), "where a command should be"},
		"another colour":   {string(picture(`<rect width="1" height="1" fill="red"/>`)), `fill of rect is "red"`},
		"a class":          {string(picture(`<g class="c0"></g>`)), "a group has attributes"},
		"another anchor":   {string(picture(`<text text-anchor="left">x</text>`)), `text-anchor is "left"`},
		"another movement": {string(picture(`<path transform="skewX(3)" d="M0,0z"/>`)), "is none of translate"},
		"a wild opacity":   {string(picture(`<rect width="1" height="1" fill-opacity="2"/>`)), "not from 0 to 1"},
		"no end":           {`<svg width="4" height="4">`, "unexpected EOF"},
		"no picture":       {"", "there is no svg element"},
		"a page":           {"<html></html>", "begins with html"},
		"no size":          {`<svg viewBox="0 0 4 4"></svg>`, "width of svg"},
		"a huge one":       {`<svg width="1e6" height="1e6"></svg>`, "it is 1e+06 by 1e+06 units large"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := PNG([]byte(tc.svg), 2); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
	if _, err := PNG(picture(""), 0); err == nil {
		t.Error("a scale of 0 is taken")
	}
}
