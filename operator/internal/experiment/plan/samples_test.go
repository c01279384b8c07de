package plan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/testkit/refusals"
)

const samples = "../../../../config/samples"

func sampleOf(t *testing.T, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(samples, file))
	if err != nil {
		t.Fatal(err)
	}
	object, err := refusals.Read(text)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return object
}

// typed converts an object into the type of its kind.
func typed[T any](t *testing.T, object map[string]any) (out T, err error) {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return out, json.Unmarshal(text, &out)
}

// systemsOf returns the Systems of the samples and of the tables of refusals.
func systemsOf(t *testing.T) map[string]v1alpha1.SystemSpec {
	t.Helper()
	objects := refusals.AllSystems(sampleOf(t, "systems/driver.yaml"), sampleOf(t, "systems/components.yaml"), sampleOf(t, "systems/machines.yaml"))
	files, err := filepath.Glob(filepath.Join(samples, "systems", "*.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("the samples have %d Systems, %v", len(files), err)
	}
	for _, file := range files {
		objects = append(objects, sampleOf(t, filepath.Join("systems", filepath.Base(file))))
	}
	all := map[string]v1alpha1.SystemSpec{}
	for _, object := range objects {
		s, err := typed[v1alpha1.System](t, object)
		if err != nil {
			t.Fatal(err)
		}
		all[s.Name] = s.Spec
	}
	return all
}

var checks = plan.Checks{
	Templates: render.Check, Claim: claims.Check, Reads: claims.Reads, Shapes: claims.Shapes, Functions: claims.FunctionsOf, UnusedParameters: true,
	Capabilities: func(s *v1alpha1.SystemSpec) error { return plan.CheckCapabilities(s, nil) },
	Store: func(name string) error {
		if name != "results" {
			return fmt.Errorf("there is no store %q", name)
		}
		return nil
	},
}

func parseTemplate(name, text string) error {
	_, err := render.ParseTemplate(name, text)
	return err
}

// The file has the text of each refusal of a plan. The schema refuses the other objects before.
func TestRefusalsOfPlans(t *testing.T) {
	all := systemsOf(t)
	var out bytes.Buffer
	for _, table := range refusals.Tables {
		valid := sampleOf(t, table.File)
		fmt.Fprintf(&out, "# %s\n", table.File)
		for _, name := range slices.Sorted(maps.Keys(table.Cases)) {
			object := table.Cases[name].Apply(valid)
			var said []string
			switch table.Kind {
			case "System":
				s, err := typed[v1alpha1.System](t, object)
				if err != nil {
					continue // no such type
				}
				for _, e := range plan.ValidateSystem(&s.Spec, parseTemplate) {
					said = append(said, e.Error())
				}
			default:
				e, err := typed[v1alpha1.Experiment](t, object)
				if err != nil {
					continue
				}
				_, errs := plan.Validate(&e, all, checks)
				for _, e := range errs {
					said = append(said, e.Error())
				}
			}
			fmt.Fprintf(&out, "%s:\n  %s\n", name, strings.Join(said, "\n  "))
		}
	}
	golden(t, "refusals.golden", out.String())
}

// The file has the points of each sample, and the trials of its first point and its last.
func TestPlansOfSamples(t *testing.T) {
	all := systemsOf(t)
	files, err := filepath.Glob(filepath.Join(samples, "*.yaml"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d samples, %v", len(files), err)
	}
	var out bytes.Buffer
	for _, file := range files {
		e, err := typed[v1alpha1.Experiment](t, sampleOf(t, filepath.Base(file)))
		if err != nil || e.Kind != "Experiment" {
			continue
		}
		fmt.Fprintf(&out, "# %s\n", filepath.Base(file))
		p, errs := plan.Validate(&e, all, checks)
		for _, err := range errs {
			fmt.Fprintf(&out, "refused: %v\n", err)
		}
		if p == nil {
			continue
		}
		for _, w := range p.Warnings {
			fmt.Fprintf(&out, "warning: %s\n", w)
		}
		for _, point := range p.Points {
			fmt.Fprintf(&out, "%d %v, %d replicas, %d flame graphs\n", point.Template.Point.Index, point.Template.Point.Coordinates, point.Replicas, len(point.FlameGraphs))
		}
		for _, point := range []plan.Point{p.Points[0], p.Points[len(p.Points)-1]} {
			text, err := yaml.Marshal(point.Template)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "## the trials of point %d\n%s", point.Template.Point.Index, text)
		}
		for _, line := range plan.DescribeLoad(p.Spec.Clients) {
			fmt.Fprintln(&out, line)
		}
		step := plan.Next(p, 7, nil)
		fmt.Fprintf(&out, "## at first: %s: %s\n", step.Reason, step.Message)
		if c := step.Create; c != nil {
			fmt.Fprintf(&out, "trial %d of point %d, repetition %d, attempt %d, seed %d\n", c.Number, c.Point.Index, c.Repetition, c.Attempt, c.Seed)
		}
		for i, round := range plan.Rounds(p, 7)[:1] {
			fmt.Fprintf(&out, "round %d: %v\n", i, round[:min(12, len(round))])
		}
	}
	golden(t, "samples.golden", out.String())
}
