package artifact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/analysis/report/bundle"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/text/strict"
)

// failureFP is a bundle of a real run, with two of six claims judged.
const failureFP = "../../../../../experiments/pesto/evidence/failure-fp.tar.zst"

// everything is what careful authors say.
var everything = About{
	Title: "Failures & fast paths: 100% of it", Authors: []Author{{Given: "Ada", Family: "Lovelace", ORCID: "0000-0002-1825-0097", Affiliation: "An institute"}, {Family: "Ω"}},
	Paper: "10.1145/1234567.1234568", DOI: "10.5281/zenodo.1234567", License: "CC-BY-4.0", Repository: "https://example.org/source", Version: "1.0", Keywords: []string{"faults"},
	Hardware: "Two machines.", Ethics: "It endangers nothing.",
	Images: map[string]string{"assay/basil:dev": "registry.example.org/basil@sha256:" + strings.Repeat("0", 64)},
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func makeOf(t *testing.T, about About) (Made, map[string]string) {
	t.Helper()
	made, err := Make(Input{Bundle: read(t, failureFP), About: about})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range made.Files {
		files[f.Name] = string(f.Data)
	}
	return made, files
}

func TestArtifactHoldsWhatIsHandedIn(t *testing.T) {
	made, files := makeOf(t, About{})
	var names []string
	for _, f := range made.Files {
		names = append(names, f.Name)
		if f.Script != strings.HasSuffix(f.Name, ".sh") {
			t.Errorf("%s may be executed: %v", f.Name, f.Script)
		}
	}
	want := []string{
		".zenodo.json", "CHECKLIST.md", "CITATION.cff", "README.md", "about.yaml", "appendix/acm-body.tex", "appendix/acm.md", "appendix/acm.tex", "appendix/usenix-body.tex", "appendix/usenix.md", "appendix/usenix.tex",
		"badge.svg", "bundle/failure-fp.tar.zst", "check.sh", "experiment.yaml", "images.json", "ro-crate-metadata.json", "run-local.sh", "run-on-cluster.sh", "systems/basil.yaml", "SHA256SUMS",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for file, wanted := range map[string][]string{
		"README.md":           {"sudo ./run-local.sh", "./run-on-cluster.sh", "./check.sh", "took 3 minutes"},
		"experiment.yaml":     {"seed: ", "name: failure-fp"},
		"run-local.sh":        {"--local=results-local", "profile=${1:-smoke}", "full     takes about "},
		"appendix/usenix.md":  {"C1.", "C6.", "E1 \\[smoke\\]", "took 3 minutes for 15 trials", "Consistent", "To fill in: the DOI"},
		"appendix/acm.md":     {"Licence:", "Disk space:", "Check-list of facts"},
		"badge.svg":           {"2 supported, 4 not judged"},
		"images.json":         {`"name": "assay/basil:dev"`, `"sha256:700efc71522af05ece3ca1719e56d5343085fa0baa4ed00f8c86c8858bfd18db"`},
		"CHECKLIST.md":        {"There is no licence", "about.yaml"},
		"systems/basil.yaml":  {"image: assay/basil:dev"},
		"CITATION.cff":        {"not named yet"},
		".zenodo.json":        {`"upload_type": "dataset"`},
		"run-on-cluster.sh":   {"--image-registry"},
		"appendix/usenix.tex": {`\input{usenix-body}`},
	} {
		for _, text := range wanted {
			if !strings.Contains(files[file], text) {
				t.Errorf("%s lacks %q:\n%.1500s", file, text, files[file])
			}
		}
	}
	if strings.Contains(files["experiment.yaml"], "\n  profile:") {
		t.Error("experiment.yaml chooses a profile, which the scripts do")
	}
	missing := fmt.Sprint(made.Missing)
	for _, want := range []string{"no author", "no licence", "no DOI", "no link to the paper", "image assay/basil:dev has no digest that", "claim C1 (order-near-saturation) has no evidence: profile smoke skips it", "reduced evaluation", "images are not in the folder", "without a version"} {
		if !strings.Contains(missing, want) {
			t.Errorf("the checklist lacks %q: %s", want, missing)
		}
	}
}

func TestWhatIsSuppliedIsNotMissing(t *testing.T) {
	made, files := makeOf(t, everything)
	missing := fmt.Sprint(made.Missing)
	for _, not := range []string{"author", "licence", "DOI", "link to", "has no digest", "hardware", "ethics"} {
		if strings.Contains(missing, not) {
			t.Errorf("the checklist still has %q: %s", not, missing)
		}
	}
	for file, text := range files {
		if strings.HasPrefix(file, "appendix/") && strings.Contains(text, toFillIn) {
			t.Errorf("%s has something to fill in", file)
		}
	}
	if !strings.Contains(files["systems/basil.yaml"], "image: registry.example.org/basil@sha256:0000") || strings.Contains(files["systems/basil.yaml"], "assay/basil:dev") {
		t.Error("systems/basil.yaml does not name the image by the digest that about.yaml gives")
	}
}

func TestSameBytes(t *testing.T) {
	_, first := makeOf(t, everything)
	_, second := makeOf(t, everything)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the same bundle gives other files:\n%.500s", diff)
	}
}

// LaTeX stops at environments and braces that do not match, and at characters of TeX that are not
// escaped. A user's text has all of them.
func TestLaTeXIsWhole(t *testing.T) {
	nasty := everything
	nasty.Abstract = `50% of $5 & #1_a {b} ~ ^ \ "quoted" <x> | → λ 日本 'it' -- \end{document}`
	for name, about := range map[string]About{"nothing said": {}, "everything": everything, "every character": nasty} {
		t.Run(name, func(t *testing.T) {
			_, files := makeOf(t, about)
			checked := 0
			for file, text := range files {
				if filepath.Ext(file) == ".tex" {
					checked++
					for _, wrong := range wrongLaTeX(text) {
						t.Errorf("%s: %s", file, wrong)
					}
				}
			}
			if checked != 4 {
				t.Errorf("%d files of LaTeX", checked)
			}
		})
	}
	for text, want := range map[string]string{
		`\begin{itemize}`: "not ended", `a & b`: "escaped", `100% of it # 1`: "escaped", `x_1`: "escaped", `{`: "brace", `\begin{a}\end{b}`: "ends",
	} {
		if wrong := wrongLaTeX(text); len(wrong) == 0 || !strings.Contains(strings.Join(wrong, " "), want) {
			t.Errorf("%s: found %v, want %q: the check finds nothing", text, wrong, want)
		}
	}
}

var (
	environment = regexp.MustCompile(`\\(begin|end)\{([a-z]+)\}`)
	escapedTeX  = regexp.MustCompile(`\\[\\&%$#_{}~^ ]|\\[a-zA-Z]+|\$(?:<|>|\||\\[a-z]+)\$`)
)

// wrongLaTeX finds what does not match and what is not escaped.
func wrongLaTeX(text string) (wrong []string) {
	var open []string
	for _, m := range environment.FindAllStringSubmatch(text, -1) {
		switch {
		case m[1] == "begin":
			open = append(open, m[2])
		case len(open) == 0 || open[len(open)-1] != m[2]:
			wrong = append(wrong, m[0]+" ends another environment")
		default:
			open = open[:len(open)-1]
		}
	}
	for _, o := range open {
		wrong = append(wrong, o+" is not ended")
	}
	depth := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "%") {
			continue
		}
		rest := escapedTeX.ReplaceAllString(line, "")
		if at := strings.IndexAny(rest, "&%$#_^~"); at >= 0 {
			wrong = append(wrong, "not escaped: "+line)
		}
		depth += strings.Count(rest, "{") - strings.Count(rest, "}")
	}
	if depth != 0 {
		wrong = append(wrong, fmt.Sprintf("a brace is open: %d", depth))
	}
	return wrong
}

func TestLaTeXCompiles(t *testing.T) {
	program := ""
	for _, p := range []string{"pdflatex", "tectonic"} {
		if found, err := exec.LookPath(p); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		t.Skip("there is no LaTeX here: neither pdflatex nor tectonic")
	}
	nasty := everything
	nasty.Abstract = `50% of $5 & #1_a {b} ~ ^ \ "quoted" <x> | → λ 日本 ≈ µ é "–" 'it' -- \end{document}`
	_, files := makeOf(t, nasty)
	dir := t.TempDir()
	for name, text := range files {
		if strings.HasPrefix(name, "appendix/") {
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, venue := range []string{"usenix", "acm"} {
		args := []string{venue + ".tex"}
		if strings.HasSuffix(program, "pdflatex") {
			args = []string{"-interaction=nonstopmode", "-halt-on-error", venue + ".tex"}
		}
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", venue, err, out)
		}
		if pdf, err := os.ReadFile(filepath.Join(dir, venue+".pdf")); err != nil || !bytes.HasPrefix(pdf, []byte("%PDF")) {
			t.Errorf("%s: no PDF: %v", venue, err)
		}
	}
}

// The rules of the Citation File Format 1.2.0 that concern what we write: members that it requires,
// members that there are, and their forms.
func TestCitation(t *testing.T) {
	known := strings.Fields("abstract authors cff-version commit contact date-released doi identifiers keywords license license-url message preferred-citation references repository repository-artifact repository-code title type url version")
	ofPerson := strings.Fields("address affiliation alias city country email family-names fax given-names name-particle name-suffix orcid post-code region tel website")
	for name, about := range map[string]About{"nothing said": {}, "everything": everything, "a licence by URL": {License: "https://example.org/licence"}} {
		t.Run(name, func(t *testing.T) {
			_, files := makeOf(t, about)
			var c map[string]any
			if err := yaml.Unmarshal([]byte(files[CitationFile]), &c); err != nil {
				t.Fatal(err)
			}
			for _, required := range []string{"authors", "cff-version", "message", "title"} {
				if c[required] == nil {
					t.Errorf("there is no %s", required)
				}
			}
			for member := range c {
				if !slices.Contains(known, member) {
					t.Errorf("the format has no member %s", member)
				}
			}
			authors, _ := c["authors"].([]any)
			if len(authors) == 0 {
				t.Error("there is no author")
			}
			for _, a := range authors {
				author, _ := a.(map[string]any)
				if _, entity := author["name"]; entity {
					continue
				}
				for member := range author {
					if !slices.Contains(ofPerson, member) {
						t.Errorf("a person has no %s", member)
					}
				}
			}
			for member, form := range map[string]string{"cff-version": `^1\.2\.0$`, "type": "^(dataset|software)$", "date-released": `^\d{4}-\d\d-\d\d$`, "doi": `^10\.\d{4,9}/`, "license": `^[A-Za-z0-9.+-]+$`, "license-url": "^https?://"} {
				if value, there := c[member]; there && !regexp.MustCompile(form).MatchString(fmt.Sprint(value)) {
					t.Errorf("%s is %v, want %s", member, value, form)
				}
			}
		})
	}
}

// A crate has one descriptor and one root. Every reference has its description, every file is
// there, and the checksums are right.
func TestCrateIsWhole(t *testing.T) {
	for name, about := range map[string]About{"nothing said": {}, "everything": everything} {
		t.Run(name, func(t *testing.T) {
			_, files := makeOf(t, about)
			var crate struct {
				Context []any            `json:"@context"`
				Graph   []map[string]any `json:"@graph"`
			}
			if err := json.Unmarshal([]byte(files[CrateFile]), &crate); err != nil {
				t.Fatal(err)
			}
			// Version 1.1 of the context has no sha256.
			if diff := cmp.Diff([]any{"https://w3id.org/ro/crate/1.1/context", map[string]any{"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}}, crate.Context); diff != "" {
				t.Errorf("its context (-want +got):\n%s", diff)
			}
			byID := map[string]map[string]any{}
			for _, e := range crate.Graph {
				id, _ := e["@id"].(string)
				if byID[id] != nil || id == "" {
					t.Errorf("the entity %q is there twice, or has no @id", id)
				}
				byID[id] = e
			}
			if d := byID[CrateFile]; d == nil || fmt.Sprint(d["about"]) != "map[@id:./]" || d["@type"] != "CreativeWork" {
				t.Errorf("the descriptor is %v", byID[CrateFile])
			}
			root := byID["./"]
			for _, member := range []string{"name", "description", "datePublished", "license", "hasPart"} {
				if root[member] == nil {
					t.Errorf("the root has no %s", member)
				}
			}
			references(crate.Graph, func(id string) {
				if byID[id] == nil && id != bundle.CrateSpec {
					t.Errorf("%s is referred to and not described", id)
				}
			})
			parts, _ := root["hasPart"].([]any)
			if len(parts) != len(files)-1 { // all but the crate itself
				t.Errorf("it has %d parts of %d files", len(parts), len(files))
			}
			for id, e := range byID {
				sum, ok := e["sha256"].(string)
				if is := sha256.Sum256([]byte(files[id])); ok && sum != hex.EncodeToString(is[:]) {
					t.Errorf("the checksum of %s is not right", id)
				}
			}
		})
	}
}

func references(value any, each func(id string)) {
	switch v := value.(type) {
	case []map[string]any:
		for _, e := range v {
			for key, member := range e {
				if key != "@id" {
					references(member, each)
				}
			}
		}
	case map[string]any:
		if id, ok := v["@id"].(string); ok && len(v) == 1 {
			each(id)
		}
	case []any:
		for _, e := range v {
			references(e, each)
		}
	}
}

func TestScriptsAreOfTheShell(t *testing.T) {
	made, _ := makeOf(t, About{})
	n := 0
	for _, f := range made.Files {
		if !f.Script {
			continue
		}
		n++
		cmd := exec.CommandContext(t.Context(), "sh", "-n")
		cmd.Stdin = bytes.NewReader(f.Data)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", f.Name, err, out)
		}
	}
	if n != 3 {
		t.Errorf("%d scripts", n)
	}
}

func TestPinnedName(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("a", 64)
	for name, tc := range map[string]struct {
		image string
		ran   []string
		said  string
		want  string
	}{
		"of a registry":         {"postgres:16.4", []string{"docker.io/library/postgres" + digest}, "", "postgres:16.4" + digest},
		"loaded, not of one":    {"assay/basil:dev", []string{"sha256:" + strings.Repeat("b", 64)}, "", ""},
		"two builds":            {"kv:1", []string{"kv" + digest, "kv@sha256:" + strings.Repeat("c", 64)}, "", ""},
		"a template":            {"kv:{{.Parameters.version}}", []string{"kv" + digest}, "", ""},
		"pinned already":        {"kv:1" + digest, nil, "", "kv:1" + digest},
		"the authors pushed it": {"assay/basil:dev", nil, "r.example.org/b" + digest, "r.example.org/b" + digest},
		"nothing reported it":   {"kv:1", nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pinnedName(tc.image, tc.ran, tc.said); got != tc.want {
				t.Errorf("it is %q, want %q", got, tc.want)
			}
		})
	}
}

// A pod reports its images without the names of their containers. The test matches them by
// repository, else by the order of the containers' names.
func TestRanImages(t *testing.T) {
	all := []container{{"s", "replica", "server", "kv:1"}, {"s", "replica", "exporter", "registry.example.org/exporter:2"}, {"s", "client", "driver", "kv:1"}}
	for name, tc := range map[string]struct {
		part, images string
		want         map[string][]string
	}{
		"by repository":           {"replica", "docker.io/library/kv@sha256:1,registry.example.org/exporter@sha256:2", map[string][]string{"kv:1": {"docker.io/library/kv@sha256:1"}, "registry.example.org/exporter:2": {"registry.example.org/exporter@sha256:2"}}},
		"in the order of names":   {"replica", "sha256:2,sha256:1", map[string][]string{"kv:1": {"sha256:1"}, "registry.example.org/exporter:2": {"sha256:2"}}},
		"one container":           {"client", "sha256:1", map[string][]string{"kv:1": {"sha256:1"}}},
		"another number of them":  {"replica", "sha256:1", map[string][]string{}},
		"a part that is not here": {"proxy", "sha256:1", map[string][]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ranImages(all, []results.Trial{{Pods: []results.Pod{{Part: tc.part, Images: tc.images}}}})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArchivesOfImages(t *testing.T) {
	ran := "sha256:700efc71522af05ece3ca1719e56d5343085fa0baa4ed00f8c86c8858bfd18db"
	for name, tc := range map[string]struct {
		digest string
		other  bool
	}{"what ran": {ran, false}, "another build": {"sha256:1", true}} {
		t.Run(name, func(t *testing.T) {
			made, err := Make(Input{Bundle: read(t, failureFP), Archives: []Archive{{Name: "basil.tar", SHA256: strings.Repeat("0", 64), Images: map[string][]string{"docker.io/assay/basil:dev": {tc.digest}}}}})
			if err != nil {
				t.Fatal(err)
			}
			missing := fmt.Sprint(made.Missing)
			if strings.Contains(missing, "is not the image that ran") != tc.other || strings.Contains(missing, "images are not in the folder") {
				t.Errorf("the checklist has %s", missing)
			}
			sums := string(made.Files[len(made.Files)-1].Data)
			if !strings.Contains(sums, strings.Repeat("0", 64)+"  images/basil.tar\n") {
				t.Errorf("the checksums are %s", sums)
			}
		})
	}
}

func TestParseAbout(t *testing.T) {
	if _, err := ParseAbout([]byte(Template)); err != nil {
		t.Errorf("the file to fill in is refused: %v", err)
	}
	for name, tc := range map[string]struct {
		text, path string
		line       int
	}{
		"an unknown field":      {"title: x\nlicence: MIT\n", "licence", 2},
		"a DOI with its URL":    {"\ndoi: https://doi.org/10.5281/zenodo.1\n", "doi", 2},
		"a paper without https": {"paper: example.org/x\n", "paper", 1},
		"no name":               {"authors:\n- {given: Ada}\n", "authors[0].family", 1},
		"a wrong checksum":      {"authors:\n- {family: L, orcid: 0000-0002-1825-0098}\n", "authors[0].orcid", 1},
		"a licence":             {"license: do what you want\n", "license", 1},
		"an image by its tag":   {"images: {\"a:1\": \"registry.example.org/a:1\"}\n", "images", 1},
		"a repository":          {"repository: git@example.org:x\n", "repository", 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseAbout([]byte(tc.text))
			var wrong *strict.FieldError
			if !errors.As(err, &wrong) || wrong.Path != tc.path || wrong.Line != tc.line {
				t.Errorf("error is %v, want the field %s on line %d", err, tc.path, tc.line)
			}
		})
	}
}

// rewrite gives a bundle with other content of its Experiment.
func rewrite(t *testing.T, change func(spec string) string) []byte {
	t.Helper()
	kept, err := bundle.Open(read(t, failureFP))
	if err != nil {
		t.Fatal(err)
	}
	kept.Spec = []byte(change(string(kept.Spec)))
	var b bytes.Buffer
	if _, err := bundle.WriteKept(kept, archive.Gzip, &b); err != nil {
		t.Fatal(err)
	}
	if !archive.Is(b.Bytes()) {
		t.Fatal("no bundle was written")
	}
	return b.Bytes()
}

func TestCredentialsAreRefused(t *testing.T) {
	// Each is put together here, so that no scanner takes this file for a leak.
	for name, secret := range map[string]string{
		"a private key": "-----BEGIN RSA " + "PRIVATE KEY-----", "of AWS": "AKIA" + strings.Repeat("A", 16), "of GitHub": "ghp" + "_" + strings.Repeat("a", 36),
		"in a URL": "postgres://user:" + "secret@db.example.org",
	} {
		t.Run(name, func(t *testing.T) {
			data := rewrite(t, func(spec string) string {
				return strings.Replace(spec, "Failure, U-Ideal", secret+" Failure, U-Ideal", 1)
			})
			if _, err := Make(Input{Bundle: data}); err == nil || !strings.Contains(err.Error(), "experiment.yaml, line") || strings.Contains(err.Error(), secret) {
				t.Errorf("error is %v; it must name the place, and not the credential", err)
			}
		})
	}
}

func TestFoldersOfTheAuthorAreNamed(t *testing.T) {
	data := rewrite(t, func(spec string) string {
		return strings.Replace(spec, "Failure, U-Ideal", "/home/ada/paper Failure in /srv/ada, U-Ideal", 1)
	})
	made, err := Make(Input{Bundle: data, Private: []string{"/srv/ada"}})
	if err != nil {
		t.Fatal(err)
	}
	missing := fmt.Sprint(made.Missing)
	for _, want := range []string{`"/home/ada", which may be of your machine`, `"/srv/ada", which may be of your machine`} {
		if !strings.Contains(missing, want) {
			t.Errorf("the checklist lacks %s: %s", want, missing)
		}
	}
}
