package refusals

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// patterns of the schemas. Each has a text that matches it, and a text that does not.
var patterns = map[string]struct{ good, bad string }{
	`^([1-9][0-9]*(\.[0-9]+)?|0\.[0-9]*[1-9][0-9]*)$`:                                                                   {"1.5", "0"},
	`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`:                                 {"a.b/c", "-"},
	`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`:   {"a.b/c", "-"},
	`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`: {"1", "much"},
	`^(f|majority|minority|[1-9][0-9]?|1[0-9][0-9]|200)$`:                                                               {"f", "0"},
	`^-?([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`:                                                                          {"1s", "1"},
	`^[-+][0-9]{2}:[0-9]{2}$`:                {"+01:00", "1"},
	`^/.*`:                                   {"/a", "a"},
	`^/.+`:                                   {"/a", "a"},
	`^/assay/out/.+`:                         {"/assay/out/a", "/a"},
	`^[,;|\t ]$`:                             {",", "x"},
	`^[0-9]+(\.[0-9]+)?%$`:                   {"1%", "1"},
	`^([0-9]+(\.[0-9]+)?%|NotPrinted)$`:      {"1%", "1"},
	`^([0-9a-f]{64})?$`:                      {"", "a"},
	`^[0-9]+(\.[0-9]+)?(%|ns|us|ms|s|m|h)?$`: {"1%", "x"},
	`^[0-9]+(\.[0-9]+)?(%( of the effect)?|ns|us|ms|s|m|h)?$`:              {"1%", "x"},
	`^[0-9]+(\.[0-9]+)?(k|M|G)bit$`:                                        {"1Mbit", "1"},
	`^[A-Z][A-Z0-9_]*$`:                                                    {"A", "a"},
	`^[A-Za-z%/][-A-Za-z0-9%/^*]*$`:                                        {"ms", "1"},
	`^[A-Za-z0-9._-]+$`:                                                    {"a", "/"},
	`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`:                           {"a", "-"},
	`^[A-Za-z0-9_*?][-A-Za-z0-9_.*?]*(/[A-Za-z0-9_*?][-A-Za-z0-9_.*?]*)*$`: {"a", "/"},
	`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`:                             {"a", "1"},
	`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`:                                     {"a", "-"},
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`:                                      {"a", "-"},
	`^[a-zA-Z0-9]([-a-zA-Z0-9._]*[a-zA-Z0-9])?$`:                           {"a", "-"},
	`^[a-z]([-a-z0-9]*[a-z0-9])?$`:                                         {"a", "1"},
	`^[a-z_][-a-z0-9_]*$`:                                                  {"a", "1"},
	`^[a-z][a-z0-9]*$`:                                                     {"a", "1"},
	`^[a-z][a-zA-Z0-9]*$`:                                                  {"a", "1"},
}

// bounds makes a case for each bound of a node.
func (g *generator) bounds(props *apiextensionsv1.JSONSchemaProps, at place, object map[string]any) {
	bad := func(what string, value any) { g.add(what, at, at.String(), with(object, at, value)) }
	if props.Type != "" {
		bad("another type than "+props.Type, otherType(props.Type))
	}
	if len(props.Enum) > 0 {
		bad("none of the enum", "NoSuchValue")
	}
	if props.Minimum != nil {
		bad(fmt.Sprintf("below the minimum %v", *props.Minimum), int64(*props.Minimum)-1)
	}
	if props.Maximum != nil {
		bad(fmt.Sprintf("above the maximum %v", *props.Maximum), int64(*props.Maximum)+1)
	}
	if props.Format == "int32" && props.Maximum == nil {
		bad("more than 32 bits", int64(1)<<40)
	}
	g.lengths(props, at, bad)
	for _, name := range props.Required {
		child := props.Properties[name]
		if child.Default != nil {
			continue
		}
		below := at.to(step{key: name})
		g.add("missing", below, below.String(), with(object, below, removed{}))
	}
	if props.Type == "object" && props.AdditionalProperties == nil && props.XPreserveUnknownFields == nil {
		below := at.to(step{key: "noSuchField"})
		g.add("unknown", below, below.String(), with(object, below, int64(1)))
	}
}

// lengths makes the cases of texts, lists and maps.
func (g *generator) lengths(props *apiextensionsv1.JSONSchemaProps, at place, bad func(string, any)) {
	if props.Pattern != "" {
		bad("another text than "+props.Pattern, patterns[props.Pattern].bad)
	}
	if props.MinLength != nil && *props.MinLength > 0 {
		bad(fmt.Sprintf("shorter than %d", *props.MinLength), strings.Repeat("x", int(*props.MinLength-1)))
	}
	if props.MaxLength != nil {
		bad(fmt.Sprintf("longer than %d", *props.MaxLength), strings.Repeat("x", int(*props.MaxLength+1)))
	}
	if props.MinItems != nil && *props.MinItems > 0 {
		bad(fmt.Sprintf("fewer items than %d", *props.MinItems), []any{})
	}
	if props.MaxItems != nil {
		list := []any{}
		for n := range *props.MaxItems + 1 {
			list = append(list, g.another(props.Items.Schema, at.String(), int(n)))
		}
		bad(fmt.Sprintf("more items than %d", *props.MaxItems), list)
	}
	if kind := props.XListType; kind != nil && slices.Contains([]string{"set", "map"}, *kind) {
		item := g.minimal(props.Items.Schema, at.String())
		for _, key := range props.XListMapKeys {
			child := props.Items.Schema.Properties[key]
			item.(map[string]any)[key] = g.minimal(&child, at.String())
		}
		bad("an item twice", []any{item, item})
	}
	if props.MinProperties != nil && *props.MinProperties > 0 {
		bad(fmt.Sprintf("fewer members than %d", *props.MinProperties), map[string]any{})
	}
	if props.MaxProperties != nil && props.AdditionalProperties != nil {
		members := map[string]any{}
		for n := range *props.MaxProperties + 1 {
			members["k"+strconv.Itoa(int(n))] = g.minimal(props.AdditionalProperties.Schema, at.String())
		}
		bad(fmt.Sprintf("more members than %d", *props.MaxProperties), members)
	}
}

func otherType(name string) any {
	if name == "string" {
		return int64(5)
	}
	return "text"
}
