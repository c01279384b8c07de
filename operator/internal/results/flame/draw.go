package flame

import (
	"fmt"
	"hash/fnv"
	"html"
	"maps"
	"slices"
	"strings"
)

// frame is a function with its callers, which are the frames below it.
type frame struct {
	name    string
	samples int64 // of it and of all that it called
	calls   map[string]*frame
}

// tree puts the stacks together.
func (f Folded) tree() *frame {
	root := &frame{name: "all", calls: map[string]*frame{}}
	for stack, n := range f {
		root.samples += n
		at := root
		for name := range strings.SplitSeq(stack, ";") {
			next := at.calls[name]
			if next == nil {
				next = &frame{name: name, calls: map[string]*frame{}}
				at.calls[name] = next
			}
			next.samples += n
			at = next
		}
	}
	return root
}

// The picture, in pixels. A frame that is narrower than thinnest is not drawn, nor what it calls.
const (
	width, row, margin = 1200.0, 17.0, 10.0
	thinnest           = 0.5
	letter             = 6.6 // of the type that names are in
)

// Title is the title of a picture, and the text below it.
type Title struct{ Name, Says string }

// Draw makes a picture (SVG). The outermost function is at the bottom. Each box is as wide as its
// share of the samples, and boxes side by side are in the order of their names, not of time. A
// pointer on a box, or a reader of screens, gets its name and numbers.
func (f Folded) Draw(t Title) []byte {
	root := f.tree()
	p := &picture{scale: (width - 2*margin) / float64(max(1, root.samples)), of: root.samples}
	p.depth = p.deepest(root, 1)
	top := 3*row + margin
	p.bottom = top + float64(p.depth)*row
	height := p.bottom + margin
	fmt.Fprintf(&p.b, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"+
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" font-family="monospace" font-size="11" role="img">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&p.b, `<title>%s</title><rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n", text(t.Name))
	fmt.Fprintf(&p.b, `<text x="%.0f" y="%.0f" font-size="14" font-weight="bold">%s</text>`+"\n", margin, margin+row, text(t.Name))
	fmt.Fprintf(&p.b, `<text x="%.0f" y="%.0f">%s</text>`+"\n", margin, margin+2*row, text(t.Says))
	p.draw(root, margin, 1)
	p.b.WriteString("</svg>\n")
	return []byte(p.b.String())
}

type picture struct {
	b      strings.Builder
	scale  float64 // pixels of a sample
	of     int64   // samples in all
	depth  int
	bottom float64
}

// deepest is the level of the highest box that is drawn.
func (p *picture) deepest(f *frame, level int) int {
	most := level
	for _, c := range f.calls {
		if float64(c.samples)*p.scale >= thinnest {
			most = max(most, p.deepest(c, level+1))
		}
	}
	return most
}

func (p *picture) draw(f *frame, x float64, level int) {
	wide, y := float64(f.samples)*p.scale, p.bottom-float64(level)*row
	if wide < thinnest {
		return
	}
	says := fmt.Sprintf("%s: %d samples, %.1f%%", f.name, f.samples, 100*float64(f.samples)/float64(p.of))
	fmt.Fprintf(&p.b, `<g><title>%s</title><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, text(says), x, y, max(wide-0.5, thinnest), row-1, color(f.name))
	if letters := int((wide - 6) / letter); letters >= 3 {
		fmt.Fprintf(&p.b, `<text x="%.1f" y="%.1f">%s</text>`, x+3, y+row-5, text(cut(f.name, letters)))
	}
	p.b.WriteString("</g>\n")
	for _, name := range slices.Sorted(maps.Keys(f.calls)) {
		c := f.calls[name]
		p.draw(c, x, level+1)
		x += float64(c.samples) * p.scale
	}
}

// cut shortens a name to so many letters.
func cut(name string, letters int) string {
	r := []rune(name)
	if len(r) <= letters {
		return name
	}
	return string(r[:letters-2]) + ".."
}

// text escapes text for XML, without characters that XML cannot hold.
func text(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0xfffe || r == 0xffff {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "?")))
}

// color of a function: warm, light enough for black letters, and the same in every picture.
func color(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // it never fails
	v := h.Sum32()
	return fmt.Sprintf("#%02x%02x%02x", 215+v%40, 140+v/40%80, 80+v/3200%50)
}
