package plot

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// standaloneText is the font of a picture in a file of its own. It is likely to be there, since a
// file cannot ask the system for its own font as a page does.
const standaloneText = "Helvetica, Arial, Liberation Sans, DejaVu Sans, sans-serif"

// standalone makes a file of a picture of a page. Every element has the style in its own
// attributes, so that a program without stylesheets draws it as a browser does.
func standalone(svg string, style pictureStyle) ([]byte, error) {
	w := standaloneWriter{style: style, colors: []string{style.ink}}
	decoder := xml.NewDecoder(strings.NewReader(svg))
	w.b.WriteString(xml.Header)
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return []byte(w.b.String()), nil
		}
		if err == nil {
			err = w.token(token)
		}
		if err != nil {
			return nil, fmt.Errorf("make a file of a picture: %w", err)
		}
	}
}

type standaloneWriter struct {
	b      strings.Builder
	style  pictureStyle
	colors []string // what currentcolor is, for each element that is open
}

func (w *standaloneWriter) token(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		return w.start(t)
	case xml.EndElement:
		w.colors = w.colors[:len(w.colors)-1]
		w.b.WriteString("</" + t.Name.Local + ">")
	case xml.CharData:
		// EscapeText makes a character reference of the end of a line. None may stand outside of
		// the root.
		for i, line := range strings.Split(string(t), "\n") {
			if i > 0 {
				w.b.WriteString("\n")
			}
			if err := xml.EscapeText(&w.b, []byte(line)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *standaloneWriter) start(t xml.StartElement) error {
	color := w.colors[len(w.colors)-1]
	w.b.WriteString("<" + t.Name.Local)
	var classes []string
	var viewBox string
	for _, a := range t.Attr {
		if isData(a.Name.Local) {
			continue
		}
		switch a.Name.Local {
		case "class":
			classes = strings.Fields(a.Value)
		case "viewBox":
			viewBox = a.Value
			fallthrough
		default:
			w.attribute(a.Name.Local, a.Value)
		}
	}
	classes = slices.DeleteFunc(classes, func(c string) bool {
		of, isColor := w.style.color[c]
		if isColor {
			color = of
		}
		return isColor
	})
	w.colors = append(w.colors, color)
	declarations, err := w.style.of(classes)
	if err != nil {
		return err
	}
	for _, d := range declarations {
		if d[0] == "stroke-dasharray" && slices.ContainsFunc(t.Attr, func(a xml.Attr) bool { return a.Name.Local == d[0] }) {
			continue // a line's own
		}
		w.declaration(d[0], strings.ReplaceAll(d[1], "currentColor", color))
	}
	switch t.Name.Local {
	case "text":
		w.attribute("font-family", standaloneText)
		w.attribute("font-size", "13")
		w.attribute("fill", w.style.ink)
	case "svg":
		return w.frame(viewBox)
	}
	w.b.WriteString(">")
	return nil
}

// frame ends the opening of the picture, with its size and the paper that it is on.
func (w *standaloneWriter) frame(viewBox string) error {
	box := strings.Fields(viewBox)
	if len(box) != 4 {
		return fmt.Errorf("the viewBox %q is not four numbers", viewBox)
	}
	w.attribute("xmlns", "http://www.w3.org/2000/svg")
	w.attribute("width", box[2])
	w.attribute("height", box[3])
	fmt.Fprintf(&w.b, `><rect x="%s" y="%s" width="%s" height="%s" fill="%s"/>`, box[0], box[1], box[2], box[3], w.style.paper)
	return nil
}

// declaration writes a rule of the stylesheet as an attribute. #rrggbbaa, which not every program
// knows, becomes a colour and its opacity.
func (w *standaloneWriter) declaration(name, value string) {
	if len(value) == 9 && value[0] == '#' {
		if alpha, err := strconv.ParseUint(value[7:], 16, 8); err == nil {
			w.attribute(name+"-opacity", strconv.FormatFloat(float64(alpha)/255, 'f', 3, 64))
			value = value[:7]
		}
	}
	w.attribute(name, value)
}

func (w *standaloneWriter) attribute(name, value string) {
	w.b.WriteString(" " + name + `="`)
	_ = xml.EscapeText(&w.b, []byte(value)) // a strings.Builder does not fail
	w.b.WriteString(`"`)
}
