// Package experiments checks the files under experiments/ and the objects of the end-to-end tests
// like admission, without a cluster. It expands every profile of every experiment, parses its
// claims and renders its templates.
package experiments

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/experiment/monitoring"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/render"
)

// document is one object of a YAML file.
type document struct {
	file string
	kind string
	text []byte
}

func documents(t *testing.T, patterns ...string) []document {
	t.Helper()
	var all []document
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files (%v)", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, doc := range bytes.Split(text, []byte("\n---\n")) {
				var meta struct{ Kind string }
				if err := yaml.Unmarshal(doc, &meta); err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				all = append(all, document{file: file, kind: meta.Kind, text: doc})
			}
		}
	}
	return all
}

func TestFiles(t *testing.T) {
	docs := documents(t, "../../../experiments/*.yaml", "../../../experiments/*/*.yaml", "../e2e/testdata/*.yaml")
	systems := map[string]v1alpha1.SystemSpec{}
	for _, d := range docs {
		if d.kind != "System" {
			continue
		}
		var s v1alpha1.System
		if err := yaml.UnmarshalStrict(d.text, &s); err != nil {
			t.Errorf("%s: %v", d.file, err)
			continue
		}
		parse := func(name, text string) error { _, err := render.ParseTemplate(name, text); return err }
		for _, err := range plan.ValidateSystem(&s.Spec, parse) {
			t.Errorf("%s: %v", d.file, err)
		}
		systems[s.Name] = s.Spec
	}
	for _, d := range docs {
		if d.kind != "Experiment" {
			continue
		}
		exp, err := plan.DecodeExperiment(d.text)
		if err != nil {
			t.Errorf("%s: %v", d.file, err)
			continue
		}
		profiles := []string{exp.Spec.Profile}
		for _, p := range exp.Spec.Profiles {
			profiles = append(profiles, p.Name)
		}
		for _, profile := range profiles {
			t.Run(fmt.Sprintf("%s/%s", filepath.Base(d.file), profile), func(t *testing.T) {
				t.Parallel()
				check(t, exp.DeepCopy(), profile, systems)
			})
		}
	}
}

func check(t *testing.T, exp *v1alpha1.Experiment, profile string, systems map[string]v1alpha1.SystemSpec) {
	exp.Spec.Profile = profile
	p, errs := plan.Validate(exp, systems, plan.Checks{Templates: render.Check, Claim: claims.Check, Reads: claims.Reads, Measurement: monitoring.Check, UnusedParameters: true})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	if len(p.Warnings) > 0 {
		t.Errorf("warnings: %s", strings.Join(p.Warnings, "; "))
	}
	t.Logf("%d points, %d trials", len(p.Points), p.Trials())
}

// Reported latencies and throughputs come in pairs for the same clients, and a closed loop relates
// them: the number of clients is about throughput times latency. The clients were inferred from
// that, and the test finds errors in the copied numbers.
func TestReportedSeriesFitLittlesLaw(t *testing.T) {
	for _, d := range documents(t, "../../../experiments/failure-fp.yaml", "../../../experiments/pesto/failure-zipf.yaml") {
		exp, err := plan.DecodeExperiment(d.text)
		if err != nil {
			t.Fatal(err)
		}
		series := map[string]v1alpha1.ReportedSeries{}
		for _, r := range exp.Spec.Reported {
			series[r.Name] = r
		}
		pairs := 0
		for name, throughput := range series {
			base, ok := strings.CutSuffix(name, "-throughput")
			if !ok {
				continue
			}
			latency := series[base+"-latency"]
			if len(latency.Values) != len(throughput.Values) {
				t.Errorf("%s: %s has %d latencies and %d throughputs", d.file, base, len(latency.Values), len(throughput.Values))
				continue
			}
			pairs++
			for i, v := range throughput.Values {
				clients, inFlight := number(t, v.X), number(t, v.Y)*number(t, latency.Values[i].Y)/1000
				// The artifact's throughput is up to 7% high; clients are whole numbers.
				if !latency.Values[i].X.Equal(v.X) || inFlight < clients-0.5 || inFlight > 1.07*clients+0.5 {
					t.Errorf("%s: %s, column %d: %g clients, but throughput times latency is %.1f", d.file, base, i, clients, inFlight)
				}
			}
		}
		if pairs != 3 {
			t.Errorf("%s: %d pairs of series, want 3", d.file, pairs)
		}
	}
}

func number(t *testing.T, v v1alpha1.Value) float64 {
	t.Helper()
	var x float64
	if _, err := fmt.Sscan(v.String(), &x); err != nil {
		t.Fatal(err)
	}
	return x
}
