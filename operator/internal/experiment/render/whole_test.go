package render_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/render"
)

var whole = flag.Bool("whole", false, "write testdata/whole.golden")

const samples = "../../../../config/samples"

func read[T any](t *testing.T, file string) (out T) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &out); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return out
}

// The file has the objects of one sample of each kind, and the directives of four pods: the first
// and last server, and the first and last client.
func TestWholeTrialsOfSamples(t *testing.T) {
	systems := map[string]v1alpha1.SystemSpec{}
	files, err := filepath.Glob(filepath.Join(samples, "systems", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		s := read[v1alpha1.System](t, file)
		systems[s.Name] = s.Spec
	}
	var out strings.Builder
	say := func(title string, what any) {
		text, err := yaml.Marshal(what)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "## %s\n%s", title, text)
	}
	for _, name := range []string{"components", "faults", "machines", "regions", "restricted", "placement"} {
		exp := read[v1alpha1.Experiment](t, filepath.Join(samples, "experiment-"+name+".yaml"))
		p, errs := plan.Expand(&exp, systems)
		if len(errs) > 0 {
			t.Fatalf("%s: %v", name, errs.ToAggregate())
		}
		trial := &v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: "papers", Name: "t-0", UID: "uid"}, Spec: p.Points[len(p.Points)-1].Template}
		trial.Spec.Seed, trial.Spec.Experiment = 7, exp.Name
		system := systems[trial.Spec.System.Name]
		layout := placement.NewLayout("papers", "t-0", &trial.Spec, &system)
		fmt.Fprintf(&out, "# %s\n", name)
		objects, err := render.NewObjects(layout, &trial.Spec, &system, render.Environment{AgentImage: "agent:1", CoordinatorAddress: "coordinator:7443", CoordinatorCA: "ca", Namespace: "assay-system"})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		say("service", objects.Service)
		for _, s := range objects.Servers[:1] {
			say("stateful set", s)
		}
		for _, c := range objects.Clients[:1] {
			say("job", c)
		}
		addresses := map[string]string{}
		for i, pod := range append(layout.ServerPods(), layout.ClientPods()...) {
			addresses[pod] = fmt.Sprintf("10.0.%d.%d", i/200, 1+i%200)
		}
		resolved, missing := layout.Resolve(addresses)
		if len(missing) > 0 {
			t.Fatalf("%s: no address of %v", name, missing)
		}
		rendered, pods, err := render.All(trial, &system, resolved, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		servers, clients := layout.ServerPods(), layout.ClientPods()
		for _, name := range slices.Compact([]string{servers[0], servers[len(servers)-1], clients[0], clients[len(clients)-1]}) {
			pod := *pods[name]
			pod.Directive.Network = nil // it contains a key
			text, err := json.Marshal(pod.Directive)
			if err != nil {
				t.Fatal(err)
			}
			var directive map[string]any
			if err := json.Unmarshal(text, &directive); err != nil {
				t.Fatal(err)
			}
			say(name, directive)
			for _, f := range pod.Files {
				fmt.Fprintf(&out, "%s %o %d bytes\n", f.Path, f.Mode, len(f.Content))
			}
			for _, step := range slices.Sorted(maps.Keys(pod.Steps)) {
				say("step "+step, pod.Steps[step])
			}
		}
		say("actions", rendered.Actions)
		shown := rendered.ShownFiles(pods)
		say("shown files", shown)
		given, err := rendered.Given(pods)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range slices.Sorted(maps.Keys(given)) {
			fmt.Fprintf(&out, "given: %s, %d bytes\n", file, len(given[file]))
		}
	}
	file := filepath.Join("testdata", "whole.golden")
	if *whole {
		if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(out.String(), "\n")); diff != "" {
		t.Errorf("go test -whole writes it (-want +got):\n%s", diff)
	}
}

// FitConfigMap removes the largest entries of a ConfigMap that would be too large.
func TestEntriesThatAConfigMapLoses(t *testing.T) {
	text := func(n int) string { return strings.Repeat("x", n) }
	const left = "left out: too large for a ConfigMap"
	for name, tc := range map[string]struct {
		data map[string]string
		lost []string
	}{
		"none":              {map[string]string{"a": text(10), "b": text(20)}, nil},
		"just none":         {map[string]string{"a": text(render.ConfigMapLimit - 12), "b": text(10)}, nil},
		"one byte too many": {map[string]string{"a": text(render.ConfigMapLimit - 11), "b": text(10)}, []string{"a"}},
		"the largest":       {map[string]string{"a": text(300 << 10), "b": text(800 << 10), "c": text(10)}, []string{"b"}},
		"two of three":      {map[string]string{"a": text(900 << 10), "b": text(950 << 10), "c": text(1001 << 10)}, []string{"b", "c"}},
		"one of equals":     {map[string]string{"b": text(600 << 10), "a": text(600 << 10)}, []string{"a"}},
	} {
		var lost []string
		data := render.FitConfigMap(maps.Clone(tc.data))
		for _, key := range slices.Sorted(maps.Keys(data)) {
			if data[key] == left {
				lost = append(lost, key)
			} else if data[key] != tc.data[key] {
				t.Errorf("%s: %s was changed", name, key)
			}
		}
		if diff := cmp.Diff(tc.lost, lost); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
