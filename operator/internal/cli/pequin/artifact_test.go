//go:build artifact

package pequin

import (
	"encoding/csv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/testkit/testpequin"
)

// TestNumbersOfAClone reads each folder of results of a clone, with and without the CSV files. All
// digits must equal those of the artifact's own CSV files. Without the CSV files this holds for the
// points with a stats.json. The user names the clone: make artifact SOURCE=CLONE.
func TestNumbersOfAClone(t *testing.T) {
	clone := testpequin.Clone(t, "sample-output")
	var folders []string
	err := filepath.WalkDir(clone, func(path string, d fs.DirEntry, err error) error {
		if d.Name() == "lat-tput.csv" {
			folders = append(folders, filepath.Dir(filepath.Dir(path))) // of plots
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) < 3 {
		t.Fatalf("only %d folders of results", len(folders))
	}
	for _, folder := range folders {
		t.Run(strings.TrimPrefix(folder, clone), func(t *testing.T) {
			e, err := ReadFolder(os.DirFS(folder), "old", now)
			if err != nil {
				t.Fatal(err)
			}
			want := twoColumns(t, filepath.Join(folder, "plots", "lat-tput.csv"))
			var got [][2]float64
			for _, r := range rows(e) {
				got = append(got, [2]float64{r.Throughput, r.Mean})
			}
			for _, pair := range want {
				if !slices.Contains(got, pair) {
					t.Errorf("%v of lat-tput.csv is at no point; there are %v", pair, got)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d points, lat-tput.csv has %d", len(got), len(want))
			}
			if err := os.RemoveAll(filepath.Join(folder, "plots")); err != nil {
				t.Fatal(err)
			}
			alone, err := ReadFolder(os.DirFS(folder), "old", now)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows(alone) {
				if !slices.Contains(want, [2]float64{r.Throughput, r.Mean}) {
					t.Errorf("%v tx/s at %v ms of a stats.json is not in lat-tput.csv", r.Throughput, r.Mean)
				}
			}
			t.Logf("%d points, %d of them from a stats.json", len(got), len(alone.Points))
		})
	}
}

// twoColumns reads the lines of a CSV file with two columns.
func twoColumns(t *testing.T, file string) (out [][2]float64) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		var pair [2]float64
		for i := range pair {
			if pair[i], err = strconv.ParseFloat(line[i], 64); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, pair)
	}
	return out
}
