package pequin

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// How a configuration sweeps. "experiment_independent_vars" is a list of lists of names:
//
//	[["replication_protocol", ..., "client_total", ...], ["client_total", "client_processes_per_client_node", "client_threads_per_process"]]
//
// Each list is a loop inside the loop before it, and its variables change together. A variable is
// nested as deep as the number of lists that name it. Thus client_total[i][j] is the value in round
// i of the outer loop and round j of the inner loop. replication_protocol[i] is the value in round
// i of the outer loop. The artifact calls the rounds of the outer loop series. A configuration that
// the artifact saved with its results has no outer loop: client_total[j].

// base is the depth of a variable's own value, for variables whose values are lists.
var base = map[string]int{"server_names": 1}

// loops of a configuration.
type loops struct {
	names [][]string
}

func readLoops(top *object) (loops, error) {
	var l loops
	lists, ok := top.get("experiment_independent_vars").([]any)
	if !ok && top.get("experiment_independent_vars") != nil {
		return l, wrong("experiment_independent_vars", "experiment_independent_vars is not a list of lists of names")
	}
	for _, e := range lists {
		names, err := texts(e)
		if err != nil {
			return l, wrong("experiment_independent_vars", "experiment_independent_vars: %w", err)
		}
		l.names = append(l.names, names)
	}
	if len(l.names) == 0 { // without names, some configurations still have lists as client settings
		names := []string{"client_total", "client_processes_per_client_node", "client_threads_per_process"}
		l.names = [][]string{names, names}
	}
	if len(l.names) > 2 {
		return l, wrong("experiment_independent_vars", "experiment_independent_vars has %d loops; two can be read: series, and points of a series", len(l.names))
	}
	return l, nil
}

func (l loops) wanted(name string) int {
	n := 0
	for _, names := range l.names {
		if slices.Contains(names, name) {
			n++
		}
	}
	return n
}

// outer returns a variable's value in one series. A saved configuration has one series, and its
// values are returned as they are.
func (l loops) outer(top *object, name string, series int) (any, error) {
	v := top.get(name)
	if len(l.names) < 2 || !slices.Contains(l.names[0], name) || depth(v)-base[name] < l.wanted(name) {
		return v, nil
	}
	list, _ := v.([]any)
	if series >= len(list) {
		return nil, wrong(name, "%s has %d series; another variable has at least %d", name, len(list), series+1)
	}
	return list[series], nil
}

// series counts the rounds of the outer loop.
func (l loops) series(top *object) int {
	n := 1
	if len(l.names) < 2 {
		return n
	}
	for _, name := range l.names[0] {
		if v := top.get(name); v != nil && depth(v)-base[name] >= l.wanted(name) {
			if list, ok := v.([]any); ok {
				n = max(n, len(list))
			}
		}
	}
	return n
}

// inner returns the values of a variable in the inner loop, given its value in a series. A single
// value counts for all points.
func (l loops) inner(v any, name string) []any {
	if list, ok := v.([]any); ok && slices.Contains(l.names[len(l.names)-1], name) && depth(v) > base[name] {
		return list
	}
	return []any{v}
}

func depth(v any) int {
	list, ok := v.([]any)
	if !ok {
		return 0
	}
	if len(list) == 0 {
		return 1
	}
	return 1 + depth(list[0])
}

// step is one point of a series: the values of the variables of the inner loop.
type step map[string]any

// steps returns the points of a series. It fails if lists have different lengths, since their
// variables change together.
func (l loops) steps(top *object, series int) ([]step, error) {
	names := l.names[len(l.names)-1]
	length, whose := 1, ""
	columns := map[string][]any{}
	for _, name := range names {
		v, err := l.outer(top, name, series)
		if err != nil {
			return nil, err
		}
		if v == nil {
			continue
		}
		columns[name] = l.inner(v, name)
		if n := len(columns[name]); n != 1 {
			if length != 1 && n != length {
				return nil, wrong(name, "%s has %d values and %s %d; they are parallel, so they must have as many", whose, length, name, n)
			}
			length, whose = n, name
		}
	}
	if length == 0 {
		return nil, wrong(whose, "%s has no value", whose)
	}
	steps := make([]step, length)
	for i := range steps {
		steps[i] = step{}
		for name, column := range columns {
			steps[i][name] = column[min(i, len(column)-1)]
		}
	}
	return steps, nil
}

// texts reads a list of texts.
func texts(v any) ([]string, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("%s is not a list", short(text(v)))
	}
	out := make([]string, len(list))
	for i, e := range list {
		s, ok := e.(string)
		if !ok {
			return nil, fmt.Errorf("%s is not a text", short(text(e)))
		}
		out[i] = s
	}
	return out, nil
}

// settingError is a mistake in a setting. It names the setting, so that the error can state the
// line.
type settingError struct {
	setting string
	err     error
}

func (e *settingError) Error() string { return e.err.Error() }
func (e *settingError) Unwrap() error { return e.err }

func wrong(setting, format string, args ...any) error {
	return &settingError{setting: setting, err: fmt.Errorf(format, args...)}
}

// whole reads a whole number within bounds.
func whole(name string, v any, least, most int) (int, error) {
	if n, ok := v.(number); ok {
		x, err := strconv.ParseFloat(string(n), 64) // 30.0 is whole, too
		if err == nil && x == math.Trunc(x) && x >= float64(least) && x <= float64(most) {
			return int(x), nil
		}
	}
	if v == nil {
		return 0, wrong(name, "there is no %s; it must be a whole number from %d to %d", name, least, most)
	}
	return 0, wrong(name, "%s is %s; it must be a whole number from %d to %d", name, short(text(v)), least, most)
}

func short(s string) string {
	if len(s) > 60 {
		return s[:57] + "..."
	}
	return s
}
