package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/model/network"
	"assay.dev/assay/operator/internal/results/stats"
	"assay.dev/assay/operator/internal/text/suggest"
)

// maxLabelLength is the longest value of an axis in results, in characters.
const maxLabelLength = 128

// axis is one dimension of the sweep.
type axis struct {
	name    string
	path    *field.Path
	choices []choice
	// rows: the axis tells the rows of a script apart. One trial gives the rows of all its values.
	rows bool
}

// choice is one value of an axis, with the settings that it makes.
type choice struct {
	label      string
	path       *field.Path
	system     *int
	clients    *int32
	rate       *int64
	f          *int32
	shards     *int32
	network    v1alpha1.NetworkProfile
	links      []v1alpha1.RegionLink
	parameters map[string]v1alpha1.Value
	faults     []string
}

// sets lists the settings of the choice, in words for an error.
func (c choice) sets() []string {
	var what []string
	if c.clients != nil {
		what = append(what, "the number of clients")
	}
	if c.network != "" || len(c.links) > 0 {
		what = append(what, "the network")
	}
	for _, name := range sortedKeys(c.parameters) {
		what = append(what, fmt.Sprintf("parameter %q", name))
	}
	return what
}

// resolveAxes makes the axes of the sweep and checks all their settings.
func (e *axisBuilder) resolveAxes() {
	if len(e.spec.Systems) > 1 {
		a := axis{name: systemAxis, path: field.NewPath("spec", "systems")}
		for i, s := range e.spec.Systems {
			a.choices = append(a.choices, choice{label: s.Name, path: a.path.Index(i), system: &i})
		}
		e.axes = append(e.axes, a)
	}
	for i, written := range e.spec.Sweep {
		path := e.origin.sweep[i]
		switch {
		case written.Axis == systemAxis:
			e.add(field.Invalid(path.Child("axis"), written.Axis, "is taken: the systems under spec.systems make that axis"))
		case slices.ContainsFunc(e.axes, func(a axis) bool { return a.name == written.Axis }):
			e.add(field.Duplicate(path.Child("axis"), written.Axis))
		case !oneOf(len(written.Values) > 0, len(written.Points) > 0, written.Search != nil):
			e.add(field.Invalid(path, written.Axis, "an axis has either values, points or a search, and one of them only"))
		case written.Search != nil:
			e.axes = append(e.axes, e.searchAxis(path.Child("search"), written))
		case len(written.Values) > 0 && (scripts{e}).rowAxis(path, written.Axis):
			e.axes = append(e.axes, scripts{e}.rowsAxis(path, written))
		case len(written.Values) > 0:
			e.axes = append(e.axes, e.valuesAxis(path, written))
		default:
			e.axes = append(e.axes, e.pointsAxis(path, written))
		}
	}
	e.checkSetOnce()
	scripts{e}.check()
	e.checkSize()
}

// valuesAxis makes an axis of values for one setting, which the name of the axis names.
func (e *axisBuilder) valuesAxis(path *field.Path, written v1alpha1.Axis) axis {
	a := axis{name: written.Axis, path: path}
	if !slices.Contains(builtinAxes, written.Axis) && !e.declaredSomewhere(written.Axis) {
		known := slices.Clone(builtinAxes)
		for _, s := range e.systems {
			known = append(known, s.declared.names()...)
			if s.spec.Script != nil {
				for _, axis := range s.spec.Script.Results.Axes {
					known = append(known, axis.Name)
				}
			}
		}
		slices.Sort(known)
		e.add(field.Invalid(path.Child("axis"), written.Axis, suggest.Unknown("an axis with values can set no", written.Axis, slices.Compact(known))))
		return a
	}
	if written.Axis == "rate" && e.spec.Clients.Loop == v1alpha1.LoopClosed {
		e.add(field.Invalid(path.Child("axis"), written.Axis, "only an Open loop has a rate; set spec.clients.loop: Open, or sweep clients"))
	}
	for j, v := range written.Values {
		c, ok := e.valueChoice(path.Child("values").Index(j), written.Axis, v)
		if !ok {
			continue
		}
		if slices.ContainsFunc(a.choices, func(other choice) bool { return other.label == c.label }) {
			e.add(field.Duplicate(c.path, v.String()))
			continue
		}
		a.choices = append(a.choices, c)
	}
	return a
}

func (e *systemChecker) declaredSomewhere(name string) bool {
	return slices.ContainsFunc(e.systems, func(s system) bool { _, ok := s.declared[name]; return ok })
}

// valueChoice makes one value of a values axis. It returns false if the value is wrong.
func (e *axisBuilder) valueChoice(path *field.Path, name string, v v1alpha1.Value) (choice, bool) {
	c := choice{label: v.String(), path: path}
	before := len(e.errs)
	var n int64
	switch name {
	case "clients":
		n = e.integer(path, v, 1, 100000)
		c.clients = ptr(int32(n))
	case "rate":
		n = e.integer(path, v, 1, 100000000)
		c.rate = &n
	case "f":
		n = e.integer(path, v, 0, 33)
		c.f = ptr(int32(n))
	case "shards":
		n = e.integer(path, v, 1, 64)
		c.shards = ptr(int32(n))
	case "network":
		c.network = v1alpha1.NetworkProfile(v.String())
		if !slices.Contains(network.Profiles, c.network) {
			e.add(field.NotSupported(path, c.network, network.Profiles))
		}
		return c, len(e.errs) == before
	default:
		e.checkSetting(path, name, v, e.systems)
		c.parameters = map[string]v1alpha1.Value{name: v}
		if p, ok := e.systems[0].declared[name]; ok {
			if canonical, err := checkValue(p, v); err == nil {
				c.label = canonical.String()
			}
		}
		if c.label == "" || len(c.label) > maxLabelLength || strings.ContainsAny(c.label, "\n\r\x00") {
			e.add(field.Invalid(path, c.label, fmt.Sprintf("the value of an axis must be 1 to %d characters on one line", maxLabelLength)))
		}
		return c, len(e.errs) == before
	}
	c.label = strconv.FormatInt(n, 10)
	return c, len(e.errs) == before
}

// integer reads a value of a built-in axis.
func (e *axisBuilder) integer(path *field.Path, v v1alpha1.Value, least, most int64) int64 {
	n, err := strconv.ParseInt(v.String(), 10, 64)
	if err != nil || n < least || n > most {
		e.add(field.Invalid(path, v.String(), fmt.Sprintf("must be an integer from %d to %d", least, most)))
		return least
	}
	return n
}

// pointsAxis makes an axis of named points.
func (e *axisBuilder) pointsAxis(path *field.Path, written v1alpha1.Axis) axis {
	a := axis{name: written.Axis, path: path}
	var known []string
	for _, f := range fault.WithoutFlameGraphs(e.spec.Faults) { // flame graphs act in trials of their own
		known = append(known, f.Name)
	}
	for j, p := range written.Points {
		at := path.Child("points").Index(j)
		for _, name := range sortedKeys(p.Parameters) {
			e.checkSetting(at.Child("parameters").Key(name), name, p.Parameters[name], e.systems)
		}
		for k, name := range p.Faults {
			if !slices.Contains(known, name) {
				e.add(field.Invalid(at.Child("faults").Index(k), name, suggest.Unknown("spec.faults has no", name, known)))
			}
		}
		if slices.ContainsFunc(a.choices, func(other choice) bool { return other.label == p.Name }) {
			e.add(field.Duplicate(at.Child("name"), p.Name))
			continue
		}
		a.choices = append(a.choices, choice{label: p.Name, path: at, clients: p.Clients, parameters: p.Parameters, faults: p.Faults, network: p.Network, links: p.Links})
	}
	return a
}

// checkSetOnce refuses two axes with the same setting, since the point would not say which one
// wins.
func (e *axisBuilder) checkSetOnce() {
	owner := map[string]string{}
	for _, a := range e.axes {
		mine := map[string]bool{}
		for _, c := range a.choices {
			for _, what := range c.sets() {
				if other, taken := owner[what]; taken {
					e.add(field.Invalid(c.path, c.label, fmt.Sprintf("sets %s, which axis %q sets too; only one axis may", what, other)))
				}
				mine[what] = true
			}
		}
		for what := range mine {
			if _, taken := owner[what]; !taken {
				owner[what] = a.name
			}
		}
	}
}

// checkSize bounds the number of points and trials before any of them is made.
func (e *axisBuilder) checkSize() {
	points := 1
	for _, a := range e.axes {
		points *= max(1, len(a.choices))
		if points > MaxPoints {
			e.add(field.Invalid(field.NewPath("spec", "sweep"), sizes(e.axes),
				fmt.Sprintf("the axes multiply to more than %d points; use fewer or shorter axes, or several experiments", MaxPoints)))
			return
		}
	}
	measured := points
	if e.search != nil && len(e.errs) > 0 {
		return // its axis may be missing
	}
	if e.search != nil {
		measured = min(points, e.search.MaxTrials*points/len(e.axes[e.search.axis].choices))
	}
	if each := len(stats.Metrics) + len(e.spec.Measurements); measured*each > MaxAggregates {
		e.add(field.TooMany(field.NewPath("spec", "measurements"), len(e.spec.Measurements), max(0, MaxAggregates/measured-len(stats.Metrics))))
	}
	if e.search != nil {
		e.checkSearch(points)
		return
	}
	e.checkRepetitions(points)
}

// sizes writes the lengths of the axes: "clients (50) x rate (40)".
func sizes(axes []axis) string {
	parts := make([]string, len(axes))
	for i, a := range axes {
		parts[i] = fmt.Sprintf("%s (%d)", a.name, len(a.choices))
	}
	return strings.Join(parts, " x ")
}

// oneOf reports whether exactly one of the conditions holds.
func oneOf(conditions ...bool) bool {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n == 1
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

func ptr[T any](v T) *T { return &v }
