package admit_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/admit"
)

// samples are the objects of config/samples.
func samples(t testing.TB) (documents []*admit.Document) {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.yaml", "systems/*.yaml"} {
		found, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "config", "samples", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		read, problems := admit.Documents(text, file)
		if err := problems.OrNil(); err != nil {
			t.Fatal(err)
		}
		documents = append(documents, read...)
	}
	if len(documents) < 20 {
		t.Fatalf("%d samples", len(documents))
	}
	return documents
}

// strange values of fields, by the type of the value that they replace.
var (
	strangeNumbers = []any{-3, -1, 0, 1, 2, 64, 257, 100_001, 1 << 30, -(1 << 31), 1<<31 - 1}
	strangeTexts   = []any{"", "-1s", "0s", "9999999h", "0%", "-5%", "1e309%", "f", "2*f+1/0", "2*f - 99", "f*999999999", "{{", "{{.Parameters.x}}", "clients", "system", "a\x00", "(?P<value>", "NaN", "0", "-7", "99999999999"}
)

// FuzzValidators changes samples, also in ways that a schema would refuse. It asks the validators
// of package plan without the schema. They must report mistakes, and neither panic nor run for
// ever.
func FuzzValidators(f *testing.F) {
	documents := samples(f)
	systems := map[string]v1alpha1.SystemSpec{}
	for _, d := range documents {
		if d.Object.GetKind() == "System" {
			system, problems := admit.System(f.Context(), d)
			if err := problems.OrNil(); err != nil {
				f.Fatal(err)
			}
			systems[system.Name] = system.Spec
		}
	}
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := documents[r.IntN(len(documents))]
		object := d.Object.DeepCopy().Object
		for range 1 + r.IntN(3) {
			alter(r, object["spec"])
		}
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		parse := func(name, text string) error { _, err := render.ParseTemplate(name, text); return err }
		if d.Object.GetKind() == "System" {
			var system v1alpha1.System
			if json.Unmarshal(text, &system) != nil {
				return
			}
			plan.ValidateSystem(&system.Spec, parse)
			for _, exp := range documents {
				if exp.Object.GetKind() == "Experiment" && exp.Object.GetName() == "minimal" {
					other := map[string]v1alpha1.SystemSpec{"kv": system.Spec}
					validate(t, exp.Object.Object, other)
				}
			}
			return
		}
		validate(t, object, systems)
	})
}

func validate(t *testing.T, object map[string]any, systems map[string]v1alpha1.SystemSpec) {
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var exp v1alpha1.Experiment
	if json.Unmarshal(text, &exp) != nil {
		return
	}
	plan.Validate(&exp, systems, admit.Checks)
}

// alter changes a random leaf below a node, or removes a field.
func alter(r *rand.Rand, node any) {
	for {
		switch n := node.(type) {
		case map[string]any:
			if len(n) == 0 {
				return
			}
			keys := make([]string, 0, len(n))
			for k := range n {
				keys = append(keys, k)
			}
			slices.SortFunc(keys, strings.Compare)
			key := keys[r.IntN(len(keys))]
			switch n[key].(type) {
			case map[string]any, []any:
				if r.IntN(20) == 0 {
					delete(n, key)
					return
				}
				node = n[key]
				continue
			}
			n[key] = strange(r, n[key])
			return
		case []any:
			if len(n) == 0 {
				return
			}
			i := r.IntN(len(n))
			switch n[i].(type) {
			case map[string]any, []any:
				node = n[i]
				continue
			}
			n[i] = strange(r, n[i])
			return
		default:
			return
		}
	}
}

func strange(r *rand.Rand, value any) any {
	if _, ok := value.(string); ok {
		return strangeTexts[r.IntN(len(strangeTexts))]
	}
	return strangeNumbers[r.IntN(len(strangeNumbers))]
}
