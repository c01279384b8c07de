package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/analysis/report/archive"
)

func bundleOf(t *testing.T, files ...[2]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := archive.NewWriter(&b, "e", time.Unix(1_700_000_000, 0))
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

func TestPixelsAreTakenOut(t *testing.T) {
	whole := bundleOf(t,
		[2]string{"results.json", "{}"}, [2]string{"plots/a.svg", "<svg/>"}, [2]string{"plots/a.png", "pixels"},
		[2]string{"trials/x/pods/p/out/photo.png", "a system's own"},
		[2]string{"README.md", "| plots/*.svg, plots/*.png | the plots |\n"},
		[2]string{"ro-crate-metadata.json", `{"@graph": [{"@id": "./", "hasPart": [{"@id": "plots/a.svg"}, {"@id": "plots/a.png"}]}, {"@id": "plots/a.png", "sha256": "1"}, {"@id": "plots/a.svg", "sha256": "earlier", "contentSize": "7"}]}`})
	slimmed, err := slim(whole)
	if err != nil {
		t.Fatal(err)
	}
	names, text := filesOf(t, slimmed)
	if want := []string{"results.json", "plots/a.svg", "trials/x/pods/p/out/photo.png", "README.md", "ro-crate-metadata.json"}; !slices.Equal(names, want) {
		t.Errorf("files %q, want %q", names, want)
	}
	if got := text["README.md"]; got != "| plots/*.svg | the plots |\n" {
		t.Errorf("the README says %q", got)
	}
	if got := text["ro-crate-metadata.json"]; strings.Contains(got, "png") || strings.Count(got, "plots/a.svg") != 2 || strings.Contains(got, "earlier") || !strings.Contains(got, `"contentSize": "6"`) {
		t.Errorf("the metadata is\n%s\nwant it without the picture alone", got)
	}
	again, err := slim(slimmed)
	if err != nil || !bytes.Equal(again, slimmed) {
		t.Errorf("a slim bundle changes once more: %v", err)
	}
	if _, err := slim(whole[:len(whole)/2]); err == nil {
		t.Error("a bundle that is cut off is no error")
	}
}

// The repository holds each plot once. Archives with the raw output of programs are not bundles.
func TestEvidenceHoldsNoPixels(t *testing.T) {
	files, err := filepath.Glob("../../../../experiments/*/evidence/*.tar.gz")
	files = slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "-output.tar.gz") })
	if err != nil || len(files) < 50 {
		t.Fatalf("%d bundles, %v; want 50 or more", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		names, _ := filesOf(t, data)
		if i := slices.IndexFunc(names, drawn); i >= 0 {
			t.Errorf("%s holds %s; take it out: go run ./operator/test/evidence/slim %s", file, names[i], strings.TrimPrefix(file, "../../../../"))
		}
	}
}
