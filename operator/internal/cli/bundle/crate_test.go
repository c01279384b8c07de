package bundle_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/cli/bundle"
)

// graph of a crate, by the IDs of its entities.
type graph map[string]map[string]any

// is says whether an entity has the type.
func (g graph) is(id, kind string) bool {
	switch types := g[id]["@type"].(type) {
	case string:
		return types == kind
	case []any:
		for _, one := range types {
			if one == kind {
				return true
			}
		}
	}
	return false
}

// refs are the IDs that a property refers to.
func refs(value any) []string {
	switch v := value.(type) {
	case map[string]any:
		if id, ok := v["@id"].(string); ok && len(v) == 1 {
			return []string{id}
		}
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, refs(one)...)
		}
		return all
	}
	return nil
}

// readCrate reads the metadata of a bundle, and its files by their names.
func readCrate(t *testing.T, path string) (graph, map[string]int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var crate struct {
		Context []any            `json:"@context"`
		Graph   []map[string]any `json:"@graph"`
	}
	sizes := map[string]int{archive.Sums: 0}
	if err := archive.Read(bytes.NewReader(data), func(string) bool { return true }, func(name string, data []byte) error {
		sizes[name] = len(data)
		if name == "ro-crate-metadata.json" {
			return json.Unmarshal(data, &crate)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(crate.Context) != 2 || crate.Context[0] != "https://w3id.org/ro/crate/1.1/context" {
		t.Errorf("the context is %q", crate.Context)
	}
	g := graph{}
	for _, e := range crate.Graph {
		id, _ := e["@id"].(string)
		if id == "" || g[id] != nil {
			t.Errorf("the entity %v has no ID, or one that another has", e)
		}
		if e["@type"] == nil {
			t.Errorf("entity %s has no type", id)
		}
		g[id] = e
	}
	return g, sizes
}

// RO-Crate 1.1 has requirements for the metadata file's descriptor, the root and data entities. The
// profile Process Run Crate has some for the run and the programs. The metadata meets both:
// https://w3id.org/ro/crate/1.1, https://w3id.org/ro/wfrun/process/0.5.
func TestCrateHasWhatTheSpecificationRequires(t *testing.T) {
	path, _ := makeBundle(t, objects(t)...)
	g, sizes := readCrate(t, path)
	descriptor := g["ro-crate-metadata.json"]
	if !g.is("ro-crate-metadata.json", "CreativeWork") || strings.Join(refs(descriptor["conformsTo"]), "") != "https://w3id.org/ro/crate/1.1" || strings.Join(refs(descriptor["about"]), "") != "./" {
		t.Errorf("the descriptor is %v", descriptor)
	}
	root := g["./"]
	if !g.is("./", "Dataset") || root["name"] == "" || root["description"] == "" || root["license"] == nil {
		t.Errorf("the root is %v", root)
	}
	if published, _ := root["datePublished"].(string); published != "2026-03-04T05:06:07Z" {
		t.Errorf("datePublished is %q", published)
	}
	checkParts(t, g, sizes)
	checkRun(t, g)
	for id, e := range g {
		for property, value := range e {
			for _, to := range refs(value) {
				if g[to] == nil && !strings.HasPrefix(to, "https://w3id.org/ro/crate/") {
					t.Errorf("%s of %s refers to %s, which is not described", property, id, to)
				}
			}
		}
	}
}

// checkParts checks that every data entity has a file, and every file a data entity.
func checkParts(t *testing.T, g graph, sizes map[string]int) {
	t.Helper()
	described := map[string]bool{}
	for _, id := range refs(g["./"]["hasPart"]) {
		described[id] = true
		if strings.HasSuffix(id, "/") {
			if !g.is(id, "Dataset") || sizes[id+"trial.json"] == 0 {
				t.Errorf("part %s is no folder of a trial: %v", id, g[id])
			}
			continue
		}
		size, there := sizes[id]
		if !g.is(id, "File") || !there || g[id]["name"] == "" || g[id]["encodingFormat"] == "" {
			t.Errorf("part %s is no file of the bundle: %v", id, g[id])
		}
		if said, ok := g[id]["contentSize"].(string); id != archive.Sums && (!ok || said != jsonNumber(size)) {
			t.Errorf("part %s is said to have %v bytes, and has %d", id, g[id]["contentSize"], size)
		}
	}
	for name := range sizes {
		folder := strings.Join(strings.SplitAfter(name, "/")[:min(2, strings.Count(name, "/"))], "")
		if !described[name] && !described[folder] && name != "ro-crate-metadata.json" {
			t.Errorf("%s is in the bundle and in no part", name)
		}
	}
}

func jsonNumber(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

// checkRun checks the action and the programs.
func checkRun(t *testing.T, g graph) {
	t.Helper()
	run := g["#run"]
	if !g.is("#run", "CreateAction") || run["startTime"] != "2026-03-04T04:06:07Z" || run["endTime"] != "2026-03-04T05:06:07Z" || run["actionStatus"] != "http://schema.org/CompletedActionStatus" {
		t.Errorf("the run is %v", run)
	}
	for _, id := range refs(run["instrument"]) {
		if !g.is(id, "SoftwareApplication") || g[id]["softwareVersion"] != "v0.2.0, manager@sha256:2" {
			t.Errorf("the run's instrument is %v", g[id])
		}
	}
	if got := refs(run["object"]); len(got) != 2 || got[0] != "experiment.yaml" {
		t.Errorf("the run's objects are %v", got)
	}
	if got := refs(run["result"]); len(got) < 3 {
		t.Errorf("the run's results are %v", got)
	}
	if !g.is("https://example.org/paper", "ScholarlyArticle") {
		t.Error("the paper is not described")
	}
	if image := g["#image-replica-1"]; image["softwareVersion"] != "sha256:1" {
		t.Errorf("the replicas' image is %v", image)
	}
}

func TestCrateNamesTheLicense(t *testing.T) {
	for name, tc := range map[string]struct{ given, want string }{
		"none":            {"", "No licence is given. Ask those who made this bundle before you use it."},
		"SPDX identifier": {"CC-BY-4.0", "https://spdx.org/licenses/CC-BY-4.0"},
		"URL":             {"https://example.org/licence", "https://example.org/licence"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newSession(t, objects(t)...)
			path := filepath.Join(t.TempDir(), "e.tgz")
			if err := bundle.Run(t.Context(), s, bundle.Options{Name: "e", Output: path, License: tc.given}); err != nil {
				t.Fatal(err)
			}
			g, _ := readCrate(t, path)
			got, isText := g["./"]["license"].(string)
			if !isText {
				got = strings.Join(refs(g["./"]["license"]), "")
				if !g.is(got, "CreativeWork") || g[got]["name"] == "" {
					t.Errorf("the licence %s is not described", got)
				}
			}
			if got != tc.want {
				t.Errorf("the licence is %q, want %q", got, tc.want)
			}
		})
	}
	s, _ := newSession(t, objects(t)...)
	err := bundle.Run(t.Context(), s, bundle.Options{Name: "e", Output: filepath.Join(t.TempDir(), "e.tgz"), License: "do what you like"})
	if err == nil || !strings.Contains(err.Error(), `--license "do what you like": give an SPDX identifier`) {
		t.Errorf("a licence that is none: %v", err)
	}
}

// The bundle of a running experiment has the date of its results, and does not say that the run has
// ended.
func TestCrateOfARunThatGoesOn(t *testing.T) {
	written := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	all := objects(t)
	m := all[0]
	replaceResults(t, m, func(e map[string]any) { delete(e, "completed"); e["written"] = written })
	path, _ := makeBundle(t, all...)
	g, _ := readCrate(t, path)
	if g["./"]["datePublished"] != "2026-03-04T05:00:00Z" || g["#run"]["endTime"] != nil || g["#run"]["actionStatus"] != nil {
		t.Errorf("the root is %v and the run %v", g["./"], g["#run"])
	}
}

// replaceResults changes the results of the experiment in its ConfigMap.
func replaceResults(t *testing.T, object client.Object, change func(map[string]any)) {
	t.Helper()
	m := object.(*corev1.ConfigMap)
	var e map[string]any
	if err := json.Unmarshal([]byte(m.Data["results.json"]), &e); err != nil {
		t.Fatal(err)
	}
	change(e)
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	m.Data["results.json"] = string(b)
}
