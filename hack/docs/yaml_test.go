package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// A YAML block of a document is a whole object, or its first line says where it belongs:
//
//	# Experiment: spec.claims        below this field; an element of a list where it ends in []
//	# System                         a part of a System, from spec on
//	# values.yaml                    values of the chart
//	# FILE (no object of Assay)      checked as YAML only
var (
	yamlBlock = regexp.MustCompile("(?ms)^ *```ya?ml\n(.*?\n) *```$")
	place     = regexp.MustCompile(`^ *# (System|Experiment|Trial|Dataset)(?:: ([a-zA-Z.\[\]]+))?$`)
	values    = regexp.MustCompile(`^ *# values\.yaml$`)
	foreign   = regexp.MustCompile(`^ *# .+ \(no object of Assay\)$`)
	// It matches the first line of an indented block of YAML, in contrast to commands and output.
	indented = regexp.MustCompile(`(?m)\n\n    +([a-z][A-Za-z]*:( .*)?)$`)
)

// Every YAML block says where it belongs, and fits the schema there.
func TestEveryBlockIsAsItsSchemaWants(t *testing.T) {
	checked := 0
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(file, root+"/")
		for _, m := range yamlBlock.FindAllStringSubmatchIndex(string(text), -1) {
			checked++
			line := 1 + bytes.Count(text[:m[2]], []byte("\n"))
			for _, problem := range checkBlock(t, string(text[m[2]:m[3]])) {
				t.Errorf("%s:%d: %s", name, line, problem)
			}
		}
		for _, m := range indented.FindAllStringSubmatch(yamlBlock.ReplaceAllString(string(text), ""), -1) {
			t.Errorf("%s: an indented block with %q: fence it with ```yaml, and say in its first line where it belongs", name, m[1])
		}
	}
	if checked < 90 {
		t.Errorf("%d blocks were checked; the documents have more", checked)
	}
}

func TestABlockIsChecked(t *testing.T) {
	for name, tc := range map[string]struct{ block, want string }{
		"a part":               {"# Experiment: spec\nclients: {loop: Closed, count: 5}\n", ""},
		"an element":           {"# Experiment: spec.claims[]\nreported: 0.86\n", ""},
		"elements":             {"# Experiment: spec.claims\n- {name: a, statement: A holds., expr: \"1 < 2\"}\n", ""},
		"an unknown field":     {"# Experiment: spec\nclients: {lop: Closed}\n", "lop"},
		"a word of no list":    {"# Experiment: spec\nclients: {loop: Ajar}\n", "/clients/loop"},
		"an element too short": {"# Experiment: spec.claims\n- {name: a}\n", "statement"},
		"a path of no field":   {"# Experiment: spec.clams\n- {name: a}\n", "no field clams"},
		"no path":              {"clients: {loop: Closed}\n", "first line"},
		"a field twice":        {"# Experiment: spec\nseed: 1\nseed: 2\n", "already set"},
		"a whole object":       {"apiVersion: assay.dev/v1alpha1\nkind: Experiment\nmetadata: {name: a}\nspec: {}\n", "missing propert"},
		"values":               {"# values.yaml\nimages: {registry: lab}\n", ""},
		"an unknown value":     {"# values.yaml\nimage: {registry: lab}\n", "image"},
		"another's file":       {"# a.yaml (no object of Assay)\njobs: {}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(checkBlock(t, tc.block), "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// checkBlock returns the errors of a block.
func checkBlock(t *testing.T, block string) (problems []string) {
	t.Helper()
	first, _, _ := strings.Cut(block, "\n")
	for doc := range strings.SplitSeq(block, "\n---\n") {
		text, err := yaml.YAMLToJSONStrict([]byte(doc))
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		var of struct{ APIVersion, Kind string }
		_ = json.Unmarshal(text, &of) // a list is no object
		var wanted map[string]any
		switch m := place.FindStringSubmatch(first); {
		case m != nil:
			wanted, err = below(schemaOf(t, "config/schema/"+strings.ToLower(m[1])+".json"), m[2])
		case values.MatchString(first):
			wanted = part(schemaOf(t, "charts/assay/values.schema.json"))
		case foreign.MatchString(first):
			continue
		case of.APIVersion == "assay.dev/v1alpha1" && of.Kind != "":
			wanted = schemaOf(t, "config/schema/"+strings.ToLower(of.Kind)+".json")
		default:
			err = fmt.Errorf("the first line must say where the block belongs, as in # Experiment: spec.claims")
		}
		if err == nil {
			err = validate(wanted, text)
		}
		if err != nil {
			problems = append(problems, err.Error())
		}
	}
	return problems
}

func schemaOf(t *testing.T, file string) (schema map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return schema
}

// below is the schema of a part at a path.
func below(schema map[string]any, path string) (map[string]any, error) {
	element := strings.HasSuffix(path, "[]")
	for name := range strings.SplitSeq(strings.ReplaceAll(path, "[]", ""), ".") {
		if items, ok := schema["items"].(map[string]any); ok {
			schema = items
		}
		properties, _ := schema["properties"].(map[string]any)
		if path == "" {
			break
		}
		next, ok := properties[name].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("there is no field %s in %s", name, path)
		}
		schema = next
	}
	if items, ok := schema["items"].(map[string]any); ok && element {
		schema = items
	}
	return part(schema), nil
}

// part makes a schema optional: a block may leave out its fields, except in the elements of lists.
func part(schema map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range schema {
		switch key {
		case "required":
		case "properties":
			properties := map[string]any{}
			for name, of := range value.(map[string]any) {
				properties[name] = of
				if inner, ok := of.(map[string]any); ok {
					properties[name] = part(inner)
				}
			}
			out[key] = properties
		default:
			out[key] = value
		}
	}
	return out
}

func validate(schema map[string]any, text []byte) error {
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", schema); err != nil {
		return err
	}
	compiled, err := compiler.Compile("schema.json")
	if err != nil {
		return err
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return compiled.Validate(instance)
}
