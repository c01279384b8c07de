package raster

import (
	"encoding/hex"
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"
)

// number reads an attribute; NaN as the default means that it must be there.
func (e *element) number(name string, missing float64) (float64, error) {
	text, ok := e.attributes[name]
	if !ok && !math.IsNaN(missing) {
		return missing, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%s of %s is %q, not a number", name, e.name, text)
	}
	return v, nil
}

// color reads #rgb or #rrggbb with its opacity; nil for none.
func (e *element) color(name, missing string) (color.Color, error) {
	text, ok := e.attributes[name]
	if !ok {
		text = missing
	}
	if text == "none" {
		return nil, nil
	}
	digits := strings.TrimPrefix(text, "#")
	if len(digits) == 3 {
		digits = string([]byte{digits[0], digits[0], digits[1], digits[1], digits[2], digits[2]})
	}
	rgb, err := hex.DecodeString(digits)
	if err != nil || len(rgb) != 3 || !strings.HasPrefix(text, "#") {
		return nil, fmt.Errorf("%s of %s is %q, not #rgb, #rrggbb or none", name, e.name, text)
	}
	opacity, err := e.number(name+"-opacity", 1)
	if err != nil {
		return nil, err
	}
	if opacity < 0 || opacity > 1 {
		return nil, fmt.Errorf("%s-opacity of %s is %g, not from 0 to 1", name, e.name, opacity)
	}
	return color.NRGBA{R: rgb[0], G: rgb[1], B: rgb[2], A: uint8(math.Round(opacity * 255))}, nil
}

func (e *element) dashes() ([]float64, error) {
	text := e.attributes["stroke-dasharray"]
	if text == "" || text == "none" {
		return nil, nil
	}
	var dashes []float64
	for field := range strings.FieldsSeq(text) {
		v, err := strconv.ParseFloat(field, 64)
		if err != nil || v <= 0 {
			return nil, fmt.Errorf("stroke-dasharray of %s is %q, not lengths above 0", e.name, text)
		}
		dashes = append(dashes, v)
	}
	return dashes, nil
}
