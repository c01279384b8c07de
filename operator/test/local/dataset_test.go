package local

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
)

// A data set is prepared once on the machine, whatever experiment needs it. Trials verify their
// copies byte by byte and then change them. A set whose bytes were deleted is prepared again.
func TestADatasetIsPreparedOnce(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // data sets are kept in its .cache
	kept := filepath.Join(os.Getenv("HOME"), ".cache", "assay", "datasets")
	prepared := func(name string) (created string) {
		t.Helper()
		out, said, code := run(t, t.TempDir(), "run", "--wait", "--name", name, "-f", "testdata/tabled.yaml")
		if code != 0 || !strings.Contains(out, "2 of 2 planned trials valid") || !strings.Contains(out, "Data sets") {
			t.Fatalf("%s: exit code %d\n%s\n%s", name, code, said, out)
		}
		set := keptDataset(t, kept)
		if set.Status.Bytes < 4<<20 || len(set.Status.Nodes) != 1 {
			t.Errorf("%s: %d bytes on %d nodes, want 4 MiB on one", name, set.Status.Bytes, len(set.Status.Nodes))
		}
		if s := set.Status.Nodes[0].RecipeSeconds; s < 0 || s > 60 {
			t.Errorf("%s: the recipe took %d s", name, s)
		}
		return string(set.UID)
	}
	first := prepared("first")
	if again := prepared("second"); again != first {
		t.Error("the second experiment prepared the set again")
	}
	if err := os.RemoveAll(filepath.Join(kept, "bytes")); err != nil {
		t.Fatal(err)
	}
	if again := prepared("third"); again == first {
		t.Error("the bytes were deleted, and the set was not prepared again")
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left after the runs: %q", left)
	}
}

// A recipe whose bytes are random serves with bytes: PerNode. The record of each trial has the
// digest of this machine, and so has the report.
func TestADatasetOfThisMachinesBytes(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	text, err := os.ReadFile("testdata/tabled.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "own.yaml")
	own := string(text)
	for _, change := range [][2]string{
		{`[/awkward, load, /made, "4096"]`, `[/awkward, keygen, /made, "4"]`}, {"    size: 8Mi\n", "    size: 8Mi\n    bytes: PerNode\n"},
		{"  steps:\n  - {name: verify, runsOn: EveryReplica, command: [/awkward, verify, /table], timeout: 1m}\n", ""},
	} {
		if strings.Count(own, change[0]) != 1 {
			t.Fatalf("testdata/tabled.yaml does not have %q once", change[0])
		}
		own = strings.Replace(own, change[0], change[1], 1)
	}
	if err := os.WriteFile(file, []byte(own), 0o644); err != nil {
		t.Fatal(err)
	}
	out, said, code := run(t, dir, "run", "--wait", "-f", file)
	set := keptDataset(t, filepath.Join(os.Getenv("HOME"), ".cache", "assay", "datasets"))
	node := set.Status.Nodes[0]
	_, digest, _ := strings.Cut(node.Digest, ":")
	if code != 0 || digest == "" || set.Status.Digest != "" || !strings.Contains(out, node.Name+" "+digest[:12]) {
		t.Fatalf("exit code %d; %+v\n%s\n%s", code, set.Status, said, out)
	}
	want := []v1alpha1.DatasetDigest{{Node: node.Name, Digest: node.Digest}}
	found := trialsOf(t, dir, "tabled")
	for name, trial := range found {
		if d := trial.Spec.Datasets[0]; d.Digest != "" || !slices.Equal(d.Digests, want) {
			t.Errorf("%s: %+v, want the digests %+v", name, d, want)
		}
		if c := trial.Status.Datasets; len(c) != 1 || c[0].Copies != 1 {
			t.Errorf("%s: the copies are %+v, want one", name, c)
		}
	}
	if len(found) < 2 {
		t.Errorf("%d trials, want 2", len(found))
	}
}

// keptDataset reads the one data set that a folder keeps.
func keptDataset(t *testing.T, kept string) v1alpha1.Dataset {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(kept, "objects", "datasets", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("objects of data sets: %q, %v; want one", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var set v1alpha1.Dataset
	if err := json.Unmarshal(text, &set); err != nil {
		t.Fatal(err)
	}
	return set
}
