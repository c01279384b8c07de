package experiments

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/render"
)

// Whole objects in the pages for users are accepted. An Experiment may use the Systems of its page
// and of experiments/systems. Another test applies the examples of docs/spec to an API server.
func TestExamplesOfThePages(t *testing.T) {
	pages, err := filepath.Glob("../../../docs/guide/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, "../../../README.md", "../../../docs/tutorial.md")
	checked := 0
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) { checked += examples(t, page) })
	}
	if checked < 2 {
		t.Errorf("%d Experiments in all pages; README.md and the tutorial have one each", checked)
	}
}

// examples checks the objects of a page and returns how many Experiments it has.
func examples(t *testing.T, page string) int {
	t.Helper()
	systems := map[string]v1alpha1.SystemSpec{}
	shipped := documents(t, "../../../experiments/systems/*.yaml")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var own []document
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for doc := range strings.SplitSeq(block[1], "\n---\n") {
			var meta struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal([]byte(doc), &meta); err != nil && strings.HasPrefix(doc, "apiVersion:") {
				t.Fatalf("%v in\n%s", err, doc)
			}
			if meta.APIVersion == "assay.dev/v1alpha1" {
				own = append(own, document{file: page, kind: meta.Kind, text: []byte(doc)})
			}
		}
	}
	parse := func(name, text string) error { _, err := render.ParseTemplate(name, text); return err }
	for _, d := range append(shipped, own...) {
		if d.kind != "System" {
			continue
		}
		var s v1alpha1.System
		if err := yaml.UnmarshalStrict(d.text, &s); err != nil {
			t.Fatalf("%s: %v", d.file, err)
		}
		for _, err := range plan.ValidateSystem(&s.Spec, parse) {
			t.Errorf("System %s: %v", s.Name, err)
		}
		systems[s.Name] = s.Spec
	}
	n := 0
	for _, d := range own {
		if d.kind != "Experiment" {
			continue
		}
		n++
		exp, err := plan.DecodeExperiment(d.text)
		if err != nil {
			t.Fatal(err)
		}
		profiles := []string{exp.Spec.Profile}
		for _, p := range exp.Spec.Profiles {
			profiles = append(profiles, p.Name)
		}
		for _, profile := range profiles {
			check(t, exp.DeepCopy(), profile, systems)
		}
	}
	return n
}
