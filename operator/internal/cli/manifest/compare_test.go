package manifest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/cli/manifest"
)

const compareSystem = `apiVersion: assay.dev/v1alpha1
kind: System
metadata: {name: kv}
spec:
  parameters: [{name: fsync, type: String, default: "on", doc: How replicas write.}]
  workloads: [{name: puts, doc: Puts.}]
  replicas:
    count: "3"
    ports: [{name: peer, port: 7000}]
    containers: [{name: replica, image: "example/kv:v1", command: [kv, "{{.Parameters.fsync}}"]}]
    ready: [{port: peer}]
  clients:
    driver: {protocol: Process}
    containers: [{name: driver, image: "example/kv:v1", command: [kv-driver]}]
`

const compareExperiment = `apiVersion: assay.dev/v1alpha1
kind: Experiment
metadata: {name: versions}
spec:
  systems: [{name: kv, parameters: {}}]
  topology: {f: 1}
  workload: {name: puts}
  clients: {loop: Closed}
  order: Sequential
  schedule: {measure: 5s}
  sweep: [{axis: clients, values: [5, 20]}]
  claims:
  - {name: fast, statement: It is fast., expr: "throughput(clients=5) > 10"}
  - {name: no-slower, statement: It is no slower., expr: "ratio(of='throughput', system=['kv-b', 'kv-a'], clients=5) > 0.9"}
  profiles:
  - {name: smoke, claims: [{name: fast, skip: It is too short.}], schedule: {measure: 1s}}
`

func TestCompare(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	experiment := write("versions.yaml", compareExperiment)
	write("systems/kv.yaml", compareSystem)
	a, b := write("old.yaml", compareSystem), write("new.yaml", strings.ReplaceAll(compareSystem, "kv:v1", "kv:v2"))
	first := write("first.yaml", strings.ReplaceAll(compareSystem, "name: kv}", "name: kv-a}"))
	second := write("second.yaml", strings.ReplaceAll(compareSystem, "name: kv}", "name: kv-b}"))
	for name, tc := range map[string]struct {
		what   string
		axis   string
		images []string // of the replicas of the two Systems
		claims []string
	}{
		"two files": {a + "," + b, "system=kv-a,kv-b", []string{"example/kv:v1", "example/kv:v2"}, []string{"no-slower", "differ-throughput-1", "differ-mean-latency-1", "differ-throughput-2", "differ-mean-latency-2"}},
		"two names": {first + "," + second, "system=kv-a,kv-b", []string{"example/kv:v1", "example/kv:v1"}, []string{"no-slower", "differ-throughput-1", "differ-mean-latency-1", "differ-throughput-2", "differ-mean-latency-2"}},
		"images":    {"example/kv=example/kv:v3,registry.example/kv:v4", "system=kv-a,kv-b", []string{"example/kv:v3", "registry.example/kv:v4"}, []string{"no-slower", "differ-throughput-1", "differ-mean-latency-1", "differ-throughput-2", "differ-mean-latency-2"}},
		"parameter": {"fsync=on,off", "fsync=on,off", []string{"example/kv:v1"}, []string{"differ-throughput-1", "differ-mean-latency-1", "differ-throughput-2", "differ-mean-latency-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := manifest.Read(t.Context(), []string{experiment}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := set.Adapt("", "smoke", nil); err != nil {
				t.Fatal(err)
			}
			if err := set.Compare(t.Context(), tc.what); err != nil {
				t.Fatal(err)
			}
			p, err := set.Plan(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			axes := map[string]bool{}
			for _, axis := range p.Axes {
				axes[axis.Name+"="+strings.Join(axis.Values, ",")] = true
			}
			if !axes[tc.axis] || len(p.Points) != 4 || p.Spec.Order != "RandomizedInterleaved" || string(p.Spec.Schedule.Measure) != "1s" {
				t.Errorf("axes %v, %d points, order %s, %s", axes, len(p.Points), p.Spec.Order, p.Spec.Schedule.Measure)
			}
			var images, claims []string
			for _, ref := range p.Spec.Systems {
				images = append(images, set.Systems[ref.Name].Replicas.Containers[0].Image)
			}
			for _, c := range p.Spec.Claims {
				claims = append(claims, c.Name)
			}
			if diff := cmp.Diff(tc.images, images); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.claims, claims); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
			if len(set.ToApply()) != len(images)+1 {
				t.Errorf("%d objects to apply", len(set.ToApply()))
			}
		})
	}
	for what, want := range map[string]string{
		"a":                     "give two versions with a comma between them",
		"fsync=on":              "give two versions",
		"fsync=on,on":           "give two versions",
		a + ",missing.yaml":     "missing.yaml: no such file",
		a + "," + experiment:    "has 0 Systems; give a file with one",
		"example/other=x:1,x:2": "is neither a parameter nor an image of System kv, whose images are example/kv",
		"clients=1,2":           "is neither a parameter nor an image",
	} {
		set, err := manifest.Read(t.Context(), []string{experiment}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := set.Compare(t.Context(), what); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
}

// Compare counts the comparisons that get no claim for lack of room, so that a verb can say so.
func TestCompareCountsWhatHasNoClaim(t *testing.T) {
	dir := t.TempDir()
	values := "values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]"
	for name, text := range map[string]string{"versions.yaml": strings.ReplaceAll(compareExperiment, "values: [5, 20]", values), "systems/kv.yaml": compareSystem} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := manifest.Read(t.Context(), []string{filepath.Join(dir, "versions.yaml")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Compare(t.Context(), "fsync=on,off"); err != nil {
		t.Fatal(err)
	}
	if n := len(set.Experiment.Spec.Claims); n != 32 || set.Unjudged != 8 {
		t.Errorf("%d claims and %d comparisons without one, want 32 and 8 of 20 points with two metrics", n, set.Unjudged)
	}
}
