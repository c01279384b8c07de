package admit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// draft is the version of JSON Schema that editors support.
const draft = "http://json-schema.org/draft-07/schema#"

// JSONSchema returns a kind's schema for editors. Editors then underline wrong types, names and
// bounds, which an API server refuses. kubectl assay plan checks the rules in CEL and makes the
// checks of webhooks. The schema has no status, and does not require fields that the API server
// fills in.
func JSONSchema(kind string) ([]byte, error) {
	schema, err := jsonSchema(kind)
	if err != nil {
		return nil, err
	}
	schema["$schema"] = draft
	return indented(schema)
}

// JSONSchemas returns one schema for files with objects of any of Kinds.
func JSONSchemas() ([]byte, error) {
	definitions, choices := map[string]any{}, []any{}
	for _, kind := range Kinds {
		schema, err := jsonSchema(kind)
		if err != nil {
			return nil, err
		}
		definitions[kind] = schema
		choices = append(choices, map[string]any{
			"if":   map[string]any{"properties": map[string]any{"kind": map[string]any{"const": kind}}, "required": []string{"kind"}},
			"then": map[string]any{"$ref": "#/definitions/" + kind},
		})
	}
	return indented(map[string]any{
		"$schema": draft, "title": "An object of Assay's", "type": "object", "required": []string{"apiVersion", "kind"},
		"properties":  map[string]any{"kind": map[string]any{"enum": Kinds}},
		"definitions": definitions, "allOf": choices,
	})
}

func indented(schema map[string]any) ([]byte, error) {
	text, err := json.MarshalIndent(schema, "", " ")
	if err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	return append(text, '\n'), nil
}

func jsonSchema(kind string) (map[string]any, error) {
	s, err := SchemaOf(kind)
	if err != nil {
		return nil, err
	}
	schema := editors(s.Props)
	schema["title"] = kind
	schema["required"] = []string{"apiVersion", "kind", "metadata", "spec"}
	schema["properties"].(map[string]any)["apiVersion"] = map[string]any{"const": group}
	schema["properties"].(map[string]any)["kind"] = map[string]any{"const": kind}
	schema["properties"].(map[string]any)["metadata"] = map[string]any{
		"type": "object", "required": []string{"name"}, "properties": map[string]any{"name": map[string]any{"type": "string", "minLength": 1}},
	}
	delete(schema["properties"].(map[string]any), "status")
	return schema, nil
}

// editors turns a schema of Kubernetes into a JSON Schema.
func editors(p *apiextensionsv1.JSONSchemaProps) map[string]any {
	out := map[string]any{}
	if p.Description != "" {
		out["description"] = p.Description
	}
	switch {
	case p.XIntOrString:
		out["type"] = []string{"integer", "string"}
	case isValue(p):
		out["type"] = []string{"string", "number", "boolean"}
	case p.Type != "":
		out["type"] = p.Type
	}
	if len(p.Enum) > 0 {
		out["enum"] = p.Enum
	}
	if p.Default != nil {
		out["default"] = p.Default
	}
	if p.Pattern != "" { // the pattern is for text only, where numbers are valid, too
		out["pattern"] = p.Pattern
	}
	for name, bound := range map[string]*int64{
		"minLength": p.MinLength, "maxLength": p.MaxLength, "minItems": p.MinItems, "maxItems": p.MaxItems, "minProperties": p.MinProperties, "maxProperties": p.MaxProperties,
	} {
		if bound != nil {
			out[name] = *bound
		}
	}
	for name, bound := range map[string]*float64{"minimum": p.Minimum, "maximum": p.Maximum} {
		if bound != nil {
			out[name] = *bound
		}
	}
	if p.XListType != nil && *p.XListType == "set" {
		out["uniqueItems"] = true
	}
	if p.Items != nil {
		out["items"] = editors(p.Items.Schema)
	}
	if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
		out["additionalProperties"] = editors(p.AdditionalProperties.Schema)
	}
	if len(p.Properties) == 0 {
		return out
	}
	properties, required := map[string]any{}, []string{}
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		child := p.Properties[name]
		properties[name] = editors(&child)
		if slices.Contains(p.Required, name) && child.Default == nil {
			required = append(required, name)
		}
	}
	out["properties"], out["additionalProperties"] = properties, false
	if len(required) > 0 {
		out["required"] = required
	}
	if len(p.XValidations) > 0 {
		out["description"] = strings.TrimSpace(p.Description + "\n\n" + rulesOf(p))
	}
	return out
}

// rulesOf returns the rules of a schema in the words of their author.
func rulesOf(p *apiextensionsv1.JSONSchemaProps) string {
	lines := []string{"kubectl assay plan checks:"}
	for _, rule := range p.XValidations {
		if rule.Message != "" {
			lines = append(lines, "- "+rule.Message)
		}
	}
	if len(lines) == 1 {
		return ""
	}
	return strings.Join(lines, "\n")
}
