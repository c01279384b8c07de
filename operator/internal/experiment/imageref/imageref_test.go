package imageref

import (
	"strings"
	"testing"
)

const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestParse(t *testing.T) {
	for image, want := range map[string]struct {
		name, version string
		registry      bool
	}{
		"basil":                                 {"basil", "", false},
		"assay/basil:dev":                       {"assay/basil", ":dev", false},
		"postgres:16.4":                         {"postgres", ":16.4", false},
		"localhost/basil:1":                     {"localhost/basil", ":1", true},
		"localhost:5000/basil":                  {"localhost:5000/basil", "", true},
		"r.example.org:5000/a/b:1" + digest:     {"r.example.org:5000/a/b", ":1" + digest, true},
		"docker.io/library/postgres" + digest:   {"docker.io/library/postgres", digest, true},
		"kv:{{.Parameters.version}}":            {"kv", ":{{.Parameters.version}}", false},
		`a/kv:{{or .Parameters.v "x/y:1"}}`:     {"a/kv", `:{{or .Parameters.v "x/y:1"}}`, false},
		"{{.Parameters.image}}":                 {"{{.Parameters.image}}", "", false},
		"{{.Parameters.registry}}/kv:1":         {"{{.Parameters.registry}}/kv", ":1", false},
		"r.example.org/{{.Parameters.name}}:v1": {"r.example.org/{{.Parameters.name}}", ":v1", true},
	} {
		ref := Parse(image)
		if ref.Name != want.name || ref.Version != want.version || ref.HasRegistry() != want.registry || ref.String() != image {
			t.Errorf("%s: %q and %q, with a registry: %v; want %+v", image, ref.Name, ref.Version, ref.HasRegistry(), want)
		}
	}
}

func TestIn(t *testing.T) {
	for image, want := range map[string]string{
		"assay/basil:dev":            "r.example.org/mirror/assay/basil:dev",
		"postgres":                   "r.example.org/mirror/postgres",
		"kv:{{.Parameters.version}}": "r.example.org/mirror/kv:{{.Parameters.version}}",
		"quay.io/a/b:1":              "quay.io/a/b:1",
	} {
		if got := Parse(image).In("r.example.org/mirror").String(); got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
		if got := Parse(image).In("").String(); got != image {
			t.Errorf("without a registry %s becomes %s", image, got)
		}
	}
}

func TestCheckRegistry(t *testing.T) {
	for registry, want := range map[string]string{
		"registry.example.org":           "",
		"registry.example.org:5000/a/b":  "",
		"localhost/mirror":               "",
		"10.0.0.7:5000":                  "",
		"https://registry.example.org":   "has a scheme",
		"registry.example.org/":          "is not HOST",
		"registry.example.org/Mirror":    "is not HOST",
		"":                               "is not HOST",
		"mirror":                         "a folder of Docker Hub",
		"registry.example.org/a b":       "is not HOST",
		"registry.example.org:port/path": "is not HOST",
	} {
		err := CheckRegistry(registry)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want: %s", registry, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a/b:{{x}}@sha256:0")
	f.Add("{{")
	f.Fuzz(func(t *testing.T, image string) {
		if got := Parse(image); got.String() != image || got.In("r.example.org").Version != got.Version {
			t.Errorf("%q becomes %q", image, got)
		}
	})
}
