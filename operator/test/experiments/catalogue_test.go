package experiments

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/placement"
	"assay.dev/assay/operator/internal/plan"
)

var update = flag.Bool("update", false, "write experiments/README.md")

const (
	experimentsDir = "../../../experiments"
	// figures is how many figures and tables the five evaluations have.
	figures = 25
	// overhead of a trial beside its schedule: what kubectl assay plan assumes, too.
	overhead = 15 * time.Second
)

// runs says in the README's words what kind of system a row has.
var runs = map[string]string{"Original": "original", "StandIn": "stand-in", "Ours": "ours"}

// row is one figure of experiments/catalogue.yaml, which says what the fields mean.
type row struct {
	Paper    string   `json:"paper"`
	Figure   string   `json:"figure"`
	Files    []string `json:"files,omitempty"`
	Runs     string   `json:"runs,omitempty"`
	System   string   `json:"system,omitempty"`
	Ran      string   `json:"ran,omitempty"`
	Evidence string   `json:"evidence,omitempty"`
	Missing  string   `json:"missing,omitempty"`
}

func (r row) check() error {
	switch {
	case r.Paper == "" || r.Figure == "":
		return fmt.Errorf("a row has a paper and a figure: %+v", r)
	case (len(r.Files) > 0) == (r.Missing != ""):
		return fmt.Errorf("%s, %s: give either files or why they are missing", r.Paper, r.Figure)
	case len(r.Files) > 0 && (runs[r.Runs] == "" || r.System == ""):
		return fmt.Errorf("%s, %s: runs is %q, not Original, StandIn or Ours, or there is no system", r.Paper, r.Figure, r.Runs)
	case r.Missing != "" && (r.Runs+r.System+r.Ran+r.Evidence != ""):
		return fmt.Errorf("%s, %s: nothing runs without a file", r.Paper, r.Figure)
	case strings.Contains(r.Figure+r.System+r.Ran+r.Missing, "|"):
		return fmt.Errorf("%s, %s: a bar would end the table's cell", r.Paper, r.Figure)
	}
	return nil
}

// catalogue returns the figures of the evaluations, and the rows of our own.
func catalogue(t *testing.T) (rows, others []row) {
	t.Helper()
	text, err := os.ReadFile(experimentsDir + "/catalogue.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Rows   []row `json:"rows"`
		Others []row `json:"others"`
	}
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		t.Fatal(err)
	}
	return c.Rows, c.Others
}

// experimentFiles are the Experiments under experiments/, relative to it.
func experimentFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
		found, err := filepath.Glob(experimentsDir + "/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			name, _ := filepath.Rel(experimentsDir, file)
			if name != "catalogue.yaml" && !strings.HasPrefix(name, "reported/") && !strings.HasPrefix(name, "systems/") {
				files = append(files, name)
			}
		}
	}
	return files
}

func TestCatalogueRows(t *testing.T) {
	rows, others := catalogue(t)
	if len(rows) != figures {
		t.Errorf("%d rows; the evaluations have %d figures and tables", len(rows), figures)
	}
	for _, r := range rows {
		if r.Missing != "" {
			t.Errorf("%s, %s has no file: every figure has one, if only a stand-in", r.Paper, r.Figure)
		}
	}
	of := map[string]string{}
	for _, r := range slices.Concat(rows, others) {
		if err := r.check(); err != nil {
			t.Error(err)
		}
		for _, file := range r.Files {
			if of[file] != "" {
				t.Errorf("%s is the file of %s and of %s", file, of[file], r.Figure)
			}
			of[file] = r.Figure
			if _, err := os.Stat(experimentsDir + "/" + file); err != nil {
				t.Errorf("%s, %s: %v", r.Paper, r.Figure, err)
			}
		}
		if strings.ContainsAny(r.Ran, "[]") {
			t.Errorf("%s, %s: ran has brackets, which end the link to the evidence", r.Paper, r.Figure)
		}
		if r.Evidence != "" {
			if entries, err := os.ReadDir(experimentsDir + "/" + r.Evidence); err != nil || len(entries) == 0 {
				t.Errorf("%s, %s: no evidence in %s: %v", r.Paper, r.Figure, r.Evidence, err)
			}
		}
	}
	for _, file := range experimentFiles(t) {
		if of[file] == "" {
			t.Errorf("experiments/%s is in no row of experiments/catalogue.yaml", file)
		}
	}
}

// An incomplete row must not get into the README as if it were one with a file.
func TestCatalogueRefuses(t *testing.T) {
	good := row{Paper: "P", Figure: "1", Files: []string{"a.yaml"}, Runs: "Ours", System: "S"}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*row){
		"no figure":         func(r *row) { r.Figure = "" },
		"no file":           func(r *row) { r.Files = nil },
		"both":              func(r *row) { r.Missing = "x" },
		"no system":         func(r *row) { r.System = "" },
		"unknown kind":      func(r *row) { r.Runs = "Copy" },
		"run without file":  func(r *row) { r.Files, r.Missing = nil, "x" },
		"a bar in the cell": func(r *row) { r.Figure = "a|b" },
	} {
		bad := good
		change(&bad)
		if bad.check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// Whoever looks for a figure runs it at two sizes: smoke on a laptop, testbed on machines.
func TestExperimentsHaveTheProfiles(t *testing.T) {
	for _, file := range experimentFiles(t) {
		exp := readExperiment(t, file)
		for _, want := range []string{"smoke", "testbed"} {
			if !slices.ContainsFunc(exp.Spec.Profiles, func(p v1alpha1.Profile) bool { return p.Name == want }) {
				t.Errorf("%s: no profile %s", file, want)
			}
		}
	}
}

func TestReadmeIsCurrent(t *testing.T) {
	rows, others := catalogue(t)
	want := readme(t, rows, others)
	path := experimentsDir + "/README.md"
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want, string(got)); diff != "" {
		t.Errorf("experiments/README.md is stale; go test ./operator/test/experiments -run Readme -update writes it (-want +got):\n%s", diff)
	}
}

const readmeHead = `<!-- Generated by go test ./operator/test/experiments -run Readme -update; edit catalogue.yaml instead. -->

# Experiments

The figures and tables of five evaluations, and the file that runs each: %d of %d have one.

    kubectl assay plan -f experiments/basil/crypto.yaml                        # what it would do
    kubectl assay run -f experiments/basil/crypto.yaml --profile smoke --wait  # on a laptop

- **Runs** says which system. *Original* is the paper's own, or a baseline's, as it was published.
  *Stand-in* is another system of the same kind. *Ours* was written for Assay after the paper.
- **Machines** are replicas + client pods of the largest trial, one machine each in the full evaluation.
- **Time** is that of all trials as ` + "`kubectl assay plan`" + ` reckons it: the full evaluation, then the
  profile ` + "`smoke`" + `, which is for kind on two cores. The profile ` + "`testbed`" + ` is the full evaluation,
  placed on machines that are labelled for replicas and for clients.
- **Run by us** says what we ran and where the results are. Nothing else was run.

| figure | file | runs | machines | time | run by us |
|---|---|---|---|---|---|
`

const readmeOwn = `
## Of our own

| what | file | runs | machines | time | run by us |
|---|---|---|---|---|---|
`

const readmeTail = `
## Without a file

| figure | why |
|---|---|
`

func readme(t *testing.T, rows, others []row) string {
	t.Helper()
	systems := systemSpecs(t)
	b, own, tail := &bytes.Buffer{}, &bytes.Buffer{}, &bytes.Buffer{}
	with := 0
	for _, r := range others {
		writeRow(t, own, r, systems)
	}
	for _, r := range rows {
		if r.Missing != "" {
			fmt.Fprintf(tail, "| %s: %s | %s |\n", r.Paper, r.Figure, r.Missing)
			continue
		}
		with++
		writeRow(t, b, r, systems)
	}
	text := fmt.Sprintf(readmeHead, with, len(rows)) + b.String() + readmeOwn + own.String()
	if tail.Len() > 0 {
		text += readmeTail + tail.String()
	}
	return text
}

func writeRow(t *testing.T, b *bytes.Buffer, r row, systems map[string]v1alpha1.SystemSpec) {
	t.Helper()
	ran := cmp.Or(r.Ran, "never")
	if r.Evidence != "" {
		ran = fmt.Sprintf("[%s](%s)", ran, r.Evidence)
	}
	var files, machines, times []string
	for _, file := range r.Files {
		full, smoke := size(t, file, "", systems), size(t, file, "smoke", systems)
		files = append(files, fmt.Sprintf("[%s](%s)", file, file))
		machines = append(machines, full.machines)
		times = append(times, full.time+"; "+smoke.time)
	}
	fmt.Fprintf(b, "| %s: %s | %s | %s: %s | %s | %s | %s |\n", r.Paper, r.Figure, strings.Join(files, "<br>"),
		runs[r.Runs], r.System, strings.Join(machines, "<br>"), strings.Join(times, "<br>"), ran)
}

// extent is how large an experiment is.
type extent struct{ machines, time string }

func size(t *testing.T, file, profile string, systems map[string]v1alpha1.SystemSpec) extent {
	t.Helper()
	exp := readExperiment(t, file)
	exp.Spec.Profile = profile
	p, errs := plan.Validate(exp, systems, plan.Checks{})
	if len(errs) > 0 {
		t.Fatalf("%s, profile %q: %v", file, profile, errs.ToAggregate())
	}
	most := 0
	var machines string
	for i := range p.Points {
		spec := p.Points[i].Template
		system := systems[spec.System.Name]
		layout := placement.NewLayout("n", "t", &spec, &system)
		if n := len(layout.Servers) + len(layout.Clients); n > most {
			most, machines = n, fmt.Sprintf("%d + %d", len(layout.Servers), len(layout.Clients))
		}
	}
	s := p.Spec.Schedule
	trial := s.WarmUp.OrZero() + s.Measure.OrZero() + s.CoolDown.OrZero() + s.Drain.OrZero() + overhead
	return extent{machines: machines, time: rounded(time.Duration(p.Trials()) * trial)}
}

// rounded is a duration as people say it: 4 min, 1 h 20 min.
func rounded(d time.Duration) string {
	minutes := int(max(d.Round(time.Minute), time.Minute).Minutes())
	if minutes < 60 {
		return fmt.Sprintf("%d min", minutes)
	}
	return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
}

func readExperiment(t *testing.T, file string) *v1alpha1.Experiment {
	t.Helper()
	text, err := fs.ReadFile(os.DirFS(experimentsDir), file)
	if err != nil {
		t.Fatal(err)
	}
	exp, err := plan.DecodeExperiment(text)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return exp
}

func systemSpecs(t *testing.T) map[string]v1alpha1.SystemSpec {
	t.Helper()
	systems := map[string]v1alpha1.SystemSpec{}
	for _, d := range documents(t, experimentsDir+"/systems/*.yaml") {
		var s v1alpha1.System
		if err := yaml.UnmarshalStrict(d.text, &s); err != nil {
			t.Fatalf("%s: %v", d.file, err)
		}
		systems[s.Name] = s.Spec
	}
	return systems
}
