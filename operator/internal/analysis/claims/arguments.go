package claims

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"assay.dev/assay/operator/internal/results"
)

// coordinate is one axis=value of a call, in the order in which it is written.
type coordinate struct {
	axis, value string
	keyID       int64
	valueID     int64
}

// arguments of a function that reads results.
type arguments struct {
	at []coordinate
	// pair is the axis with two values, in their order; nil for a function of one variant.
	pair []coordinate
	// metric that is read, and along which axis.
	metric  metric
	along   string
	alongID int64
	faultID int64
	nameID  int64 // of the name of a measurement
	series  string
}

// arguments reads the arguments of a call. The types are checked already: it has one map argument,
// or none.
func (p *program) arguments(call celast.CallExpr, id int64) (arguments, error) {
	f := functions[call.FunctionName()]
	a := arguments{metric: metric{name: f.metric}}
	if f.fault {
		a.metric.time = 1
	}
	seen := map[string]bool{}
	if len(call.Args()) == 1 {
		if call.Args()[0].Kind() != celast.MapKind {
			return a, p.errorAt(call.Args()[0].ID(), "write every argument as axis=value")
		}
		for _, entry := range call.Args()[0].AsMap().Entries() {
			name, err := p.argument(&a, f, entry.AsMapEntry())
			if err != nil {
				return a, err
			}
			if seen[name] {
				return a, p.errorAt(entry.AsMapEntry().Key().ID(), "%s is given twice", name)
			}
			seen[name] = true
		}
	}
	switch {
	case f.takes("of") && !seen["of"]:
		return a, p.errorAt(id, "%s needs of, the function that it is about, as in of='mean_latency'", call.FunctionName())
	case f.takes("along") && !seen["along"]:
		return a, p.errorAt(id, "%s needs along, the axis that the curve goes along, as in along='clients'", call.FunctionName())
	case f.takes("fault") && !seen["fault"]:
		return a, p.errorAt(id, "%s needs fault, the name of a fault, as in fault='crash'", call.FunctionName())
	case f.takes("name") && !seen["name"]:
		return a, p.errorAt(id, "%s needs name, one of the experiment's measurements, as in name='cpuSeconds'", call.FunctionName())
	case f.takes("series") && !seen["series"]:
		return a, p.errorAt(id, "%s needs series, the name of a reported curve, as in series='peaks'", call.FunctionName())
	case f.pair() && a.pair == nil:
		return a, p.errorAt(id, "%s needs two values of one axis, as in variant=['a', 'b']", call.FunctionName())
	case a.along != "" && seen[a.along]:
		return a, p.errorAt(a.alongID, "%s is what the curve goes along, and is given a value too", a.along)
	}
	return a, nil
}

// argument reads one argument.
func (p *program) argument(a *arguments, f function, entry celast.MapEntry) (name string, err error) {
	key, value := entry.Key(), entry.Value()
	name, ok := scalar(key)
	if !ok {
		return "", p.errorAt(key.ID(), "an axis must be written out")
	}
	if value.Kind() == celast.ListKind {
		return name, p.pairArgument(a, f, name, key, value)
	}
	text, ok := scalar(value)
	if !ok {
		return "", p.errorAt(value.ID(), "the value of %s must be a text, a number, true or false", name)
	}
	if !f.takes(name) {
		a.at = append(a.at, coordinate{axis: name, value: text, keyID: key.ID(), valueID: value.ID()})
		return name, nil
	}
	switch name {
	case "of":
		g, ok := functions[text]
		if !ok || !slices.Contains(ofNames(), text) {
			return "", p.errorAt(value.ID(), "of: %s", unknown("function of one point", text, ofNames(), "there are"))
		}
		a.metric = metric{name: g.metric}
	case "along":
		a.along, a.alongID = text, value.ID()
	case "fault":
		a.metric.fault, a.faultID = text, value.ID()
	case "name":
		a.metric.measurement, a.nameID = text, value.ID()
	case "series":
		a.series = text
	case "time":
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return "", p.errorAt(value.ID(), "time: %s must be 1 or more: which time of the fault, if it repeats", text)
		}
		a.metric.time = n
	}
	return name, nil
}

// pairArgument reads axis=['a', 'b'].
func (p *program) pairArgument(a *arguments, f function, axis string, key, list celast.Expr) error {
	if f.takes(axis) || !f.pair() {
		return p.errorAt(list.ID(), "%s takes one value", axis)
	}
	if a.pair != nil {
		return p.errorAt(key.ID(), "%s has two values already; one axis can", a.pair[0].axis)
	}
	for _, e := range list.AsList().Elements() {
		text, ok := scalar(e)
		if !ok {
			return p.errorAt(e.ID(), "the values of %s must be texts, numbers, true or false", axis)
		}
		a.pair = append(a.pair, coordinate{axis: axis, value: text, keyID: key.ID(), valueID: e.ID()})
	}
	if len(a.pair) != 2 || results.SameValue(a.pair[0].value, a.pair[1].value) {
		return p.errorAt(list.ID(), "%s needs two different values, as in ['a', 'b']", axis)
	}
	return nil
}

// scalar is the text of a literal. A duration literal (4ms) is the text that its author wrote; -1
// is one too.
func scalar(e celast.Expr) (string, bool) {
	if e.Kind() == celast.CallKind && e.AsCall().FunctionName() == "duration" {
		return scalar(e.AsCall().Args()[0])
	}
	if e.Kind() != celast.LiteralKind {
		return "", false
	}
	switch v := e.AsLiteral().(type) {
	case types.String:
		return string(v), true
	case types.Int:
		return strconv.FormatInt(int64(v), 10), true
	case types.Double:
		return strconv.FormatFloat(float64(v), 'g', -1, 64), true
	case types.Bool:
		return strconv.FormatBool(bool(v)), true
	}
	return "", false
}

// checkArguments compares the arguments of a call with the axes, faults and measurements that
// exist.
func (p *program) checkArguments(call celast.CallExpr, id int64, axes []results.Axis, faults, measurements []string) error {
	f, name := functions[call.FunctionName()], call.FunctionName()
	a, err := p.arguments(call, id)
	if err != nil {
		return err
	}
	for _, c := range slices.Concat(a.at, a.pair) {
		if err := p.checkCoordinate(c, axes); err != nil {
			return err
		}
	}
	if f.fault && !slices.Contains(faults, a.metric.fault) {
		if len(faults) == 0 {
			return p.errorAt(a.faultID, "there is no fault %s; the experiment has none", a.metric.fault)
		}
		return p.errorAt(a.faultID, "%s", unknown("fault", a.metric.fault, faults, "there are"))
	}
	if f.takes("name") && !slices.Contains(measurements, a.metric.measurement) {
		if len(measurements) == 0 {
			return p.errorAt(a.nameID, "there is no measurement %s; the experiment has none", a.metric.measurement)
		}
		return p.errorAt(a.nameID, "%s", unknown("measurement", a.metric.measurement, measurements, "there are"))
	}
	if f.curve() {
		if err := p.checkAlong(a, f, axes); err != nil {
			return err
		}
	}
	if f.open() || f.points == ofSeries {
		return nil // a series fixes axes that are not known here
	}
	if f.points == ofSearch {
		if axes, err = p.checkSearched(a, id, axes); err != nil {
			return err
		}
	}
	for _, axis := range axes {
		given := axis.Name == a.along || slices.ContainsFunc(slices.Concat(a.at, a.pair), func(c coordinate) bool { return c.axis == axis.Name })
		if given || len(axis.Values) < 2 {
			continue
		}
		what := "one point"
		if f.points == ofSearch {
			what = "one search"
		}
		if f.curve() {
			what = "one curve"
		}
		if f.pair() {
			what = "two variants"
		}
		return p.errorAt(id, "%s reads %s: give axis %s one of its values %s", name, what, axis.Name, strings.Join(axis.Values, ", "))
	}
	return nil
}

func (p *program) checkCoordinate(c coordinate, axes []results.Axis) error {
	i := slices.IndexFunc(axes, func(a results.Axis) bool { return a.Name == c.axis })
	if i < 0 {
		return p.errorAt(c.keyID, "%s", unknownAxis(c.axis, axes))
	}
	if !slices.ContainsFunc(axes[i].Values, func(v string) bool { return results.SameValue(v, c.value) }) {
		return p.errorAt(c.valueID, "axis %s has no value %s; its values are %s", c.axis, c.value, strings.Join(axes[i].Values, ", "))
	}
	return nil
}

// leastValues of an axis for a curve to have a knee, a trend, a crossing.
func leastValues(f function) int {
	if f.points == curvesOfTwo {
		return 2
	}
	return 3
}

func (p *program) checkAlong(a arguments, f function, axes []results.Axis) error {
	i := slices.IndexFunc(axes, func(x results.Axis) bool { return x.Name == a.along })
	if i < 0 {
		return p.errorAt(a.alongID, "%s", unknownAxis(a.along, axes))
	}
	if n := leastValues(f); len(axes[i].Values) < n {
		return p.errorAt(a.alongID, "axis %s has %d values; a curve along it needs %d", a.along, len(axes[i].Values), n)
	}
	if f.points == atKnee {
		return nil // the order of the points does not matter
	}
	for _, v := range axes[i].Values {
		if _, ok := axisNumber(v); !ok {
			return p.errorAt(a.alongID, "axis %s has the value %s, which is no number, so that its values have no distance", a.along, v)
		}
	}
	return nil
}

// axisNumber is the place of a value on an axis of numbers.
func axisNumber(value string) (float64, bool) {
	x, err := strconv.ParseFloat(value, 64)
	return x, err == nil && !math.IsNaN(x) && math.Abs(x) < 1e100
}

func unknownAxis(name string, axes []results.Axis) string {
	if len(axes) == 0 {
		return fmt.Sprintf("there is no axis %s; the experiment has no axes", name)
	}
	names := make([]string, len(axes))
	for i, a := range axes {
		names[i] = a.Name
	}
	return unknown("axis", name, names, "the axes are")
}

// matches reports whether a point has all coordinates.
func matches(point results.PointResult, at []coordinate) bool {
	for _, c := range at {
		if value, ok := point.Coordinates[c.axis]; !ok || !results.SameValue(value, c.value) {
			return false
		}
	}
	return true
}

// showPoint writes the coordinates of a point.
func showPoint(coordinates map[string]string) string {
	var parts []string
	for _, axis := range sortedKeys(coordinates) {
		parts = append(parts, fmt.Sprintf("%s=%s", axis, coordinates[axis]))
	}
	return cmp.Or(strings.Join(parts, ", "), "the only point")
}

func showCoordinates(at []coordinate) string {
	parts := make([]string, len(at))
	for i, c := range at {
		parts[i] = c.axis + "=" + c.value
	}
	return cmp.Or(strings.Join(parts, ", "), "any coordinates")
}
