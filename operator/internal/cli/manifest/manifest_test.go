package manifest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/cli/manifest"
)

const (
	experiment = `apiVersion: assay.dev/v1alpha1
kind: Experiment
metadata: {name: e}
spec:
  systems: [{name: one}, {name: two}]
  topology: {shards: 1}
  workload: {name: w}
  clients: {loop: Closed}
  schedule: {measure: 1s}
  profiles: [{name: smoke}]
`
	broken = "apiVersion: assay.dev/v1alpha1\nkind: System\nmetadata: {name: two}\nspec: {replica: 1}\n"
	other  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
)

func system(name string) string {
	return "apiVersion: assay.dev/v1alpha1\nkind: System\nmetadata: {name: " + name + "}\nspec: {description: " + name + "}\n"
}

// write makes files and returns the path of the first.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRead(t *testing.T) {
	for name, tc := range map[string]struct {
		files   map[string]string
		read    []string
		want    []string // names of the applied objects, in order
		missing []string
	}{
		"one file with several documents": {
			files: map[string]string{"all.yaml": "# a comment\n---\n" + experiment + "---\n" + system("two") + "---\n" + system("one") + "---\n"},
			read:  []string{"all.yaml"}, want: []string{"System one", "System two", "Experiment e"},
		},
		"systems beside the file": {
			files: map[string]string{"e.yaml": experiment, "systems/1.yaml": system("one"), "systems/2.yml": system("two") + "---\n" + other, "systems/3.yaml": system("three"), "systems/README.md": "x"},
			read:  []string{"e.yaml"}, want: []string{"System one", "System two", "Experiment e"},
		},
		"systems beside the file's folder": {
			files: map[string]string{"paper/e.yaml": experiment, "paper/systems/two.yaml": system("two"), "systems/1.yaml": system("one"), "systems/2.yaml": system("two"), "systems/3.yaml": broken},
			read:  []string{"paper/e.yaml"}, want: []string{"System one", "System two", "Experiment e"},
		},
		"a file wins over the folder": {
			files: map[string]string{"e.yaml": experiment, "one.yaml": system("one"), "systems/one.yaml": system("one"), "systems/two.yaml": system("two")},
			read:  []string{"e.yaml", "one.yaml"}, want: []string{"System one", "System two", "Experiment e"},
		},
		"a system is missing": {
			files: map[string]string{"e.yaml": experiment, "one.yaml": system("one")},
			read:  []string{"one.yaml", "e.yaml"}, want: []string{"System one", "Experiment e"}, missing: []string{"two"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, tc.files)
			var paths []string
			for _, p := range tc.read {
				paths = append(paths, filepath.Join(dir, p))
			}
			set, err := manifest.Read(t.Context(), paths, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, u := range set.ToApply() {
				got = append(got, u.GetKind()+" "+u.GetName())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("to apply (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.missing, set.Missing()); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
			if f := set.Experiment.Spec.Topology.F; f != 1 {
				t.Errorf("f = %d, the kind's default is 1", f)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no experiment":        {map[string]string{"a.yaml": system("one")}, "no Experiment in it"},
		"two experiments":      {map[string]string{"a.yaml": experiment + "---\n" + experiment}, "a.yaml:14:18: Experiment e: metadata.name: a second Experiment; the first is e in"},
		"two systems":          {map[string]string{"a.yaml": experiment + "---\n" + system("one") + "---\n" + system("one")}, "a.yaml:19:18: System one: metadata.name: a second System one; the first is in"},
		"another kind":         {map[string]string{"a.yaml": experiment + "---\n" + other}, `a.yaml:12:13: ConfigMap c: apiVersion: "v1" is not Assay's`},
		"a misspelt kind":      {map[string]string{"a.yaml": experiment + "---\napiVersion: assay.dev/v1alpha1\nkind: Experimant\n"}, `kind: there is no kind "Experimant"; did you mean "Experiment"?`},
		"no kind":              {map[string]string{"a.yaml": experiment + "---\nx: 1\n"}, `a.yaml:12:1: apiVersion: "" is not Assay's; write assay.dev/v1alpha1`},
		"an unknown field":     {map[string]string{"a.yaml": experiment + "  sweeep: []\n"}, `a.yaml:11:11: Experiment e: spec.sweeep: there is no field "sweeep"; did you mean "sweep"?`},
		"a field in capitals":  {map[string]string{"a.yaml": "# a comment\n---\n" + experiment + "  Sweep: []\n"}, `a.yaml:13:10: Experiment e: spec.Sweep: there is no field "Sweep"; did you mean "sweep"?`},
		"a wrong type":         {map[string]string{"a.yaml": strings.Replace(experiment, "1s", "10", 1)}, `a.yaml:9:23: Experiment e: spec.schedule.measure: must be text, and is the number 10; write it with its unit, such as 10s`},
		"a broken system":      {map[string]string{"a.yaml": experiment + "---\n" + broken}, `a.yaml:15:17: System two: spec.replica: there is no field "replica"; did you mean "replicas"?`},
		"broken in the folder": {map[string]string{"a.yaml": experiment, "systems/two.yaml": broken}, `two.yaml:4:17: System two: spec.replica: there is no field "replica"`},
		"not YAML":             {map[string]string{"a.yaml": "a: b: c"}, `a.yaml:1:1: a value with a colon and a space needs quotes: "b: c"`},
		"no file":              {map[string]string{}, "read -f"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := manifest.Read(t.Context(), []string{filepath.Join(write(t, tc.files), "a.yaml")}, nil)
			if err == nil {
				_, err = set.Plan(t.Context(), "")
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want it to say: %s", err, tc.want)
			}
		})
	}
}

func TestUseProfile(t *testing.T) {
	set, err := manifest.Read(t.Context(), []string{"-"}, strings.NewReader(experiment))
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Adapt("", "smoek", nil); err == nil || !strings.Contains(err.Error(), `no profile "smoek"; it has: smoke`) {
		t.Errorf("a profile that does not exist: %v", err)
	}
	if err := set.Adapt("", "smoke", nil); err != nil {
		t.Fatal(err)
	}
	applied := set.ToApply()[0].Object["spec"].(map[string]any)
	if applied["profile"] != "smoke" || set.Experiment.Spec.Profile != "smoke" {
		t.Errorf("profile to apply %v, to plan %q; want smoke", applied["profile"], set.Experiment.Spec.Profile)
	}
	if _, ok := applied["order"]; ok {
		t.Error("a default that the author did not write would be applied")
	}
}

func TestChange(t *testing.T) {
	read := func() *manifest.Set {
		set, err := manifest.Read(t.Context(), []string{"-"}, strings.NewReader(experiment))
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	set := read()
	if err := set.Adapt("", "", []string{"network.shaping=None", "placement={replicas: servers}"}); err != nil {
		t.Fatal(err)
	}
	network := set.ToApply()[0].Object["spec"].(map[string]any)["network"].(map[string]any)
	if network["shaping"] != "None" || set.Experiment.Spec.Network.Shaping != "None" || set.Experiment.Spec.Placement.Replicas != "servers" {
		t.Errorf("to apply %v, to plan %+v %+v", network, set.Experiment.Spec.Network, set.Experiment.Spec.Placement)
	}
	for assignment, want := range map[string]string{
		"network.shaping":       "is not a path in spec, =, and a value",
		"network..shaping=None": "is not a path in spec",
		"network.shapping=None": `read Experiment: spec.network.shapping: there is no field "shapping"; did you mean "shaping"?`,
		"order.x=1":             "--set order.x=1",
		"network={":             "read the value",
	} {
		set := read()
		set.Experiment.Spec.Order = ""
		if err := set.Adapt("", "", []string{"order=Sequential", assignment}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--set %s: %v; want it to say: %s", assignment, err, want)
		}
	}
}
