package report

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/raster"
	"assay.dev/assay/operator/internal/results"
)

// File of a report.
type File struct {
	// Name relative to the report's folder, with / between folders.
	Name string
	Data []byte
}

// pictureForms are those of which a report has a file for each plot.
var pictureForms = []string{"svg", "png"}

// pixels of a PNG for each unit of a plot, which is 640 units wide: 1280, enough for a column of a paper at 300 dots an inch.
const pixels = 2

// fileForms are the other files, by form.
var fileForms = map[string]struct {
	name  string
	write func(io.Writer, results.Experiment) error
}{
	"text":          {"report.txt", func(w io.Writer, e results.Experiment) error { return report.Text(w, e, report.TextOptions{}) }},
	"markdown":      {"report.md", report.Markdown},
	"html":          {"report.html", report.HTML},
	"csv":           {"points.csv", report.CSV},
	"network-csv":   {"network.csv", report.NetworkCSV},
	"recovery-csv":  {"recovery.csv", report.RecoveryCSV},
	"resources-csv": {"resources.csv", report.ResourceCSV},
	"trials-csv":    {"trials.csv", report.TrialCSV},
	"json":          {"results.json", writeJSON},
}

// AllForms of a report, each of which is one file or a file for each plot.
func AllForms() []string {
	return append(slices.Sorted(maps.Keys(fileForms)), pictureForms...)
}

// Files makes the files of a report in some forms, in the order of the forms.
func Files(e results.Experiment, forms ...string) ([]File, error) {
	var files []File
	for _, form := range forms {
		if slices.Contains(pictureForms, form) {
			pictures, err := pictureFiles(e, form)
			if err != nil {
				return nil, err
			}
			files = append(files, pictures...)
			continue
		}
		f, ok := fileForms[form]
		if !ok {
			return nil, fmt.Errorf("a report has no form %q", form)
		}
		var b bytes.Buffer
		if err := f.write(&b, e); err != nil {
			return nil, err
		}
		files = append(files, File{f.name, b.Bytes()})
	}
	return files, nil
}

func pictureFiles(e results.Experiment, form string) ([]File, error) {
	pictures, err := report.Pictures(e)
	if err != nil {
		return nil, err
	}
	var files []File
	for _, p := range pictures {
		data := p.SVG
		if form == "png" {
			if data, err = raster.PNG(p.SVG, pixels); err != nil {
				return nil, fmt.Errorf("plot %s: %w", p.Name, err)
			}
		}
		files = append(files, File{"plots/" + p.Name + "." + form, data})
	}
	return files, nil
}

// checkFolderForm refuses an -o that says which file to write besides the folder.
func checkFolderForm(output string) error {
	if output != "" && !slices.Contains(AllForms(), output) {
		return fmt.Errorf("-o %s: with --output-dir, choose one of %s, or leave -o out for all", output, strings.Join(AllForms(), ", "))
	}
	return nil
}

// writeFolder writes what -o says, or everything.
func writeFolder(s *session.Session, e results.Experiment, o Options) error {
	forms := AllForms()
	if o.Output != "" {
		forms = []string{o.Output}
	}
	files, err := Files(e, forms...)
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(o.OutputDir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { // #nosec G301 -- a report is for others to read
			return fmt.Errorf("--output-dir %s: %w", o.OutputDir, err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil { // #nosec G306 -- a report is for others to read
			return fmt.Errorf("--output-dir %s: %w", o.OutputDir, err)
		}
	}
	if len(files) == 0 {
		fmt.Fprintf(s.Err, "Experiment %s has no plots: no axis with several numbers has a valid trial, no valid trial had faults in its window, and no latencies are kept\n", e.Name)
		return nil
	}
	fmt.Fprintf(s.Err, "Report of experiment %s written to %s, %d files\n", e.Name, o.OutputDir, len(files))
	return nil
}
