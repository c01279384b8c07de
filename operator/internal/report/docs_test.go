package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"assay.dev/assay/operator/internal/report"
)

// The pictures in docs/pictures are plots of the tests' report, as a user gets them with -o svg;
// -update writes them.
func TestPicturesOfTheDocuments(t *testing.T) {
	files := map[string]string{ // by the name of the plot
		"curve-03-latency-against-throughput":  "latency-throughput.svg",
		"time-01-clients-5-variant-failure-fp": "fault-over-time.svg",
	}
	pictures, err := report.Pictures(withEverything())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pictures {
		file, ok := files[p.Name]
		if !ok {
			continue
		}
		delete(files, p.Name)
		path := filepath.Join("..", "..", "..", "docs", "pictures", file)
		if *update {
			if err := os.WriteFile(path, p.SVG, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%v; run the test with -update", err)
		}
		if !bytes.Equal(want, p.SVG) {
			t.Errorf("%s is not what the report draws now; run the test with -update if that is meant", path)
		}
	}
	for name := range files {
		t.Errorf("the report has no plot %s", name)
	}
}
