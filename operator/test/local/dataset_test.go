package local

import (
	"encoding/json"
	"os"
	"path/filepath"
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
