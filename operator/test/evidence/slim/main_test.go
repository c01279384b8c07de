package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/analysis/report/bundle"
)

func bundleOf(t *testing.T, files ...[2]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := archive.NewWriter(&b, archive.Gzip, "e", time.Unix(1_700_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := w.Add(f[0], []byte(f[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func filesOf(t *testing.T, data []byte) (names []string, text map[string]string) {
	t.Helper()
	text = map[string]string{}
	err := archive.Read(bytes.NewReader(data), func(string) bool { return true }, func(name string, file []byte) error {
		names, text[name] = append(names, name), string(file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names, text
}

func TestMadeFilesAreLeftOut(t *testing.T) {
	whole := bundleOf(t,
		[2]string{"trials/x/pods/p/out/timeline.csv", "a system's own"}, [2]string{"trials/x/timeline.csv", "1,2"}, [2]string{"trials/x/trial.json", "{}"},
		[2]string{"results.json", "{}"}, [2]string{"plots/a.svg", "<svg/>"}, [2]string{"plots/a.png", "pixels"}, [2]string{"report.html", "a page"}, [2]string{"use.csv", "1"},
		[2]string{"README.md", "# Results\n\n| file | what it is |\n|---|---|\n| report.html, report.md | the report |\n| plots/*.svg, plots/*.png | the plots |\n" +
			"| results.json | the results |\n| trials/*/timeline.csv | what was committed |\n\nReport.\n"},
		[2]string{"ro-crate-metadata.json", `{"@graph": [{"@id": "./", "hasPart": [{"@id": "plots/a.svg"}, {"@id": "results.json"}]}, {"@id": "plots/a.svg", "sha256": "1"}, {"@id": "README.md", "sha256": "earlier", "contentSize": "7"}]}`})
	slimmed, err := slim(whole)
	if err != nil {
		t.Fatal(err)
	}
	names, text := filesOf(t, slimmed)
	if want := []string{"trials/x/pods/p/out/timeline.csv", "trials/x/trial.json", "results.json", "ro-crate-metadata.json", "README.md"}; !slices.Equal(names, want) {
		t.Errorf("files %q, want %q", names, want)
	}
	const readme = "# Results\n\n| file | what it is |\n|---|---|\n| results.json | the results |\n\nReport.\n"
	if got := text["README.md"]; got != readme {
		t.Errorf("the README says %q", got)
	}
	if got := text["ro-crate-metadata.json"]; strings.Contains(got, "svg") || strings.Contains(got, "earlier") || !strings.Contains(got, fmt.Sprintf(`"contentSize": "%d"`, len(readme))) {
		t.Errorf("the metadata is\n%s\nwant it without the plot alone", got)
	}
	again, err := slim(slimmed)
	if err != nil || !bytes.Equal(again, slimmed) {
		t.Errorf("a slim bundle changes once more: %v", err)
	}
	if _, err := slim(whole[:len(whole)/2]); err == nil {
		t.Error("a bundle that is cut off is no error")
	}
}

// The repository holds nothing that can be made again.
func TestEvidenceIsSlim(t *testing.T) {
	files, err := filepath.Glob("../../../../experiments/*/evidence/*.tar.*")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d bundles, %v; want 50 or more", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		names, _ := filesOf(t, data)
		if i := slices.IndexFunc(names, bundle.IsMade); i >= 0 || archive.Sniff(data) != archive.Zstd {
			t.Errorf("%s is not slim; make it so: go run ./operator/test/evidence/slim %s", file, strings.TrimPrefix(file, "../../../../"))
		}
	}
}
