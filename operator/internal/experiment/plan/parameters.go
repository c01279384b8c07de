package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
)

// maxValueLength is the longest text of a value. The CRD's schema cannot bound it, since a value
// may be a number.
const maxValueLength = 1024

// builtinAxes are the settings besides parameters that an axis with values may have. No parameter
// may have such a name.
var builtinAxes = []string{"clients", "f", "network", "rate", "shards"}

// BuiltinAxes are the names of axes with values that set no parameter.
func BuiltinAxes() []string { return slices.Clone(builtinAxes) }

// systemAxis is the axis of an experiment with several systems.
const systemAxis = "system"

// declared has the parameters of one System and its workload, by name.
type declared map[string]v1alpha1.Parameter

func declare(system v1alpha1.SystemSpec, workload v1alpha1.Workload) declared {
	d := declared{}
	for _, p := range system.Parameters {
		d[p.Name] = p
	}
	for _, p := range workload.Parameters {
		d[p.Name] = p
	}
	return d
}

func (d declared) names() []string {
	names := make([]string, 0, len(d))
	for name := range d {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// checkValue returns the value in its canonical form. Its error states the correct form.
func checkValue(p v1alpha1.Parameter, v v1alpha1.Value) (v1alpha1.Value, error) {
	if len(v.String()) > maxValueLength {
		return v, fmt.Errorf("is longer than %d characters", maxValueLength)
	}
	canonical, number, err := parseValue(p.Type, v.String())
	if err != nil {
		return v, fmt.Errorf("%w; %s", err, describeParameter(p))
	}
	if len(p.Allowed) > 0 && !slices.ContainsFunc(p.Allowed, func(a v1alpha1.Value) bool { return sameValue(p.Type, a, canonical) }) {
		return v, fmt.Errorf("is not one of the allowed values; %s", describeParameter(p))
	}
	for _, bound := range []struct {
		value *v1alpha1.Value
		sign  float64
	}{{p.Minimum, 1}, {p.Maximum, -1}} {
		if bound.value == nil {
			continue
		}
		if _, limit, err := parseValue(p.Type, bound.value.String()); err == nil && (number-limit)*bound.sign < 0 {
			return v, fmt.Errorf("is out of bounds; %s", describeParameter(p))
		}
	}
	return canonical, nil
}

// parseValue reads a text as a value of the type. Bounds are compared with number. An integer
// beyond 2^53 loses its last bits in it, which no bound in practice notices.
func parseValue(t v1alpha1.ParameterType, text string) (canonical v1alpha1.Value, number float64, err error) {
	canonical = v1alpha1.NewValue(text)
	switch t {
	case v1alpha1.ParameterInteger:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return canonical, 0, fmt.Errorf("is not a 64-bit integer such as 10")
		}
		return v1alpha1.NewValue(strconv.FormatInt(n, 10)), float64(n), nil
	case v1alpha1.ParameterDecimal:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return canonical, 0, fmt.Errorf("is not a decimal number such as 0.75")
		}
		return canonical, x, nil
	case v1alpha1.ParameterBoolean:
		if text != "true" && text != "false" {
			return canonical, 0, fmt.Errorf("is not a boolean, true or false")
		}
		return canonical, 0, nil
	case v1alpha1.ParameterDuration:
		d, err := v1alpha1.Duration(text).Parse()
		if err != nil || text == "" {
			return canonical, 0, fmt.Errorf("is not a duration such as 4ms or 1.5s")
		}
		return canonical, float64(d), nil
	}
	return canonical, 0, nil
}

// sameValue reports whether two texts are the same value of the type.
func sameValue(t v1alpha1.ParameterType, a, b v1alpha1.Value) bool {
	ca, na, errA := parseValue(t, a.String())
	cb, nb, errB := parseValue(t, b.String())
	if errA != nil || errB != nil {
		return false
	}
	if t == v1alpha1.ParameterDecimal || t == v1alpha1.ParameterDuration {
		return na == nb
	}
	return ca.Equal(cb)
}

// describeParameter describes the values that a parameter accepts.
func describeParameter(p v1alpha1.Parameter) string {
	var b strings.Builder
	fmt.Fprintf(&b, "parameter %q takes ", p.Name)
	b.WriteString(map[v1alpha1.ParameterType]string{
		v1alpha1.ParameterString:   "a string",
		v1alpha1.ParameterInteger:  "an Integer",
		v1alpha1.ParameterDecimal:  "a Decimal",
		v1alpha1.ParameterBoolean:  "a Boolean (true or false)",
		v1alpha1.ParameterDuration: "a Duration (such as 4ms)",
	}[p.Type])
	if p.Minimum != nil {
		fmt.Fprintf(&b, ", at least %s", p.Minimum)
	}
	if p.Maximum != nil {
		fmt.Fprintf(&b, ", at most %s", p.Maximum)
	}
	if len(p.Allowed) > 0 {
		allowed := make([]string, len(p.Allowed))
		for i, a := range p.Allowed {
			allowed[i] = a.String()
		}
		fmt.Fprintf(&b, ", one of: %s", strings.Join(allowed, ", "))
	}
	return b.String()
}
