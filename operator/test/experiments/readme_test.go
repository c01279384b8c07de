package experiments

import (
	"bufio"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
)

var update = flag.Bool("update", false, "write experiments/README.md and the catalogue's block in README.md")

const (
	rootDir = "../../.."
	begin   = "<!-- catalogue: written by go test ./operator/test/experiments -run Readme -update -->\n"
	end     = "<!-- catalogue: end -->\n"
)

func TestReadmesAreCurrent(t *testing.T) {
	c, err := readCatalogue(experimentsDir)
	if err != nil {
		t.Fatal(err)
	}
	full, err := c.readme()
	if err != nil {
		t.Fatal(err)
	}
	front, err := os.ReadFile(rootDir + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(front), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("README.md has no lines %q and %q", begin, end)
	}
	for path, want := range map[string]string{
		experimentsDir + "/README.md": full,
		rootDir + "/README.md":        before + begin + c.summary() + end + after,
	} {
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // a document
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is stale; make generate writes it (-want +got):\n%s", path, diff)
		}
	}
}

// summary is the table of items by class.
func (c *catalogue) summary() string {
	counts := c.counts()
	var b strings.Builder
	var sum count
	b.WriteString("\n| what the files define | items | lines | their images are made here | we ran | we ran only something further from the source |\n|---|---|---|---|---|---|\n")
	for _, class := range itemClasses {
		n := counts[class]
		sum = count{sum.items + n.items, sum.lines + n.lines, sum.here + n.here, sum.ran + n.ran, sum.further + n.further}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d |\n", class, n.items, n.lines, n.here, n.ran, n.further)
	}
	fmt.Fprintf(&b, "| all | %d | %d | %d | %d | %d |\n", sum.items, sum.lines, sum.here, sum.ran, sum.further)
	sizes := map[string]int{}
	for _, it := range c.items {
		for _, size := range it.sizes() {
			sizes[size]++
		}
	}
	fmt.Fprintf(&b, "\nAt full size we ran lines of %d items; all others in a smaller profile.\n\n", sizes["full"])
	return b.String()
}

// sizes at which lines of the item ran.
func (it item) sizes() []string {
	var all []string
	for _, l := range it.Lines {
		for _, v := range l.By {
			for _, r := range v.runs {
				all = append(all, r.size())
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

const head = `<!-- Generated: make generate. Edit catalogue.yaml and the experiments. -->

# Experiments

Six sources have %d figures, tables and numbered experiments. They have %d lines: the curves of
figures, and the rows of tables. Each item is counted once, by its nearest lines:
%sA line counts as run if it has valid trials in a bundle that is committed here.

    kubectl assay plan -f experiments/basil/crypto.yaml                        # what it would do
    kubectl assay run -f experiments/basil/crypto.yaml --profile smoke --wait  # on a laptop

## Items and lines

- **Runs** compares the program of the System with the one that the source measured in that line. An
  *original* has the same name. A *re-implementation* implements its published protocol anew. A
  *stand-in* is anything else.
- **We ran** names the profile of a bundle that has valid trials of the line, and what became of the
  file's claims in it. *Not judged* are those that the profile skips. The bundle has sentences,
  numbers and intervals.
- *Changed since* says that the file's load or its claims are not those of the run any more.
`

const filesHead = `
## Files

- **Image** says whether this repository makes all images of the Systems. Where it does not,
  systems/*/README.md says what an image must hold.
- **Machines** are replicas + client pods of the largest trial, one machine each in the full
  evaluation.
- **Time** is that of all trials as ` + "`kubectl assay plan`" + ` reckons it: the full evaluation, then the
  profile ` + "`smoke`" + `, which is for kind on two cores. The profile ` + "`medium`" + ` has all lines of a
  figure that the images made here can run, on one idle machine of two processors. Its repetitions
  go on until its claims are decided, or its rounds are over. The profile ` + "`testbed`" + ` is the full
  evaluation, placed on machines that are labelled for replicas and for clients.

| file | program | source | image | machines | time | bundles |
|---|---|---|---|---|---|---|
`

func (c *catalogue) readme() (string, error) {
	lines := 0
	var tables strings.Builder
	source := ""
	for _, it := range c.items {
		lines += len(it.Lines)
		if it.Source != source {
			source = it.Source
			fmt.Fprintf(&tables, "\n### %s\n\n| item | lines | runs | file | we ran |\n|---|---|---|---|---|\n", source)
		}
		c.writeItem(&tables, it)
	}
	c.writeUnused(&tables)
	tables.WriteString(filesHead)
	for _, file := range filesIn(c.dir) {
		if err := c.writeFile(&tables, file); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf(head, len(c.items), lines, c.summary()) + tables.String(), nil
}

// writeItem writes lines with the same cover as one row.
func (c *catalogue) writeItem(b *strings.Builder, it item) {
	title := fmt.Sprintf("**%s** %s", it.ID, it.Item)
	if it.Prints != "" {
		title += fmt.Sprintf(".<br>Prints %s.", it.Prints)
	}
	for _, extra := range []string{it.Note, related(it.Related)} {
		if extra != "" {
			title += "<br>" + extra
		}
	}
	var names []string
	for i, l := range it.Lines {
		names = append(names, l.Line)
		row := c.lineCells(l)
		if i+1 < len(it.Lines) && c.lineCells(it.Lines[i+1]) == row {
			continue
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", title, strings.Join(names, "; "), row)
		title, names = "", nil
	}
}

func related(files []string) string {
	if len(files) == 0 {
		return ""
	}
	var links []string
	for _, f := range files {
		links = append(links, fmt.Sprintf("[%s](%s)", f, f))
	}
	return "See also " + strings.Join(links, ", ")
}

// lineCells are class, files and runs of a line.
func (c *catalogue) lineCells(l line) string {
	if len(l.By) == 0 {
		return classes[none] + " | | "
	}
	var runs, files, ran []string
	for _, v := range l.By {
		kind := classes[v.class]
		if v.class != original {
			kind += ": " + v.program
		}
		if v.But != "" {
			kind += ". " + v.But + "."
		}
		runs = append(runs, kind)
		files = append(files, fmt.Sprintf("[%s](%s)", v.File, v.File))
		ran = append(ran, c.ranCell(v.File, v.runs))
	}
	return strings.Join(runs, "<br>") + " | " + strings.Join(files, "<br>") + " | " + strings.Join(ran, "<br>")
}

func (c *catalogue) ranCell(file string, runs []run) string {
	if len(runs) == 0 {
		return "no"
	}
	var cells []string
	for _, r := range runs {
		text := fmt.Sprintf("[%s](%s): %s", r.size(), r.file, r.verdicts())
		if changed := r.changed(c.experiments[file].Spec); changed != "" {
			text += "; " + changed + " changed since"
		}
		cells = append(cells, text)
	}
	return strings.Join(cells, ", ")
}

func (c *catalogue) writeFile(b *strings.Builder, file string) error {
	exp := c.experiments[file]
	full, err := c.size(file, "")
	if err != nil {
		return err
	}
	smoke, err := c.size(file, "smoke")
	if err != nil {
		return err
	}
	times := full.time + "; " + smoke.time
	if slices.Contains(c.withProfile("medium"), file) {
		medium, err := c.size(file, "medium")
		if err != nil {
			return err
		}
		times += "; medium " + medium.time
	}
	var programs []string
	image := "here"
	for _, ref := range exp.Spec.Systems {
		spec := c.systems[ref.Name]
		programs = append(programs, spec.Program.Name+version(spec.Program))
		if !c.makes(spec) {
			image = "not in this repository"
		}
	}
	source := "our own question"
	if s := exp.Spec.Source; s != nil {
		source = strings.SplitN(s.Title, ":", 2)[0]
		source = strings.SplitN(source, " (", 2)[0]
	}
	var bundles []string
	for _, r := range c.runs[exp.Name] {
		bundles = append(bundles, fmt.Sprintf("[%s](%s): %d of %d trials valid", r.size(), r.file, r.trials(), r.Planned))
	}
	if len(bundles) == 0 {
		bundles = []string{"none"}
	}
	fmt.Fprintf(b, "| [%s](%s) | %s | %s | %s | %s | %s | %s |\n", file, file, strings.Join(programs, ", "), source, image,
		full.machines, times, strings.Join(bundles, ", "))
	return nil
}

func version(p *v1alpha1.Program) string {
	if p.Version == "" || len(p.Version) == 12 { // a commit
		return ""
	}
	return " " + p.Version
}

// makes reports whether this repository makes all images of a System.
func (c *catalogue) makes(s v1alpha1.SystemSpec) bool {
	var containers []v1alpha1.Container
	containers = append(containers, s.Replicas.Containers...)
	containers = append(containers, s.Clients.Containers...)
	for _, component := range s.Components {
		containers = append(containers, component.Containers...)
	}
	for _, container := range containers {
		name, _, _ := strings.Cut(container.Image, ":")
		if !c.built[name] {
			return false
		}
	}
	return true
}

// images are the names of the images that this repository makes. They are the first fields of the
// lists hack/images/images.txt and systems/*/images*.txt.
func images(root string) (map[string]bool, error) {
	lists, err := filepath.Glob(filepath.Join(root, "systems", "*", "images*.txt"))
	if err != nil {
		return nil, err
	}
	built := map[string]bool{}
	for _, list := range append(lists, filepath.Join(root, "hack", "images", "images.txt")) {
		f, err := os.Open(list)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			if fields := strings.Fields(lines.Text()); len(fields) > 1 && !strings.HasPrefix(fields[0], "#") {
				built[fields[0]] = true
			}
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	return built, nil
}

// A bar would end a cell of a table.
func TestCatalogueHasNoBars(t *testing.T) {
	text, err := fs.ReadFile(os.DirFS(experimentsDir), "catalogue.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "|") {
		t.Errorf("%s has a bar", path.Join("experiments", "catalogue.yaml"))
	}
}
