package schema_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"assay.dev/assay/operator/internal/cli/schema"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/manager/admit"
	"assay.dev/assay/operator/internal/testkit/refusals"
)

var update = flag.Bool("update", false, "write config/schema")

const root = "../../../.."

func printed(t *testing.T, args ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := schema.Run(&session.Session{Out: &out}, args); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// The files of config/schema equal the output of the command.
func TestSchemasAreCurrent(t *testing.T) {
	files := map[string][]string{"assay.json": nil}
	for _, kind := range admit.Kinds {
		files[strings.ToLower(kind)+".json"] = []string{kind}
	}
	for name, args := range files {
		path, want := filepath.Join(root, "config", "schema", name), printed(t, args...)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the kinds say (%v); run make generate", name, err)
		}
	}
}

func TestUnknownKind(t *testing.T) {
	err := schema.Run(&session.Session{}, []string{"Sytem"})
	if session.ExitCode(err) != session.ExitUsage || !strings.Contains(err.Error(), `did you mean "System"?`) {
		t.Error(err)
	}
	if !bytes.Equal(printed(t, "system"), printed(t, "System")) {
		t.Error("the case of a kind matters")
	}
}

// compiled reads a schema with a validator of JSON Schema.
func compiled(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("assay.json", parsed); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("assay.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The schema accepts all samples. It rejects what an API server refuses for a type, a name or a
// bound.
func TestEditorsSeeWhatAPIServersRefuse(t *testing.T) {
	all := compiled(t, printed(t))
	checked := 0
	for _, pattern := range []string{"*.yaml", "systems/*.yaml"} {
		found, err := filepath.Glob(filepath.Join(root, "config", "samples", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			documents, problems := admit.Documents(text, file)
			if err := problems.OrNil(); err != nil {
				t.Fatal(err)
			}
			for _, d := range documents {
				if err := all.Validate(d.Object.Object); err != nil {
					t.Errorf("%s: %v", file, err)
				}
				checked++
			}
			if line, _, _ := strings.Cut(string(text), "\n"); !strings.HasPrefix(line, "# yaml-language-server: $schema=") {
				t.Errorf("%s does not name its schema to editors", file)
			} else if _, err := os.Stat(filepath.Join(filepath.Dir(file), strings.TrimPrefix(line, "# yaml-language-server: $schema="))); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	if checked < 20 {
		t.Fatalf("%d samples", checked)
	}
	refused := 0
	for _, kind := range admit.Kinds {
		s, err := admit.SchemaOf(kind)
		if err != nil {
			t.Fatal(err)
		}
		cases, err := refusals.Generate(kind, s.Props)
		if err != nil {
			t.Fatal(err)
		}
		for _, tc := range cases {
			if strings.Contains(tc.Name, ": rule ") || strings.Contains(tc.Name, "an item twice") || strings.Contains(tc.Name, "more than 32 bits") {
				continue // JSON Schema cannot express them
			}
			if err := all.Validate(tc.Object); err == nil {
				t.Errorf("an editor sees nothing wrong with %s", tc.Name)
			}
			refused++
		}
	}
	t.Logf("%d samples accepted, %d violations refused", checked, refused)
}
