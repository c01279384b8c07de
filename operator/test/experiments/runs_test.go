package experiments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results/renames"
)

// run is a bundle under experiments/*/evidence.
type run struct {
	file    string // relative to experiments/
	spec    v1alpha1.ExperimentSpec
	Name    string `json:"name"`
	Profile string `json:"profile"`
	Planned int    `json:"planned"`
	Points  []struct {
		Coordinates map[string]string `json:"coordinates"`
		Valid       int               `json:"valid"`
	} `json:"points"`
	Claims []struct {
		Name    string           `json:"name"`
		Verdict v1alpha1.Verdict `json:"verdict"`
	} `json:"claims"`
}

// readRuns reads the bundles, by the name of their experiment.
func readRuns(dir string) (map[string][]run, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "evidence", "*.tar.zst"))
	if err != nil {
		return nil, err
	}
	runs := map[string][]run{}
	for _, file := range files {
		r, err := readRun(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		r.file, _ = filepath.Rel(dir, file)
		runs[r.Name] = append(runs[r.Name], r)
	}
	return runs, nil
}

func readRun(file string) (run, error) {
	var r run
	data, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	wanted := func(name string) bool {
		return name == "results.json" || name == "experiment.yaml"
	}
	err = archive.Read(bytes.NewReader(data), wanted, func(name string, data []byte) error {
		if path.Base(name) == "results.json" {
			return json.Unmarshal(data, &r)
		}
		data, err := renames.Experiment(data)
		if err != nil {
			return err
		}
		exp, err := plan.DecodeExperiment(data)
		if err != nil {
			return err
		}
		r.spec = exp.Spec
		return nil
	})
	if err == nil && r.Name == "" {
		err = fmt.Errorf("it has no results.json")
	}
	return r, err
}

// valid reports whether the run has valid trials at these values of axes. The coordinates may lack
// an axis that the profile left at one value, or that only the System knows.
func (r run) valid(at map[string]v1alpha1.Value) bool {
	for _, p := range r.Points {
		if p.Valid > 0 && selects(at, p.Coordinates) {
			return true
		}
	}
	return false
}

func (r run) trials() int {
	n := 0
	for _, p := range r.Points {
		n += p.Valid
	}
	return n
}

// verdicts counts the verdicts, in words that fit every kind of program and size.
func (r run) verdicts() string {
	var supported, refuted, open, skipped int
	for _, c := range r.Claims {
		switch {
		case c.Verdict.Supports():
			supported++
		case c.Verdict.Refutes():
			refuted++
		case c.Verdict == v1alpha1.VerdictInconclusive:
			open++
		default:
			skipped++
		}
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{supported, "supported"}, {refuted, "refuted"}, {open, "open"}, {skipped, "not judged"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

// size of the run, in a word.
func (r run) size() string {
	if r.Profile == "" {
		return "full"
	}
	return r.Profile
}

// changed says which parts of the file have changed since the run.
func (r run) changed(now v1alpha1.ExperimentSpec) string {
	now.Profile = r.Profile
	then, today := plan.ApplyProfile(r.spec), plan.ApplyProfile(now)
	load := func(s v1alpha1.ExperimentSpec) any {
		if len(s.Workload.Parameters) == 0 {
			s.Workload.Parameters = nil
		}
		return []any{s.Workload, s.Sweep, s.Topology, s.Schedule, s.Clients, s.Parameters, s.Systems, s.Faults, s.Network}
	}
	claims := func(s v1alpha1.ExperimentSpec) map[string]string {
		all := map[string]string{}
		for _, c := range s.Claims {
			reported := ""
			if c.Reported != nil {
				reported = c.Reported.String()
			}
			all[c.Name] = strings.Join(strings.Fields(c.Expr+" "+reported+" "+c.Within), " ")
		}
		return all
	}
	var parts []string
	if !reflect.DeepEqual(load(then), load(today)) {
		parts = append(parts, "load")
	}
	if !reflect.DeepEqual(claims(then), claims(today)) {
		parts = append(parts, "claims")
	}
	return strings.Join(parts, " and ")
}

// withoutEvidence hides the bundles.
type withoutEvidence struct{ fs.FS }

func (f withoutEvidence) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(f.FS, name)
	var kept []fs.DirEntry
	for _, e := range entries {
		if e.Name() != "evidence" {
			kept = append(kept, e)
		}
	}
	return kept, err
}
