package figure_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis/report/figure"
	"assay.dev/assay/operator/internal/analysis/report/plot"
)

// exports are the forms that hand a figure to its reader's own tools.
var exports = map[string]struct {
	ending string
	write  func(plot.Figure, figure.Style) ([]byte, error)
}{"vega-lite": {".vl.json", figure.VegaLite}, "matplotlib": {".py", figure.Matplotlib}, "ggplot": {".R", figure.GGPlot}}

// The data of a figure are in a form's golden file; the drawing part of a script is the file that
// it is copied from.
func TestExportsGolden(t *testing.T) {
	for form, export := range exports {
		for _, name := range []string{"curves", "stack"} {
			t.Run(form+" "+name, func(t *testing.T) {
				got, err := export.write(figures()[name], column(t))
				if err != nil {
					t.Fatal(err)
				}
				for _, drawing := range []string{"figure.py", "figure.R"} {
					part, err := os.ReadFile(filepath.Join("scripts", drawing))
					if err != nil {
						t.Fatal(err)
					}
					got = bytes.TrimSuffix(got, part)
				}
				golden := filepath.Join("testdata", name+export.ending+".txt")
				if *update {
					if err := os.WriteFile(golden, got, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatalf("%v; run the test with -update", err)
				}
				if diff := cmp.Diff(string(want), string(got)); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			})
		}
	}
}

// Names from results are text in every form, whatever is in them.
func TestExportsQuote(t *testing.T) {
	const payload = "\"); import os #\\\n'); system(\"x\") $x_1$"
	for name, f := range figures() {
		f.X.Label, f.One, f.Title = f.X.Label+payload, payload, payload
		for i := range f.Curves {
			f.Curves[i].Name += payload
		}
		for i := range f.Bars {
			f.Bars[i].Name += payload
		}
		spec, err := figure.VegaLite(f, column(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(spec, &map[string]any{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, form := range []string{"matplotlib", "ggplot"} {
			script, err := exports[form].write(f, column(t))
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(script)) {
				code := line
				if strings.HasPrefix(code, "#") {
					continue
				}
				for _, bad := range []string{"import os", "system("} {
					if before, _, found := strings.Cut(code, bad); found && strings.Count(strings.ReplaceAll(strings.ReplaceAll(before, `\\`, ""), `\"`, ""), `"`)%2 == 0 {
						t.Errorf("%s, %s: %q is outside of a text: %s", name, form, bad, line)
					}
				}
			}
		}
	}
}

// Python draws every kind of figure.
func TestMatplotlibDraws(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	if err := exec.CommandContext(t.Context(), python, "-c", "import matplotlib").Run(); err != nil {
		t.Skip("python3 has no matplotlib (pip install matplotlib)")
	}
	draw(t, figure.Matplotlib, python, ".py")
}

// R draws every kind of figure.
func TestGGPlotDraws(t *testing.T) {
	r, err := exec.LookPath("Rscript")
	if err != nil {
		t.Skip("there is no Rscript (Debian: apt-get install r-cran-ggplot2)")
	}
	if err := exec.CommandContext(t.Context(), r, "-e", "library(ggplot2)").Run(); err != nil {
		t.Skip("R has no ggplot2 (Debian: apt-get install r-cran-ggplot2)")
	}
	draw(t, figure.GGPlot, r, ".R")
}

func draw(t *testing.T, write func(plot.Figure, figure.Style) ([]byte, error), program, ending string) {
	t.Helper()
	dir := t.TempDir()
	if keep := os.Getenv("ASSAY_SCREENSHOTS"); keep != "" {
		dir = keep
	}
	for _, name := range slices.Sorted(maps.Keys(figures())) {
		f := figures()[name]
		script, err := write(f, column(t))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name+ending)
		if err := os.WriteFile(path, script, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), program, path)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
			continue
		}
		drawn, err := filepath.Glob(filepath.Join(dir, figures()[name].Name+".pdf"))
		if err != nil || len(drawn) != 1 {
			t.Errorf("%s: it draws %v (%v)", name, drawn, err)
			continue
		}
		if data, err := os.ReadFile(drawn[0]); err != nil || !bytes.HasPrefix(data, []byte("%PDF")) {
			t.Errorf("%s: %s is no PDF (%v)", name, drawn[0], err)
		}
	}
}
