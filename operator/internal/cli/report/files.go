package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/csvfile"
	"assay.dev/assay/operator/internal/analysis/report/figure"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/analysis/report/plot"
	"assay.dev/assay/operator/internal/analysis/report/raster"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
)

// File of a report.
type File struct {
	// Name relative to the report's folder, with / between folders.
	Name string
	Data []byte
}

// pictureForms are the forms of a report that have a file for each plot.
var pictureForms = []string{"svg", "png", "pdf", "pgfplots", "vega-lite", "matplotlib", "ggplot"}

// input has the data of which the files of a report are made.
type input struct {
	results.Experiment
	drawing    drawing
	histograms []model.TrialHistogram
	unreadable error // of the first histogram that cannot be read
	// figures is an Experiment whose figures are drawn instead of those in the results. Nil: there
	// is none. read has the measurements of these figures, by trial.
	figures *v1alpha1.Experiment
	read    map[string][]results.Measurement
}

// take keeps the histogram of a trial, and its measurements for other figures.
func (in *input) take(t results.Trial) {
	if in.figures != nil {
		if in.read == nil {
			in.read = map[string][]results.Measurement{}
		}
		in.read[t.Name] = model.ReadOff(in.figures.Spec, &t)
	}
	h, ok, err := model.HistogramOf(t)
	if err != nil && in.unreadable == nil {
		in.unreadable = err
	}
	if ok && err == nil {
		in.histograms = append(in.histograms, h)
	}
}

// haveHistograms returns an error that explains why there are no histograms, or nil.
func (in input) haveHistograms() error {
	switch {
	case in.unreadable != nil:
		return in.unreadable
	case len(in.histograms) == 0:
		return fmt.Errorf("experiment %s: no histograms were found; they are in the results of valid trials in the cluster and in a bundle, but -o json leaves them out", in.Name)
	}
	return nil
}

// fileForms are the forms that are no pictures.
var fileForms = withPlain(map[string]fileForm{
	"text": {"report.txt", func(w io.Writer, in input) error {
		return format.Text(w, in.Experiment, format.TextOptions{})
	}},
	"json":           {"results.json", plain(writeJSON)},
	"yaml":           {"results.yaml", plain(writeYAML)},
	"histograms-csv": {"histograms.csv", histograms(csvfile.Histograms)},
	"parquet":        {"histograms.parquet", histograms(figure.HistogramParquet)},
})

type fileForm struct {
	name  string
	write func(io.Writer, input) error
}

// withPlain adds the forms that need the experiment's results alone.
func withPlain(forms map[string]fileForm) map[string]fileForm {
	for name, f := range format.Forms {
		forms[name] = fileForm{f.File, plain(f.Write)}
	}
	return forms
}

// histogramForms need data that only the trials' own results have.
var histogramForms = []string{"histograms-csv", "parquet"}

func plain(write func(io.Writer, results.Experiment) error) func(io.Writer, input) error {
	return func(w io.Writer, in input) error { return write(w, in.Experiment) }
}

func histograms(write func(io.Writer, results.Experiment, []model.TrialHistogram) error) func(io.Writer, input) error {
	return func(w io.Writer, in input) error {
		if err := in.haveHistograms(); err != nil {
			return err
		}
		return write(w, in.Experiment, in.histograms)
	}
}

// AllForms are all forms of a report. A form is one file, or a file for each plot.
func AllForms() []string {
	return append(slices.Sorted(maps.Keys(fileForms)), pictureForms...)
}

// Files makes the files of a report in the given forms, in the order of the forms.
func Files(e results.Experiment, forms ...string) ([]File, error) {
	return files(input{Experiment: e}, forms...)
}

func files(in input, forms ...string) ([]File, error) {
	var files []File
	for _, form := range forms {
		if slices.Contains(pictureForms, form) {
			pictures, err := in.pictureFiles(form)
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
		if err := f.write(&b, in); err != nil {
			return nil, err
		}
		files = append(files, File{f.name, b.Bytes()})
	}
	return files, nil
}

func (in input) pictureFiles(form string) ([]File, error) {
	if _, ofPaper := figureForms[form]; ofPaper {
		return in.drawing.files(in.Experiment, form)
	}
	pictures, err := plot.Pictures(in.Experiment)
	if err != nil {
		return nil, err
	}
	var files []File
	for _, p := range pictures {
		data := p.SVG
		if form == "png" {
			if data, err = raster.PNG(p.SVG, raster.Pixels); err != nil {
				return nil, fmt.Errorf("plot %s: %w", p.Name, err)
			}
		}
		files = append(files, File{"plots/" + p.Name + "." + form, data})
	}
	return files, nil
}

// checkFolderForm refuses an -o that names a file, since the files go into the folder.
func checkFolderForm(output string) error {
	if output != "" && !slices.Contains(AllForms(), output) {
		return fmt.Errorf("-o %s: with --output-dir, choose one of %s, or leave -o out for all", output, strings.Join(AllForms(), ", "))
	}
	return nil
}

// everything makes the files of all forms. It leaves out the forms that this experiment cannot
// have, and prints the reason.
func everything(s *session.Session, in input) ([]File, error) {
	var all []File
	for _, form := range AllForms() {
		if form == "yaml" {
			continue // json has the same content
		}
		made, err := files(in, form)
		if err != nil && (slices.Contains(histogramForms, form) || errors.Is(err, figure.ErrCharacters)) {
			fmt.Fprintf(s.Err, "No %s: %v\n", form, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, f := range made { // several forms have the same captions
			if !slices.ContainsFunc(all, func(other File) bool { return other.Name == f.Name }) {
				all = append(all, f)
			}
		}
	}
	return all, nil
}

// writeFolder writes the form that -o names, or all forms.
func writeFolder(s *session.Session, in input, o Options) error {
	var made []File
	var err error
	if o.Output == "" {
		made, err = everything(s, in)
	} else {
		made, err = files(in, o.Output)
	}
	if err != nil {
		return err
	}
	for _, f := range made {
		path := filepath.Join(o.OutputDir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { // #nosec G301 -- a report is for others to read
			return fmt.Errorf("--output-dir %s: %w", o.OutputDir, err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil { // #nosec G306 -- a report is for others to read
			return fmt.Errorf("--output-dir %s: %w", o.OutputDir, err)
		}
	}
	if len(made) == 0 {
		fmt.Fprintf(s.Err, "Experiment %s has no plots: no axis with several numbers has a valid trial, no valid trial had faults in its window, and no latencies are kept\n", in.Name)
		return nil
	}
	fmt.Fprintf(s.Err, "Report of experiment %s written to %s, %d files\n", in.Name, o.OutputDir, len(made))
	return nil
}
