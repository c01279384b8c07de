package docs

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// promises are the documents about the present state. The others are about the past: decisions, and
// changes.
func promises(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, file := range documents(t) {
		name := filepath.ToSlash(strings.TrimPrefix(file, root+"/"))
		if name == "CHANGELOG.md" || strings.HasPrefix(name, "docs/design/") || strings.Contains(name, "/testdata/") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	return texts
}

var (
	span = regexp.MustCompile("(?s)```.*?\n *```|`+[^`]+`+")
	// It matches code: text in backticks, in fences, or indented.
	codes   = regexp.MustCompile("(?ms)^ *```.*?\n *```$|`[^`\n]+`|^    .*?$")
	command = regexp.MustCompile(`kubectl[ -]assay((?: +[^\s|;&()]+)+)`)
	longs   = regexp.MustCompile(`^--([a-z][a-z-]*)`)
	verb    = regexp.MustCompile(`^[a-z][a-z-]*$`)
)

// verbs returns the flags of each verb from its generated page. These pages list inherited flags,
// too.
func verbs(t *testing.T) map[string]map[string]bool {
	t.Helper()
	flag := regexp.MustCompile(`(?m)^ +(?:-([a-zA-Z]), )?--([a-z][a-z-]*)`)
	pages, err := filepath.Glob(filepath.Join(root, "docs/reference/cli/kubectl_assay*.md"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages of verbs: %v", len(pages), err)
	}
	found := map[string]map[string]bool{}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.ReplaceAll(strings.TrimPrefix(strings.TrimSuffix(filepath.Base(page), ".md"), "kubectl_assay"), "_", " ")
		// The page of options leaves out the other flags of kubectl.
		flags := map[string]bool{"as": true, "as-group": true, "cluster": true, "user": true, "server": true, "token": true, "request-timeout": true}
		for _, m := range flag.FindAllStringSubmatch(string(text), -1) {
			flags[m[2]] = true
		}
		found[strings.TrimSpace(name)] = flags
	}
	return found
}

// Documents name only verbs and flags that exist.
func TestVerbsAndFlagsExist(t *testing.T) {
	known := verbs(t)
	commands := 0
	for file, text := range promises(t) {
		for _, c := range codes.FindAllString(text, -1) {
			for _, m := range command.FindAllStringSubmatch(strings.ReplaceAll(c, "\\\n", " "), -1) {
				words := strings.Fields(strings.Trim(m[1], "`"))
				name := ""
				for len(words) > 0 && verb.MatchString(words[0]) && known[strings.TrimSpace(name+" "+words[0])] != nil {
					name, words = strings.TrimSpace(name+" "+words[0]), words[1:]
				}
				if name == "" {
					if verb.MatchString(words[0]) && words[0] != "is" {
						t.Errorf("%s: kubectl assay has no verb %s: %s", file, words[0], m[0])
					}
					continue
				}
				commands++
				for _, w := range words {
					if w == "--" || strings.HasPrefix(w, "#") {
						break
					}
					if f := longs.FindStringSubmatch(strings.Trim(w, "[]`.,:)")); len(f) == 2 && !known[name][f[1]] {
						t.Errorf("%s: kubectl assay %s has no flag --%s: %s", file, name, f[1], m[0])
					}
				}
			}
		}
	}
	if commands < 200 {
		t.Errorf("%d commands were looked at; the documents have more", commands)
	}
}

// The page of the command line leads to every verb.
func TestThePageOfTheCommandLineHasEveryVerb(t *testing.T) {
	page := promises(t)["docs/reference/cli.md"]
	for name := range verbs(t) {
		if name != "" && !strings.Contains(name, " ") && !strings.Contains(page, "(cli/kubectl_assay_"+name+".md)") {
			t.Errorf("docs/reference/cli.md does not lead to the verb %s", name)
		}
	}
}

// sources returns the text files of the repository that are not documents, by name.
func sources(t *testing.T) map[string]string {
	t.Helper()
	ends := []string{".go", ".yaml", ".yml", ".sh", ".py", ".txt", ".json", ".tf", ".tfvars", ".tpl", ".mk", ".mod", ".env", ".toml", ".java", ".c", ".h", ".html", ".css", ".js", ".svg", ".csv", ".hcl", ""}
	texts := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, root+"/"))
		switch {
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".github" && d.Name() != ".ci" || name == "bin" || strings.HasPrefix(name, "experiments/") && d.Name() == "evidence"),
			d.IsDir() && strings.HasPrefix(name, "docs/reference/cli"):
			return filepath.SkipDir
		case d.IsDir() || !slices.Contains(ends, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil && len(text) < 4<<20 {
			texts[name] = string(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// spans returns the texts in backticks of a document, without blocks.
func spans(text string) (found []string) {
	for _, s := range span.FindAllString(text, -1) {
		if !strings.HasPrefix(s, "```") {
			found = append(found, strings.Trim(s, "` \n"))
		}
	}
	return found
}

// A path in backticks is one of the repository if it begins with one of its folders.
var (
	path        = regexp.MustCompile(`^(?:\./)?((?:\.ci|charts|config|docs|experiments|hack|infra|operator|systems)/[A-Za-z0-9_./*{},-]*)$`)
	placeholder = regexp.MustCompile(`[A-Z]{3,}|<`)
)

// made reports whether a Go file names the path: then a program writes the file.
func made(t *testing.T, path string) bool {
	t.Helper()
	for name, text := range sources(t) {
		if strings.HasSuffix(name, ".go") && strings.Contains(text, `"`+path+`"`) {
			return true
		}
	}
	return false
}

// Documents name only files that exist, or that a program of the repository writes.
func TestPathsExist(t *testing.T) {
	looked := 0
	for file, text := range promises(t) {
		for _, s := range spans(text) {
			for word := range strings.FieldsSeq(s) {
				m := path.FindStringSubmatch(strings.TrimSuffix(strings.TrimRight(word, ".,:;)"), "/..."))
				if len(m) != 2 || placeholder.MatchString(m[1]) {
					continue
				}
				looked++
				at := ""
				for _, folder := range []string{root, filepath.Join(root, filepath.Dir(file))} {
					if matches, err := filepath.Glob(filepath.Join(folder, m[1])); err == nil && len(matches) > 0 {
						at = matches[0]
					}
				}
				if at == "" && !made(t, m[1]) {
					t.Errorf("%s: there is no %s", file, m[1])
				}
			}
		}
	}
	if looked < 100 {
		t.Errorf("%d paths were looked at; the documents have more", looked)
	}
}

// A name of code: idleWait, NetworkWrong, TestKnee.
var (
	named = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*[a-z][A-Z][A-Za-z0-9]*$`)
	words = regexp.MustCompile(`[A-Za-z][A-Za-z0-9]*`)
)

// foreigners are names of other programs, which no file here has.
var foreigners = map[string]string{
	"readCommitted": "a counter, made of a kind of operation", "updateCommitted": "a counter", "newBidRefusedCommitted": "a counter",
	"honorLabels": "Prometheus", "enforcedNamespaceLabel": "Prometheus operator", "overrideHonorLabels": "Prometheus operator",
	"enableFilterNamespace": "Chaos Mesh", "securityMode": "Chaos Mesh", "daemonIP": "Chaos Mesh",
	"RunAsAny": "OpenShift", "ClusterPolicy": "Kyverno", "vpolExclude": "Kyverno", "excludeNamespaces": "Kyverno", "excludedNamespaces": "Gatekeeper", "ScriptBasedUDFunction": "Cassandra", "RedirectClient": "HATS",
	"warmupDurationMinutes": "OpenMessaging Benchmark", "keyPerTable": "the tutorial's slip",
}

// Documents name only reasons, fields, formats and tests of the code. The test finds a name that
// was changed everywhere else.
func TestNamesExist(t *testing.T) {
	known := map[string]bool{}
	for name, text := range sources(t) {
		if strings.HasPrefix(name, "operator/internal/results/renames/") {
			continue // former names
		}
		for _, w := range words.FindAllString(text, -1) {
			known[w] = true
		}
	}
	looked, used := 0, map[string]bool{}
	for file, text := range promises(t) {
		for _, s := range spans(text) {
			for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune(" .,:;|()[]{}'\"=/`", r) }) {
				if !named.MatchString(part) {
					continue
				}
				looked++
				if foreigners[part] != "" {
					used[part] = true
					continue
				}
				if !known[part] && !(strings.Contains(s, "-run") && partOf(known, part)) {
					t.Errorf("%s: no file but documents has the name %s, in `%s`", file, part, s)
				}
			}
		}
	}
	for name, whose := range foreigners {
		if !used[name] {
			t.Errorf("no document has %s of %s: take it off the list", name, whose)
		}
	}
	if looked < 700 {
		t.Errorf("%d names were looked at; the documents have more", looked)
	}
}

// partOf reports whether a name of code contains the part, as go test -run matches names.
func partOf(known map[string]bool, part string) bool {
	for name := range known {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// tree has the names of a schema's fields, and the fields below each.
type tree map[string]tree

// fields adds the fields of a JSON schema.
func (f tree) fields(schema any) {
	of, ok := schema.(map[string]any)
	if !ok {
		return
	}
	for _, inner := range []string{"items", "additionalProperties"} {
		f.fields(of[inner])
	}
	properties, _ := of["properties"].(map[string]any)
	for name, of := range properties {
		if f[name] == nil {
			f[name] = tree{}
		}
		f[name].fields(of)
	}
}

// values adds the values of the chart.
func (f tree) values(of any) {
	for name, inner := range asMap(of) {
		if f[name] == nil {
			f[name] = tree{}
		}
		f[name].values(inner)
	}
}

func asMap(of any) map[string]any {
	m, _ := of.(map[string]any)
	return m
}

// has reports whether a path begins at this place or anywhere below.
func (f tree) has(path []string) bool {
	if len(path) == 0 {
		return true
	}
	if next, ok := f[path[0]]; ok && next.begins(path[1:]) {
		return true
	}
	for _, inner := range f {
		if inner.has(path) {
			return true
		}
	}
	return false
}

// begins reports whether a path begins here. Below a place without fields, any name may follow,
// such as a label.
func (f tree) begins(path []string) bool {
	if len(path) == 0 || len(f) == 0 {
		return true
	}
	next, ok := f[path[0]]
	return ok && next.begins(path[1:])
}

var dotted = regexp.MustCompile(`^[a-z][A-Za-z]*(\[\])?(\.[a-z][A-Za-z]*(\[\])?)+$`)

// A path of fields, such as tolerances.faultLateness, is a path in a kind, or a value of the chart.
func TestFieldsAndValuesExist(t *testing.T) {
	all := tree{}
	tops := map[string]bool{"spec": true, "status": true}
	crds, err := filepath.Glob(filepath.Join(root, "config/crd/bases/*.yaml"))
	if err != nil || len(crds) < 4 {
		t.Fatalf("%d kinds: %v", len(crds), err)
	}
	for _, file := range crds {
		var crd struct {
			Spec struct {
				Versions []struct {
					Schema struct {
						OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
					} `json:"schema"`
				} `json:"versions"`
			} `json:"spec"`
		}
		decode(t, file, &crd)
		kind := tree{}
		kind.fields(crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
		for name := range kind["spec"] {
			tops[name] = true
		}
		all[filepath.Base(file)] = kind
	}
	var chart map[string]any
	decode(t, filepath.Join(root, "charts/assay/values.yaml"), &chart)
	chartValues := tree{}
	chartValues.values(chart)
	for name := range chartValues {
		tops[name] = true
	}
	all["values.yaml"] = chartValues
	looked := 0
	for file, text := range promises(t) {
		if file == "docs/reference/results.md" {
			continue // its fields are those of results
		}
		for _, s := range spans(text) {
			if !dotted.MatchString(s) || strings.HasSuffix(s, ".dev") || foreigners[s[strings.LastIndex(s, ".")+1:]] != "" {
				continue
			}
			names := strings.Split(strings.ReplaceAll(s, "[]", ""), ".")
			if ends := []string{"json", "yaml", "md", "go", "csv", "txt", "sh", "html", "gz"}; !tops[names[0]] || slices.Contains(ends, names[len(names)-1]) {
				continue
			}
			looked++
			if !all.has(names) {
				t.Errorf("%s: no kind and no value of the chart has the field %s", file, s)
			}
		}
	}
	if looked < 150 {
		t.Errorf("%d fields were looked at; the documents have more: %d", looked, len(slices.Sorted(maps.Keys(tops))))
	}
}

func decode(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
