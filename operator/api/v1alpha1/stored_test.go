package v1alpha1_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
)

var update = flag.Bool("update", false, "add new fields to testdata/fields.txt")

// kinds that are stored, by name.
func kinds() map[string]any {
	return map[string]any{
		"Experiment": &v1alpha1.Experiment{}, "Trial": &v1alpha1.Trial{}, "System": &v1alpha1.System{}, "Dataset": &v1alpha1.Dataset{},
	}
}

// Specs and statuses that earlier managers wrote have no unknown field, and are written again as
// they were read. docs/design/0042-the-api-grows.md says why.
func TestStoredObjectsAreReadable(t *testing.T) {
	files, err := filepath.Glob("testdata/stored/*/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d stored objects: %v", len(files), err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		t.Run(strings.TrimPrefix(file, "testdata/stored/"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var stored map[string]any
			if err := yaml.Unmarshal(text, &stored); err != nil {
				t.Fatal(err)
			}
			kind, _ := stored["kind"].(string)
			o := kinds()[kind]
			if o == nil {
				t.Fatalf("nothing reads a %q", kind)
			}
			seen[kind] = true
			if err := yaml.UnmarshalStrict(text, o); err != nil {
				t.Fatalf("today's %s cannot be read from it: %v", kind, err)
			}
			again, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			var read map[string]any
			if err := json.Unmarshal(again, &read); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(stored, read); diff != "" {
				t.Errorf("stored (-) and read (+) differ:\n%s", diff)
			}
		})
	}
	for kind := range kinds() {
		if !seen[kind] {
			t.Errorf("no %s is stored", kind)
		}
	}
}

// A released field must stay, with its type. testdata/fields.txt lists all fields; -update adds new
// ones, and removes none.
func TestFieldsStay(t *testing.T) {
	const file = "testdata/fields.txt"
	var now []string
	for kind, o := range kinds() {
		fields(reflect.TypeOf(o).Elem(), kind, nil, &now)
	}
	slices.Sort(now)
	text, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	before := strings.Split(strings.TrimSpace(string(text)), "\n")
	if *update {
		all := slices.Concat(before, now)
		slices.Sort(all)
		all = slices.DeleteFunc(slices.Compact(all), func(line string) bool { return line == "" })
		if err := os.WriteFile(file, []byte(strings.Join(all, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		before = all
	}
	for _, line := range before {
		if _, there := slices.BinarySearch(now, line); !there {
			t.Errorf("%s is not there any more, or has another type: what is stored with it would be lost", line)
		}
	}
	for _, line := range now {
		if !slices.Contains(before, line) {
			t.Errorf("%s is not in %s: run this test with -update", line, file)
		}
	}
}

// fields appends the paths of all fields of a type. Each path has the field's kind, or the name of
// its type if another package defines it.
func fields(t reflect.Type, path string, within []reflect.Type, out *[]string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		fields(t.Elem(), path+"[]", within, out)
	case t.Kind() == reflect.Map:
		fields(t.Elem(), path+"{}", within, out)
	case t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[v1alpha1.Trial]().PkgPath() && !isScalar(t):
		if slices.Contains(within, t) {
			*out = append(*out, path+" "+t.Name())
			return
		}
		for i := range t.NumField() {
			name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			switch {
			case name == "-", name == "metadata":
			case t.Field(i).Name == "TypeMeta":
			case strings.Contains(options, "inline") || name == "":
				fields(t.Field(i).Type, path, append(within, t), out)
			default:
				fields(t.Field(i).Type, path+"."+name, append(within, t), out)
			}
		}
	case t.PkgPath() == "" || t.Kind() != reflect.Struct:
		*out = append(*out, path+" "+t.Kind().String())
	default:
		*out = append(*out, path+" "+t.String())
	}
}

// isScalar reports whether a type reads its JSON itself.
func isScalar(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}
