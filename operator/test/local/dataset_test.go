package local

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

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
	dir, file := t.TempDir(), changed(t, [][2]string{
		{`[/awkward, load, /made, "4096"]`, `[/awkward, keygen, /made, "4"]`}, {"    size: 8Mi\n", "    size: 8Mi\n    bytes: PerNode\n"},
		{"  steps:\n  - {name: verify, runsOn: EveryReplica, command: [/awkward, verify, /table], timeout: 1m}\n", ""},
	})
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

// Each replica copies its own directory of a set and nothing else, which a step in each of four
// replicas verifies. A replica for which there is no directory ends its trial with a message that
// names the ones there are.
func TestADatasetInParts(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	dir := t.TempDir()
	out, said, code := run(t, dir, "run", "--wait", "-f", changed(t, inShards(1)))
	if code != 0 || !strings.Contains(out, "2 of 2 planned trials valid") {
		t.Fatalf("exit code %d\n%s\n%s", code, said, out)
	}
	set := keptDataset(t, filepath.Join(os.Getenv("HOME"), ".cache", "assay", "datasets"))
	for name, trial := range trialsOf(t, dir, "tabled") {
		if c := trial.Status.Datasets; len(c) != 1 || c[0].Copies != 4 || c[0].Bytes < 1<<20 || c[0].Bytes > set.Status.Bytes/4 || trial.Spec.Datasets[0].Digest != set.Status.Digest {
			t.Errorf("%s: the copies are %+v, want four, of a quarter of %d bytes each", name, c, set.Status.Bytes)
		}
	}
	dir = t.TempDir()
	out, said, code = run(t, dir, "run", "--wait", "-f", changed(t, append(inShards(2), [2]string{"repetitions: {min: 2}", "repetitions: {min: 1}\n  retries: 0"})))
	found := trialsOf(t, dir, "tabled")
	for name, trial := range found {
		c := meta.FindStatusCondition(trial.Status.Conditions, v1alpha1.TrialValid)
		if c == nil || c.Reason != v1alpha1.ReasonDatasetDiffers || !strings.Contains(c.Message, `the recipe made no directory "shard-`) || !strings.Contains(c.Message, "there are: shard-0, shard-1, shard-2, shard-3") {
			t.Errorf("%s: %+v; want the missing directory and those there are", name, c)
		}
	}
	if code == 0 || len(found) != 1 {
		t.Errorf("%d trials, exit code %d\n%s\n%s", len(found), code, said, out)
	}
}

// inShards are changes of testdata/tabled.yaml: there are four tables, of which each of 3f+1
// replicas has one.
func inShards(f int) [][2]string {
	return [][2]string{
		{`[/awkward, load, /made, "4096"]`, `[/awkward, load, /made, "1024", "4"]`}, {"    mountPath: /table\n", "    mountPath: /table\n    subPath: shard-{{.Self.Index}}\n"},
		{"[/awkward, verify, /table]", `[/awkward, verify, /table, "{{.Self.Index}}"]`}, {"topology: {f: 0}", fmt.Sprintf("topology: {f: %d}", f)},
	}
}

// changed writes testdata/tabled.yaml with texts replaced, each of which it has once.
func changed(t *testing.T, changes [][2]string) (file string) {
	t.Helper()
	content, err := os.ReadFile("testdata/tabled.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, file := string(content), filepath.Join(t.TempDir(), "changed.yaml")
	for _, change := range changes {
		if strings.Count(text, change[0]) != 1 {
			t.Fatalf("testdata/tabled.yaml does not have %q once", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
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
