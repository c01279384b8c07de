// Package refusals holds objects that a cluster rejects. There is one for each bound in the kinds'
// schemas, made from the schemas, and one for each rule in CEL. The objects that webhooks reject
// are written by hand. Two tests give them to package admit and to a real API server, and compare
// the answers.
//
//	bounds      a violation of each required, enum, pattern, minimum, ... at each place (bounds.go)
//	rules       a value that breaks each rule, put at each place that has the rule (rules.go)
//	webhooks    a valid sample with edits (written.go)
//
// Generate returns an error for a rule or a pattern without a case. The error says where to add a
// line.
package refusals

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Case is an object that a cluster rejects.
type Case struct {
	// Name says which bound or rule the object violates, and where.
	Name   string
	Kind   string
	Object map[string]any
	// Field that the rejection names, in the notation of validators; empty: any.
	Field string
	// Says is a part of the rejection's text, for rules with a constant message; empty: any text.
	Says string
}

// Generate makes the cases of a kind's schema. It leaves out the status: no user can create one,
// and only the manager writes it.
func Generate(kind string, schema *apiextensionsv1.JSONSchemaProps) ([]Case, error) {
	g := &generator{kind: kind}
	root, spec := Least(kind, schema), schema.Properties["spec"]
	g.walk(&spec, place{{key: "spec"}}, root)
	g.rules(schema, nil, root)
	if len(g.missing) > 0 {
		slices.Sort(g.missing)
		return nil, fmt.Errorf("%d parts of the schema of %s have no case:\n%s", len(slices.Compact(g.missing)), kind, strings.Join(slices.Compact(g.missing), "\n"))
	}
	return g.cases, nil
}

// Least is a smallest object that a kind's schema accepts.
func Least(kind string, schema *apiextensionsv1.JSONSchemaProps) map[string]any {
	g := &generator{kind: kind}
	spec := schema.Properties["spec"]
	return map[string]any{
		"apiVersion": "assay.dev/v1alpha1", "kind": kind, "metadata": map[string]any{"name": "a"}, "spec": g.minimal(&spec, "spec"),
	}
}

// step goes to a member of an object, of a map, or to an item of a list.
type step struct {
	key   string
	index bool
}

// place is a way through an object.
type place []step

// String is the place in the notation of validators.
func (p place) String() string {
	var b strings.Builder
	for i, s := range p {
		switch {
		case s.index:
			b.WriteString("[0]")
		case i == 0:
			b.WriteString(s.key)
		default:
			b.WriteString("." + s.key)
		}
	}
	return b.String()
}

func (p place) to(s step) place { return append(slices.Clone(p), s) }

// generator walks one schema.
type generator struct {
	kind    string
	cases   []Case
	missing []string
}

func (g *generator) add(what string, at place, field string, object map[string]any) {
	g.cases = append(g.cases, Case{Name: fmt.Sprintf("%s %s: %s", g.kind, at, what), Kind: g.kind, Object: object, Field: field})
}

// walk makes the cases of a node, and of all nodes below it. In object, the node's place has a
// value.
func (g *generator) walk(props *apiextensionsv1.JSONSchemaProps, at place, object map[string]any) {
	g.bounds(props, at, object)
	g.rules(props, at, object)
	switch {
	case props.Items != nil:
		items := props.Items.Schema
		list := []any{g.minimal(items, at.String())}
		for n := int64(1); n < number(props.MinItems); n++ {
			list = append(list, g.another(items, at.String(), int(n)))
		}
		g.walk(items, at.to(step{index: true}), with(object, at, list))
	case props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil:
		values := props.AdditionalProperties.Schema
		g.walk(values, at.to(step{key: "k"}), with(object, at, map[string]any{"k": g.minimal(values, at.String())}))
	default:
		for _, name := range slices.Sorted(maps.Keys(props.Properties)) {
			child := props.Properties[name]
			below := at.to(step{key: name})
			filled := object
			if get(object, below) == nil {
				filled = with(object, below, g.minimal(&child, below.String()))
			}
			g.walk(&child, below, filled)
		}
	}
}

// minimal is the smallest value that a schema accepts; rules may reject it.
func (g *generator) minimal(props *apiextensionsv1.JSONSchemaProps, at string) any {
	switch {
	case len(props.Enum) > 0:
		return decode(props.Enum[0].Raw)
	case props.XIntOrString:
		return int64(1)
	}
	switch props.Type {
	case "boolean":
		return true
	case "integer":
		return int64(least(props))
	case "number":
		return least(props)
	case "string":
		return g.text(props, at)
	case "array":
		list := []any{}
		for n := range number(props.MinItems) {
			list = append(list, g.another(props.Items.Schema, at, int(n)))
		}
		return list
	case "object":
		object := map[string]any{}
		for _, name := range props.Required {
			child := props.Properties[name]
			object[name] = g.minimal(&child, at+"."+name)
		}
		if props.AdditionalProperties != nil {
			for n := range number(props.MinProperties) {
				object["k"+strconv.Itoa(int(n))] = g.minimal(props.AdditionalProperties.Schema, at)
			}
		} else if names := slices.Sorted(maps.Keys(props.Properties)); int64(len(object)) < number(props.MinProperties) {
			child := props.Properties[names[0]]
			object[names[0]] = g.minimal(&child, at+"."+names[0])
		}
		return object
	}
	return "1" // a Value
}

// another is a minimal value that differs from the others of its list, if its type allows that.
func (g *generator) another(props *apiextensionsv1.JSONSchemaProps, at string, n int) any {
	value := g.minimal(props, at)
	if n == 0 {
		return value
	}
	switch v := value.(type) {
	case string:
		if len(props.Enum) > n {
			return decode(props.Enum[n].Raw)
		}
		return v + strconv.Itoa(n)
	case int64:
		return v + int64(n)
	case map[string]any:
		for _, name := range []string{"name", "axis", "region", "resource", "mountPath"} {
			if child, ok := props.Properties[name]; ok {
				v[name] = g.another(&child, at, n)
			}
		}
	}
	return value
}

func (g *generator) text(props *apiextensionsv1.JSONSchemaProps, at string) string {
	text := "x"
	if props.Pattern != "" {
		sample, ok := patterns[props.Pattern]
		if !ok {
			g.missing = append(g.missing, fmt.Sprintf("pattern %s at %s: add a text that matches it, and one that does not, to patterns in operator/internal/testkit/refusals/bounds.go", props.Pattern, at))
		}
		text = sample.good
	}
	for int64(len(text)) < number(props.MinLength) {
		text += "x"
	}
	return text
}

func least(props *apiextensionsv1.JSONSchemaProps) float64 {
	switch {
	case props.Minimum != nil:
		return *props.Minimum
	case props.Maximum != nil:
		return min(1, *props.Maximum)
	}
	return 1
}

func number(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// get returns the value at a place; nil if there is none.
func get(in any, at place) any {
	for _, s := range at {
		switch node := in.(type) {
		case map[string]any:
			in = node[s.key]
		case []any:
			if len(node) == 0 {
				return nil
			}
			in = node[0]
		default:
			return nil
		}
	}
	return in
}

// removed stands for a missing value.
type removed struct{}

// with returns a copy of an object with a value at a place.
func with(object map[string]any, at place, value any) map[string]any {
	return put(object, at, value).(map[string]any)
}

func put(in any, at place, value any) any {
	if len(at) == 0 {
		return value
	}
	if at[0].index {
		list, _ := in.([]any)
		list = slices.Clone(list)
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = put(list[0], at[1:], value)
		return list
	}
	object, _ := in.(map[string]any)
	object = maps.Clone(object)
	if object == nil {
		object = map[string]any{}
	}
	if _, remove := value.(removed); remove && len(at) == 1 {
		delete(object, at[0].key)
		return object
	}
	object[at[0].key] = put(object[at[0].key], at[1:], value)
	return object
}

// decode reads JSON or YAML; whole numbers are int64, as API servers read them.
func decode(text []byte) any {
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		panic(fmt.Sprintf("a case is no YAML: %s: %v", text, err))
	}
	return whole(value)
}

func whole(value any) any {
	switch v := value.(type) {
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = whole(v[k])
		}
	}
	return value
}
