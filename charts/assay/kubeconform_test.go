package chart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// schemaDir is where the first test that asks for schemas writes them.
var schemaDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "assay-schemas-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	schemaDir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// goOutput is what the go command prints in a folder.
func goOutput(dir string, args ...string) ([]byte, error) {
	var errs bytes.Buffer
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = dir, &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return bytes.TrimSpace(out), err
}

// kubeconform is the program that hack/tools pins. Its schemas are written the first time.
var kubeconform = sync.OnceValues(func() (string, error) {
	program, err := goOutput("../..", "tool", "-modfile=hack/tools/go.mod", "-n", "kubeconform")
	return string(program), errors.Join(err, writeSchemas())
})

type object = map[string]any

// writeSchemas writes a file for each kind, with all definitions that it refers to. They are made
// of what the repository pins or generates: the API server's OpenAPI, the Prometheus operator's
// CRDs, and Assay's own.
func writeSchemas() error {
	var kubernetes, prometheus struct{ Dir string }
	for _, m := range []struct {
		dir, path string
		into      any
	}{
		{"../../hack/without-registry/node-image/hyper", "k8s.io/kubernetes", &kubernetes},
		{"../../hack/without-registry/prometheus/operator", "github.com/prometheus-operator/prometheus-operator", &prometheus},
	} {
		text, err := goOutput(m.dir, "mod", "download", "-json", m.path)
		if err := errors.Join(err, json.Unmarshal(text, m.into)); err != nil {
			return err
		}
	}
	var api struct{ Definitions object }
	text, err := os.ReadFile(kubernetes.Dir + "/api/openapi-spec/swagger.json")
	if err := errors.Join(err, json.Unmarshal(text, &api)); err != nil {
		return err
	}
	api.Definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"] = object{"type": []string{"string", "number"}}
	theirs, _ := filepath.Glob(prometheus.Dir + "/example/prometheus-operator-crd/*.yaml")
	ours, _ := filepath.Glob("../../config/crd/bases/*.yaml")
	for _, file := range append(theirs, ours...) {
		var crd apiextensionsv1.CustomResourceDefinition
		text, err := os.ReadFile(file)
		if err := errors.Join(err, yaml.Unmarshal(text, &crd)); err != nil {
			return err
		}
		for _, v := range crd.Spec.Versions {
			var schema object
			text, err := json.Marshal(v.Schema.OpenAPIV3Schema)
			if err := errors.Join(err, json.Unmarshal(text, &schema)); err != nil {
				return err
			}
			schema["properties"].(object)["metadata"] = object{"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
			schema["x-kubernetes-group-version-kind"] = []any{object{"group": crd.Spec.Group, "version": v.Name, "kind": crd.Spec.Names.Kind}}
			api.Definitions[file+v.Name] = schema
		}
	}
	for _, definition := range api.Definitions {
		closeSchema(definition.(object))
	}
	for _, definition := range api.Definitions {
		kinds, _ := definition.(object)["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 { // those of several groups are no objects, as DeleteOptions
			continue
		}
		whole, reached := maps.Clone(definition.(object)), object{}
		reach(api.Definitions, definition, reached)
		whole["definitions"] = reached
		text, err := json.Marshal(whole)
		k := kinds[0].(object)
		group, _, _ := strings.Cut(k["group"].(string), ".")
		name := strings.ToLower(strings.ReplaceAll(fmt.Sprintf("%s-%s-%s.json", k["kind"], group, k["version"]), "--", "-"))
		if err := errors.Join(err, os.WriteFile(filepath.Join(schemaDir, name), text, 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// closeSchema makes a schema refuse fields that it does not name, and puts extensions of Kubernetes
// into terms of JSON Schema.
func closeSchema(schema object) {
	properties, _ := schema["properties"].(object)
	_, stated := schema["additionalProperties"]
	if open, _ := schema["x-kubernetes-preserve-unknown-fields"].(bool); properties != nil && !stated && !open {
		schema["additionalProperties"] = false
	}
	if schema["format"] == "int-or-string" {
		schema["type"] = []string{"string", "integer"}
	}
	delete(schema, "description")
	for _, inner := range append(slices.Collect(maps.Values(properties)), schema["items"], schema["additionalProperties"]) {
		if s, ok := inner.(object); ok {
			closeSchema(s)
		}
	}
}

// reach adds the definitions that a schema refers to.
func reach(definitions object, schema any, reached object) {
	switch s := schema.(type) {
	case []any:
		for _, inner := range s {
			reach(definitions, inner, reached)
		}
	case object:
		ref, _ := s["$ref"].(string)
		if name := strings.TrimPrefix(ref, "#/definitions/"); ref != "" && reached[name] == nil {
			reached[name] = definitions[name]
			reach(definitions, definitions[name], reached)
		}
		for _, inner := range s {
			reach(definitions, inner, reached)
		}
	}
}

// conforms has kubeconform judge a text or files, and says how many objects of them are valid.
func conforms(t *testing.T, text string, files ...string) (valid int, problems string) {
	t.Helper()
	program, err := kubeconform()
	if err != nil {
		t.Fatal(err)
	}
	// cert-manager's schemas are in no module that the repository pins.
	cmd := exec.CommandContext(t.Context(), program, append([]string{"-strict", "-summary", "-output=json", "-skip=Issuer,Certificate",
		"-schema-location=" + schemaDir + "/{{ .ResourceKind }}{{ .KindSuffix }}.json"}, files...)...)
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(text), &errs
	out, failed := cmd.Output()
	var said struct {
		Resources []struct{ Filename, Kind, Name, Msg string }
		Summary   struct{ Valid int }
	}
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatalf("kubeconform: %v: %v: %s%s", failed, err, out, errs.String())
	}
	for _, r := range said.Resources {
		problems += fmt.Sprintf("%s: %s %s: %s\n", r.Filename, r.Kind, r.Name, r.Msg)
	}
	if (failed != nil) != (problems != "") {
		t.Fatalf("kubeconform: %v: %s%s", failed, out, errs.String())
	}
	return said.Summary.Valid, problems
}

// judged are documents that kubeconform has seen: most are the same in many renderings.
var judged sync.Map

// mustConform judges what Helm rendered, but for documents that another rendering had, too.
func mustConform(t *testing.T, rendered string) {
	t.Helper()
	var fresh []string
	for _, doc := range documents(rendered) {
		if _, seen := judged.LoadOrStore(doc, true); !seen {
			fresh = append(fresh, doc)
		}
	}
	if len(fresh) == 0 {
		return
	}
	if _, problems := conforms(t, strings.Join(fresh, "\n---\n")); problems != "" {
		t.Errorf("kubeconform:\n%s", problems)
	}
}

func documents(text string) []string { return strings.Split("\n"+text, "\n---\n") }

// Users apply these as they are.
func TestFilesConform(t *testing.T) {
	base, err := exec.CommandContext(t.Context(), "kubectl", "kustomize", "../../config/default").Output()
	if err != nil {
		t.Fatalf("kubectl kustomize: %v; make test-chart provides kubectl", err)
	}
	if valid, problems := conforms(t, string(base)); problems != "" || valid < 17 {
		t.Errorf("config/default: %d objects are valid, want at least 17\n%s", valid, problems)
	}
	var files []string
	for _, dir := range []string{"config/samples", "experiments", "systems"} {
		err := filepath.WalkDir("../../"+dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".yaml" {
				return err
			}
			text, err := os.ReadFile(path)
			if regexp.MustCompile(`(?m)^apiVersion: assay\.dev/`).Match(text) {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if valid, problems := conforms(t, "", files...); problems != "" || valid < 120 {
		t.Errorf("of %d files %d objects are valid, want at least 120\n%s", len(files), valid, problems)
	}
}

// A wrong field is found in what the API server, the Prometheus operator and Assay know.
func TestWrongFieldsDoNotConform(t *testing.T) {
	for _, tc := range []struct{ file, right, wrong, want string }{
		{"templates/deployment.yaml", "serviceAccountName:", "serviceAccountNames:", "'serviceAccountNames' not allowed"},
		{"templates/deployment.yaml", "replicas: ", "replicas: a", "got string, want integer"},
		{"templates/monitoring.yaml", "endpoints:", "endpoint:", "'endpoint' not allowed"},
		{"../../config/samples/experiment-minimal.yaml", "spec:", "spec:\n  claim: []", "'claim' not allowed"},
	} {
		text, err := os.ReadFile(tc.file)
		if err != nil || !bytes.Contains(text, []byte(tc.right)) {
			t.Fatalf("%s has no %s: %v", tc.file, tc.right, err)
		}
		wrong := strings.Replace(string(text), tc.right, tc.wrong, 1)
		if strings.HasPrefix(tc.file, "templates/") {
			chart := t.TempDir()
			if err := errors.Join(os.CopyFS(chart, os.DirFS(".")), os.WriteFile(filepath.Join(chart, tc.file), []byte(wrong), 0o600)); err != nil {
				t.Fatal(err)
			}
			var errs string
			if wrong, errs, err = helm(t, append([]string{"template", "assay", chart}, everything...)...); err != nil {
				t.Fatal(errs)
			}
		}
		if _, problems := conforms(t, wrong); !strings.Contains(problems, tc.want) {
			t.Errorf("%s with %q: kubeconform says %q, want %q", tc.file, tc.wrong, problems, tc.want)
		}
	}
}
