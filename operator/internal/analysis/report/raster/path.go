package raster

import (
	"fmt"
	"strconv"

	"git.sr.ht/~sbinet/gg"
)

// arguments of each command of a path that is known. Small letters are relative to the place of the
// pen.
var arguments = map[byte]int{'M': 2, 'm': 2, 'L': 2, 'l': 2, 'H': 1, 'h': 1, 'V': 1, 'v': 1, 'C': 6, 'c': 6, 'Z': 0, 'z': 0}

// tracer follows a path on a canvas.
type tracer struct {
	canvas         *gg.Context
	x, y           float64 // of the pen
	startX, startY float64 // of the part that is being drawn
}

// trace adds an SVG path to the canvas's path.
func trace(canvas *gg.Context, d string) error {
	t := tracer{canvas: canvas}
	canvas.ClearPath()
	var command byte
	for i := 0; i < len(d); {
		switch c := d[i]; {
		case c == ' ' || c == ',':
			i++
			continue
		case c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z':
			command = c
			i++
		case command == 0 || command == 'Z' || command == 'z':
			return fmt.Errorf("the path %.40q has a number at %d where a command should be", d, i)
		}
		n, known := arguments[command]
		if !known {
			return fmt.Errorf("the path %.40q has the command %q", d, command)
		}
		var numbers [6]float64
		for k := range n {
			end, v, err := numberAt(d, i)
			if err != nil {
				return err
			}
			numbers[k], i = v, end
		}
		command = t.do(command, numbers)
	}
	return nil
}

// do carries out a command. It returns the command that further numbers without a command belong
// to.
func (t *tracer) do(command byte, n [6]float64) byte {
	var x, y float64
	absolute := command
	if command >= 'a' {
		x, y, absolute = t.x, t.y, command-'a'+'A'
	}
	next := command
	switch absolute {
	case 'M':
		t.x, t.y = x+n[0], y+n[1]
		t.startX, t.startY = t.x, t.y
		t.canvas.MoveTo(t.x, t.y)
		next = command - 'M' + 'L'
	case 'L':
		t.lineTo(x+n[0], y+n[1])
	case 'H':
		t.lineTo(x+n[0], t.y)
	case 'V':
		t.lineTo(t.x, y+n[0])
	case 'C':
		t.canvas.CubicTo(x+n[0], y+n[1], x+n[2], y+n[3], x+n[4], y+n[5])
		t.x, t.y = x+n[4], y+n[5]
	case 'Z':
		t.canvas.ClosePath()
		t.x, t.y = t.startX, t.startY
	}
	return next
}

func (t *tracer) lineTo(x, y float64) {
	t.x, t.y = x, y
	t.canvas.LineTo(x, y)
}

// numberAt reads the number that begins at i, after blanks and commas.
func numberAt(d string, i int) (end int, v float64, err error) {
	for i < len(d) && (d[i] == ' ' || d[i] == ',') {
		i++
	}
	end = i
	for end < len(d) && (d[end] >= '0' && d[end] <= '9' || d[end] == '.' || (d[end] == '-' || d[end] == '+') && end == i) {
		end++
	}
	if v, err = strconv.ParseFloat(d[i:end], 64); err != nil {
		return 0, 0, fmt.Errorf("the path %.40q has no number at %d", d, i)
	}
	return end, v, nil
}
