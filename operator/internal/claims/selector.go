package claims

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"assay.dev/assay/operator/internal/results"
)

// coordinate is one axis=value of a selector, in the order in which it is written.
type coordinate struct {
	axis, value string
	keyID       int64
	valueID     int64
	quoted      bool
}

// selector reads the arguments of a function that reads results. The types are checked already: it has one map argument, or none.
func (p *program) selector(call celast.CallExpr) ([]coordinate, error) {
	var at []coordinate
	if len(call.Args()) == 0 {
		return nil, nil
	}
	argument := call.Args()[0]
	if argument.Kind() != celast.MapKind {
		return nil, p.errorAt(argument.ID(), "write every argument as axis=value")
	}
	for _, entry := range argument.AsMap().Entries() {
		e := entry.AsMapEntry()
		axis, ok := scalar(e.Key())
		if !ok {
			return nil, p.errorAt(e.Key().ID(), "an axis must be written out")
		}
		value, ok := scalar(e.Value())
		if !ok {
			return nil, p.errorAt(e.Value().ID(), "the value of axis %s must be a text, a number, true or false", axis)
		}
		if slices.ContainsFunc(at, func(c coordinate) bool { return c.axis == axis }) {
			return nil, p.errorAt(e.Key().ID(), "axis %s is given twice", axis)
		}
		quoted := e.Value().Kind() == celast.LiteralKind && e.Value().AsLiteral().Type() == types.StringType
		at = append(at, coordinate{axis: axis, value: value, keyID: e.Key().ID(), valueID: e.Value().ID(), quoted: quoted})
	}
	return at, nil
}

// scalar is the text of a literal. A duration literal (4ms) is the text that its author wrote.
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

// checkSelector compares a selector with the axes that exist.
func (p *program) checkSelector(f function, call celast.CallExpr, id int64, axes []results.Axis) error {
	at, err := p.selector(call)
	if err != nil {
		return err
	}
	for _, c := range at {
		i := slices.IndexFunc(axes, func(a results.Axis) bool { return a.Name == c.axis })
		if i < 0 {
			return p.errorAt(c.keyID, "there is no axis %s; %s", c.axis, listAxes(axes))
		}
		if !slices.ContainsFunc(axes[i].Values, func(v string) bool { return sameValue(v, c.value) }) {
			return p.errorAt(c.valueID, "axis %s has no value %s; its values are %s", c.axis, c.value, strings.Join(axes[i].Values, ", "))
		}
	}
	if f.greatest {
		return nil
	}
	for _, a := range axes {
		given := slices.ContainsFunc(at, func(c coordinate) bool { return c.axis == a.Name })
		if !given && len(a.Values) > 1 {
			return p.errorAt(id, "%s reads one point: give axis %s one of its values %s", call.FunctionName(), a.Name, strings.Join(a.Values, ", "))
		}
	}
	return nil
}

func listAxes(axes []results.Axis) string {
	if len(axes) == 0 {
		return "the experiment has no axes"
	}
	names := make([]string, len(axes))
	for i, a := range axes {
		names[i] = a.Name
	}
	return "the axes are " + strings.Join(names, ", ")
}

// matches reports whether a point has all coordinates.
func matches(point results.PointResult, at []coordinate) bool {
	for _, c := range at {
		if value, ok := point.Coordinates[c.axis]; !ok || !sameValue(value, c.value) {
			return false
		}
	}
	return true
}

// sameValue compares values of an axis: as text, as numbers (0.5 is 0.50) or as durations (4ms is 4000us).
func sameValue(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX == nil && errY == nil {
		return x == y
	}
	d, errD := time.ParseDuration(a)
	e, errE := time.ParseDuration(b)
	return errD == nil && errE == nil && d == e
}

// showPoint writes the coordinates of a point.
func showPoint(coordinates map[string]string) string {
	if len(coordinates) == 0 {
		return "the only point"
	}
	var parts []string
	for _, axis := range sortedKeys(coordinates) {
		parts = append(parts, fmt.Sprintf("%s=%s", axis, coordinates[axis]))
	}
	return strings.Join(parts, ", ")
}
