package experiments

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/fidelity"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/plan"
)

const (
	experimentsDir = "../../../experiments"
	// overhead of a trial beyond its schedule: kubectl assay plan assumes the same.
	overhead = 15 * time.Second
)

// How near a line of the catalogue is to its source, from the nearest. The classes follow from
// System.program, and no author asserts them.
const (
	original = iota
	reimplementation
	standIn
	none
)

var classes = []string{"original", "re-implementation", "stand-in", "-"}

// item is one figure, table or numbered experiment; experiments/catalogue.yaml says what the fields
// mean.
type item struct {
	ID      string   `json:"id"`
	Source  string   `json:"source"`
	Item    string   `json:"item"`
	Prints  string   `json:"prints,omitempty"`
	Note    string   `json:"note,omitempty"`
	Related []string `json:"related,omitempty"`
	Lines   []line   `json:"lines"`
}

type line struct {
	Line    string  `json:"line"`
	Program string  `json:"program"`
	By      []cover `json:"by,omitempty"`
}

// cover is a file that covers a line.
type cover struct {
	File string                    `json:"file"`
	At   map[string]v1alpha1.Value `json:"at,omitempty"`
	But  string                    `json:"but,omitempty"`

	class   int
	program string // the program that runs
	here    bool   // this repository makes its images
	runs    []run  // in which the line has valid trials
}

// in which the line has valid trials
func (it item) class() string {
	best, all := none, true
	for _, l := range it.Lines {
		c := l.class()
		best = min(best, c)
		all = all && c == original
	}
	switch {
	case best == original && all:
		return "the source's own program, every line"
	case best == original:
		return "the source's own program, a part of the lines"
	case best == reimplementation:
		return "a re-implementation of it"
	case best == standIn:
		return "a stand-in"
	}
	return noFile
}

const noFile = "nothing: there is no file"

// itemClasses in the order of a table.
var itemClasses = []string{
	"the source's own program, every line", "the source's own program, a part of the lines", "a re-implementation of it", "a stand-in", noFile,
}

func (l line) class() int {
	best := none
	for _, c := range l.By {
		best = min(best, c.class)
	}
	return best
}

// ran reports whether valid trials of the line exist, of the class.
func (l line) ran(class int) bool {
	return slices.ContainsFunc(l.By, func(c cover) bool { return c.class == class && len(c.runs) > 0 })
}

// catalogue is the content of experiments/ with everything that follows from it.
type catalogue struct {
	dir         string
	items       []item
	systems     map[string]v1alpha1.SystemSpec
	experiments map[string]*v1alpha1.Experiment // by file
	plans       map[string]*plan.Plan           // full, by file
	runs        map[string][]run                // by name of the experiment
	built       map[string]bool                 // images that this repository makes
	numbers     int                             // under experiments/reported
	unused      []unused
}

// readCatalogue reads a folder with the structure of experiments/, and computes the rest.
func readCatalogue(dir string) (*catalogue, error) {
	c := &catalogue{dir: dir, experiments: map[string]*v1alpha1.Experiment{}, plans: map[string]*plan.Plan{}}
	var err error
	if c.systems, err = readSystems(dir); err != nil {
		return nil, err
	}
	if c.runs, err = readRuns(dir); err != nil {
		return nil, err
	}
	if c.built, err = images(rootDir); err != nil {
		return nil, err
	}
	for _, file := range filesIn(dir) {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, err
		}
		exp, err := plan.DecodeExperiment(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		p, errs := plan.Validate(exp.DeepCopy(), c.systems, plan.Checks{})
		if len(errs) > 0 {
			return nil, fmt.Errorf("%s: %w", file, errs.ToAggregate())
		}
		c.experiments[file], c.plans[file] = exp, p
	}
	text, err := os.ReadFile(filepath.Join(dir, "catalogue.yaml"))
	if err != nil {
		return nil, err
	}
	var file struct {
		Items  []item   `json:"items"`
		Unused []unused `json:"unused"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, err
	}
	c.items, c.unused = file.Items, file.Unused
	if err := c.compute(); err != nil {
		return nil, err
	}
	return c, c.countUnused()
}

// compute checks the items, and finds the class and the runs of each line.
func (c *catalogue) compute() error {
	seen := map[string]bool{}
	for _, it := range c.items {
		if it.ID == "" || it.Source == "" || it.Item == "" || len(it.Lines) == 0 || seen[it.ID] {
			return fmt.Errorf("item %q: an item has an id of its own, a source, a name and lines", it.ID)
		}
		seen[it.ID] = true
		for _, file := range it.Related {
			if c.experiments[file] == nil {
				return fmt.Errorf("%s: there is no file %s", it.ID, file)
			}
		}
		for i := range it.Lines {
			for k := range it.Lines[i].By {
				if err := c.cover(it.Lines[i].Program, &it.Lines[i].By[k]); err != nil {
					return fmt.Errorf("%s, %s: %w", it.ID, it.Lines[i].Line, err)
				}
			}
		}
	}
	return nil
}

func (c *catalogue) cover(measured string, v *cover) error {
	exp := c.experiments[v.File]
	switch {
	case exp == nil:
		return fmt.Errorf("there is no file %s", v.File)
	case exp.Spec.Source == nil || !slices.ContainsFunc(exp.Spec.Source.Systems, func(s v1alpha1.SourceSystem) bool { return s.Name == measured }):
		return fmt.Errorf("%s does not say in source.systems that its source measured %s", v.File, measured)
	}
	systems := map[string]bool{}
	for _, p := range c.plans[v.File].Points {
		if selects(v.At, p.Template.Point.Coordinates) {
			systems[p.Template.System.Name] = true
		}
	}
	if len(systems) == 0 {
		return fmt.Errorf("%s has no point at %v", v.File, v.At)
	}
	v.here = true
	for name := range systems {
		v.here = v.here && c.makes(c.systems[name])
		class, program := classOf(c.systems[name].Program, measured)
		if class >= v.class {
			v.class, v.program = class, program
		}
	}
	for _, r := range c.runs[exp.Name] {
		if r.valid(v.At) {
			v.runs = append(v.runs, r)
		}
	}
	return nil
}

func selects(at map[string]v1alpha1.Value, coordinates map[string]string) bool {
	for axis, want := range at {
		if got, ok := coordinates[axis]; !ok || got != want.String() {
			return false
		}
	}
	return true
}

// classOf compares a System's program with the program that the source measured.
func classOf(p *v1alpha1.Program, measured string) (class int, program string) {
	_, name := fidelity.Relate(p, []v1alpha1.SourceSystem{{Name: measured}})
	class = map[string]int{fidelity.Original: original, fidelity.Reimplementation: reimplementation, fidelity.StandIn: standIn}[name]
	if p == nil {
		return class, "an unnamed program"
	}
	return class, p.Name
}

// filesIn are the Experiments in a folder with the structure of experiments/, relative to it.
func filesIn(dir string) []string {
	var files []string
	for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are well-formed
		for _, file := range found {
			name, _ := filepath.Rel(dir, file)
			if name != "catalogue.yaml" && !strings.HasPrefix(name, "reported/") && !strings.HasPrefix(name, "systems/") {
				files = append(files, name)
			}
		}
	}
	return files
}

func readSystems(dir string) (map[string]v1alpha1.SystemSpec, error) {
	files, err := filepath.Glob(filepath.Join(dir, "systems", "*.yaml"))
	if err != nil {
		return nil, err
	}
	systems := map[string]v1alpha1.SystemSpec{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var s v1alpha1.System
		if err := yaml.UnmarshalStrict(text, &s); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		systems[s.Name] = s.Spec
	}
	return systems, nil
}

// count is a row of the table by class of item.
type count struct{ items, lines, here, ran, further int }

// counts of items by class, and of their lines. It counts all lines, and the lines whose nearest
// file needs no foreign image. It also counts the lines that ran as their nearest file defines
// them, and the lines that ran only further from the source.
func (c *catalogue) counts() map[string]count {
	all := map[string]count{}
	for _, it := range c.items {
		n := all[it.class()]
		n.items++
		n.lines += len(it.Lines)
		for _, l := range it.Lines {
			if i := slices.IndexFunc(l.By, func(v cover) bool { return v.class == l.class() }); i >= 0 && l.By[i].here {
				n.here++
			}
			switch best := l.class(); {
			case l.ran(best):
				n.ran++
			case l.ran(reimplementation) || l.ran(standIn):
				n.further++
			}
		}
		all[it.class()] = n
	}
	return all
}

// extent is the size of an experiment.
type extent struct{ machines, time string }

// planOf returns the plan of a file in a profile; "" is the full evaluation.
func (c *catalogue) planOf(file, profile string) (*plan.Plan, error) {
	if profile == "" {
		return c.plans[file], nil
	}
	exp := c.experiments[file].DeepCopy()
	exp.Spec.Profile = profile
	p, errs := plan.Validate(exp, c.systems, plan.Checks{})
	if len(errs) > 0 {
		return nil, fmt.Errorf("%s, profile %q: %w", file, profile, errs.ToAggregate())
	}
	return p, nil
}

// withProfile returns the files that have a profile of that name.
func (c *catalogue) withProfile(name string) (files []string) {
	for _, file := range slices.Sorted(maps.Keys(c.experiments)) {
		if slices.ContainsFunc(c.experiments[file].Spec.Profiles, func(p v1alpha1.Profile) bool { return p.Name == name }) {
			files = append(files, file)
		}
	}
	return files
}

func (c *catalogue) size(file, profile string) (extent, error) {
	p, err := c.planOf(file, profile)
	if err != nil {
		return extent{}, err
	}
	most := 0
	var machines string
	for i := range p.Points {
		spec := p.Points[i].Template
		system := c.systems[spec.System.Name]
		layout := placement.NewLayout("n", "t", &spec, &system)
		if n := len(layout.Servers) + len(layout.Clients); n > most {
			most, machines = n, fmt.Sprintf("%d + %d", len(layout.Servers), len(layout.Clients))
		}
	}
	return extent{machines: machines, time: rounded(duration(p))}, nil
}

// duration of all trials that the plan has at least.
func duration(p *plan.Plan) time.Duration {
	s := p.Spec.Schedule
	trial := s.WarmUp.OrZero() + s.Measure.OrZero() + s.CoolDown.OrZero() + s.Drain.OrZero() + overhead
	return time.Duration(p.Trials()) * trial
}

// rounded is a duration as people say it: 4 min, 1 h 20 min.
func rounded(d time.Duration) string {
	minutes := int(max(d.Round(time.Minute), time.Minute).Minutes())
	if minutes < 60 {
		return fmt.Sprintf("%d min", minutes)
	}
	return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
}

// Every file belongs to a line of the catalogue, is about an item, or asks a question of our own.
func TestCatalogueHasAllFiles(t *testing.T) {
	c, err := readCatalogue(experimentsDir)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, it := range c.items {
		for _, file := range it.Related {
			named[file] = true
		}
		for _, l := range it.Lines {
			for _, v := range l.By {
				named[v.File] = true
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(c.experiments)) {
		if !named[file] && c.experiments[file].Spec.Source != nil {
			t.Errorf("experiments/%s has a source, and is in no item of experiments/catalogue.yaml", file)
		}
	}
}

// The catalogue follows from the files: it changes when a System has another program, or when a
// file is gone.
func TestCatalogueFollowsFromFiles(t *testing.T) {
	before, err := readCatalogue(experimentsDir)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		file, old, new string
		from, to       string // classes of items; at least one item moves between them
		fails          string
	}{
		"the authors' own program in place of ours": {file: "systems/basil.yaml", old: "{name: Basil in Go, reimplements: Basil}", new: "{name: Basil}",
			from: "a re-implementation of it", to: "the source's own program, every line"},
		"another program under the name of a baseline": {file: "systems/cockroachdb.yaml", old: "name: CockroachDB,", new: "name: Another,",
			from: "the source's own program, every line", to: "a stand-in"},
		"an axis loses a value": {file: "pesto/wan.yaml", old: "values: [lan, regional, continental]", new: "values: [lan, regional]", fails: "has no point at"},
		"the source is another": {file: "pesto/wan.yaml", old: "systems: [{name: Pesto}]", new: "systems: [{name: Basil}]", fails: "does not say"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, withoutEvidence{os.DirFS(experimentsDir)}); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(dir, tc.file))
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(text), tc.old, tc.new, 1)
			if changed == string(text) {
				t.Fatalf("%s does not say %q any more", tc.file, tc.old)
			}
			if err := os.WriteFile(filepath.Join(dir, tc.file), []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			after, err := readCatalogue(dir)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Fatalf("got %v, want an error with %q", err, tc.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			was, is := before.counts(), after.counts()
			if moved := was[tc.from].items - is[tc.from].items; moved < 1 || is[tc.to].items-was[tc.to].items != moved {
				t.Errorf("items by class were %v, and are %v; want some of %q among %q", was, is, tc.from, tc.to)
			}
			if n := is[tc.to]; n.ran > 0 || n.further > 0 {
				t.Errorf("without evidence nothing ran, but of %q %d lines did", tc.to, n.ran+n.further)
			}
		})
	}
}

// A reader who looks for a figure can run it at two sizes: smoke on a laptop, testbed on machines.
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

// The profile medium has a figure of each source whose programs this repository makes: every line
// that runs with these images, on one machine of two processors. It ends in some minutes, and its
// repetitions go on until its claims are decided.
func TestMediumHasAllLinesOfAFigure(t *testing.T) {
	c, err := readCatalogue(experimentsDir)
	if err != nil {
		t.Fatal(err)
	}
	medium := map[string]*plan.Plan{}
	for _, file := range c.withProfile("medium") {
		if medium[file], err = c.planOf(file, "medium"); err != nil {
			t.Fatal(err)
		}
	}
	whole := map[string][]string{} // items, by source
	for _, it := range c.items {
		if !slices.ContainsFunc(it.Lines, line.here) {
			continue
		}
		whole[it.Source] = append(whole[it.Source], it.wholeIn(medium)...)
	}
	if len(whole) != 5 {
		t.Errorf("the images made here run lines of %d sources, want 5", len(whole))
	}
	for source, items := range whole {
		if len(items) == 0 {
			t.Errorf("%s: no item has all of its lines in a profile medium", source)
		}
		t.Logf("%s: %v", source, items)
	}
	for file, p := range medium {
		if r := p.Spec.Repetitions; r.Until == nil || r.Until.Claims != v1alpha1.ClaimsDecided {
			t.Errorf("%s: the profile medium does not repeat until its claims are decided", file)
		}
		if len(plan.SkippedClaims(p.Spec)) == len(p.Spec.Claims) {
			t.Errorf("%s: the profile medium judges no claim", file)
		}
		if most := 20 * time.Minute; duration(p) > most {
			t.Errorf("%s: the profile medium takes %s at least, more than %s", file, duration(p), most)
		}
	}
}

// here reports whether some file runs the line with images that this repository makes.
func (l line) here() bool {
	return slices.ContainsFunc(l.By, func(v cover) bool { return v.here })
}

// wholeIn returns the item's id if each line that runs with images made here has a point in some of
// the plans, by file.
func (it item) wholeIn(plans map[string]*plan.Plan) []string {
	for _, l := range it.Lines {
		if l.here() && !slices.ContainsFunc(l.By, func(v cover) bool {
			p := plans[v.File]
			return p != nil && slices.ContainsFunc(p.Points, func(p plan.Point) bool { return selects(v.At, p.Template.Point.Coordinates) })
		}) {
			return nil
		}
	}
	return []string{it.ID}
}

func experimentFiles(t *testing.T) []string {
	t.Helper()
	files := filesIn(experimentsDir)
	if len(files) < 60 {
		t.Fatalf("%d experiments found", len(files))
	}
	return files
}

func readExperiment(t *testing.T, file string) *v1alpha1.Experiment {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(experimentsDir, file))
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
	systems, err := readSystems(experimentsDir)
	if err != nil {
		t.Fatal(err)
	}
	return systems
}
