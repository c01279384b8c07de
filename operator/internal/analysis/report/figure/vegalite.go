package figure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/analysis/report/plot"
)

// vegaSchema is the version of Vega-Lite that the figures are written for.
const vegaSchema = "https://vega.github.io/schema/vega-lite/v5.json"

// object is an object of JSON. Its names are written in the order of the alphabet, so that the same
// figure gives the same bytes.
type object = map[string]any

// VegaLite writes a figure as a Vega-Lite specification with its data: for the Vega editor,
// Observable and Altair. Sizes are those of the style, in pixels of 1/96 inch.
func VegaLite(f plot.Figure, s Style) ([]byte, error) {
	spec := object{
		"$schema":     vegaSchema,
		"description": f.Describe(),
		"width":       pixels(s.Width), "height": pixels(s.Height),
		"autosize": object{"type": "fit-x", "contains": "padding"},
		"config":   vegaConfig(s),
	}
	if len(f.Bars) > 0 {
		vegaBars(spec, f, s)
	} else {
		vegaCurves(spec, f)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(spec); err != nil {
		return nil, fmt.Errorf("write the figure for Vega-Lite: %w", err)
	}
	return b.Bytes(), nil
}

func pixels(l Length) float64 { return math.Round(float64(l) * 96 / 72) }

func vegaConfig(s Style) object {
	font, size := "Liberation Serif, serif", math.Round(float64(s.FontSize)*96/72*10)/10
	if s.Sans {
		font = "Liberation Sans, sans-serif"
	}
	return object{
		"font":   font,
		"axis":   object{"labelFontSize": size, "titleFontSize": size, "titleFontWeight": "normal", "gridColor": "#e5e5e5"},
		"legend": object{"labelFontSize": size, "titleFontSize": size, "symbolOpacity": 1},
		"view":   object{"stroke": "#999"},
	}
}

// vegaAxis is a quantitative channel.
func vegaAxis(field string, a plot.FigureAxis) object {
	scale := object{"domain": []float64{a.Min, a.Max}, "nice": false}
	if a.Log {
		scale["type"] = "log"
	} else {
		scale["zero"] = false
	}
	return object{"field": field, "type": "quantitative", "title": a.Label, "scale": scale, "axis": object{"values": a.Ticks}}
}

// vegaShapes of points, by a curve's style.
var vegaShapes = []string{"circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right", "triangle-left"}

// vegaCurves has a layer for each kind of mark, all of which choose their rows of the same data.
func vegaCurves(spec object, f plot.Figure) {
	var rows []object
	var names, colors, shapes []string
	for _, c := range f.Curves {
		names, colors, shapes = append(names, c.Name), append(colors, c.Color), append(shapes, vegaShapes[c.Style%len(vegaShapes)])
		for i, p := range c.Points {
			row := object{"curve": c.Name, "i": i, "x": p.X, "y": p.Y, "paper": c.Paper, "line": !c.Dots, "dots": !c.Line, "band": c.Band && p.Interval, "interval": p.Interval}
			if p.Interval {
				row["xlow"], row["xhigh"], row["ylow"], row["yhigh"] = p.XLow, min(p.XHigh, f.X.Max), p.YLow, min(p.YHigh, f.Y.Max)
			}
			rows = append(rows, row)
		}
	}
	x, y := vegaAxis("x", f.X), vegaAxis("y", f.Y)
	color := object{"field": "curve", "type": "nominal", "title": nil, "scale": object{"domain": names, "range": colors}, "legend": vegaLegend(names)}
	layer := func(filter string, mark object, encoding object) object {
		encoding["color"] = color
		return object{"transform": []object{{"filter": filter}}, "mark": mark, "encoding": encoding}
	}
	dashed := object{"condition": object{"test": "datum.paper", "value": []int{4, 2}}, "value": []int{1, 0}}
	hollow := object{"condition": object{"test": "datum.paper", "value": 0}, "value": 1}
	shape := object{"field": "curve", "type": "nominal", "title": nil, "scale": object{"domain": names, "range": shapes}, "legend": vegaLegend(names)}
	tooltip := []object{{"field": "curve"}, {"field": "x", "title": f.X.Label}, {"field": "y", "title": f.Y.Label}, {"field": "ylow"}, {"field": "yhigh"}}
	layers := []object{
		layer("datum.band", object{"type": "area", "opacity": 0.22}, object{"x": x, "y": vegaAxis("ylow", f.Y), "y2": object{"field": "yhigh"}}),
		layer("datum.interval && !datum.band && datum.yhigh > datum.ylow", object{"type": "rule", "strokeWidth": 1}, object{"x": x, "y": vegaAxis("ylow", f.Y), "y2": object{"field": "yhigh"}}),
		layer("datum.interval && datum.xhigh > datum.xlow", object{"type": "rule", "strokeWidth": 1}, object{"x": vegaAxis("xlow", f.X), "x2": object{"field": "xhigh"}, "y": y}),
		layer("datum.line", object{"type": "line", "clip": true}, object{"x": x, "y": y, "order": object{"field": "i"}, "strokeDash": dashed}),
		layer("datum.dots", object{"type": "point", "filled": true, "size": 36, "strokeWidth": 1, "opacity": 1}, object{"x": x, "y": y, "shape": shape, "fillOpacity": hollow, "stroke": color, "tooltip": tooltip}),
	}
	for _, m := range f.Marks {
		dash := []int{1, 0}
		if m.Ends {
			dash = []int{4, 2}
		}
		layers = append(layers, object{"data": object{"values": []object{{"x": m.X, "mark": m.Name}}}, "mark": object{"type": "rule", "color": "#333", "strokeDash": dash},
			"encoding": object{"x": x, "tooltip": object{"field": "mark", "type": "nominal"}}})
	}
	if f.One != "" {
		layers = append(layers, object{"data": object{"values": []object{{"y": 1, "one": f.One}}}, "mark": object{"type": "rule", "color": "#333", "strokeDash": []int{4, 2}},
			"encoding": object{"y": y, "tooltip": object{"field": "one", "type": "nominal"}}})
	}
	spec["data"], spec["layer"] = object{"values": rows}, layers
}

// shortName is how long names may be for two columns of a legend.
const shortName = 20

// vegaLegend is above the frame; a figure with one curve has none.
func vegaLegend(names []string) any {
	if len(names) < 2 {
		return nil
	}
	columns := 2
	if slices.ContainsFunc(names, func(name string) bool { return len(name) > shortName }) {
		columns = 1
	}
	return object{"orient": "top", "columns": columns, "labelLimit": 400}
}

// barLabel names a bar among all of a figure.
func barLabel(b plot.FigureBar) string {
	if b.Group == "" {
		return b.Name
	}
	return b.Group + ", " + b.Name
}

// vegaBars has a row for each bar, or for each part of each.
func vegaBars(spec object, f plot.Figure, s Style) {
	if s.FreeHeight {
		spec["height"] = pixels(barHeight(barRows(f), 0, s))
	}
	var rows []object
	var order, names, colors []string
	for i, b := range f.Bars {
		label := barLabel(b)
		order = append(order, label)
		row := object{"bar": label, "i": i, "of": "measured", "value": b.Value, "interval": b.Interval, "key": label, "total": true, "low": b.Low, "high": b.High}
		if b.HasPaper {
			row["paper"] = b.Paper
		}
		rows = append(rows, row)
		if len(f.Parts) == 0 {
			names, colors = append(names, label), append(colors, b.Color)
		}
		for of, parts := range [][]float64{b.Parts, b.PaperParts} {
			for k, v := range parts {
				rows = append(rows, object{"bar": label, "i": k, "of": []string{"measured", "paper"}[of], "value": v, "key": f.Parts[k].Name, "total": false})
			}
		}
	}
	for _, p := range f.Parts {
		names, colors = append(names, p.Name), append(colors, p.Color)
	}
	x := vegaAxis("value", f.X)
	y := object{"field": "bar", "type": "nominal", "sort": order, "title": f.Y.Label, "axis": object{"labelLimit": 300}}
	color := object{"field": "key", "type": "nominal", "title": nil, "scale": object{"domain": names, "range": colors}, "legend": nil}
	of := func(filter string, mark, encoding object) object {
		encoding["y"] = y
		return object{"transform": []object{{"filter": filter}}, "mark": mark, "encoding": encoding}
	}
	axis := func(field string) object { return vegaAxis(field, f.X) }
	var layers []object
	switch {
	case len(f.Parts) > 0:
		color["legend"] = vegaLegend(names)
		bars := of("!datum.total", object{"type": "bar"}, object{"x": x, "color": color, "order": object{"field": "i"}})
		bars["encoding"].(object)["yOffset"] = object{"field": "of", "sort": []string{"measured", "paper"}}
		bars["encoding"].(object)["opacity"] = object{"condition": object{"test": "datum.of == 'paper'", "value": 0.45}, "value": 1}
		layers = append(layers, bars)
	case f.X.Log:
		layers = append(layers, of("datum.total", object{"type": "point", "filled": true, "size": 40}, object{"x": x, "color": color}))
	default:
		layers = append(layers, of("datum.total", object{"type": "bar", "opacity": 0.4}, object{"x": x, "color": color}))
	}
	layers = append(layers, of("datum.total && datum.interval", object{"type": "rule", "strokeWidth": 1.5, "color": "#333"}, object{"x": axis("low"), "x2": object{"field": "high"}}))
	if len(f.Parts) == 0 {
		layers = append(layers, of("datum.total && isValid(datum.paper)", object{"type": "point", "filled": false, "size": 40, "strokeWidth": 1.5}, object{"x": axis("paper"), "color": color}))
	}
	if f.One != "" {
		layers = append(layers, object{"data": object{"values": []object{{"x": 1}}}, "mark": object{"type": "rule", "color": "#333", "strokeDash": []int{4, 2}}, "encoding": object{"x": axis("x")}})
	}
	spec["data"], spec["layer"] = object{"values": rows}, layers
}
