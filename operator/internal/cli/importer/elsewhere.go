package importer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results/imported"
	"assay.dev/assay/operator/internal/results/parsers"
)

// Elsewhere has the flags by which import results and judge read files that were measured without
// Assay.
type Elsewhere struct {
	Format string
	Point  string
	Rename []string
	At     []string
	// ByOperation makes a result of its own for each kind of operation in a file.
	ByOperation bool
	// Unit of the values of HdrPercentiles and HdrHistogram.
	Unit string
}

// Bind adds the flags.
func (o *Elsewhere) Bind(f *pflag.FlagSet) {
	f.StringVar(&o.Format, "format", "", "format of the files: "+strings.Join(imported.Formats(), ", ")+"; default: as their names tell, or Pequin's folder")
	f.StringVar(&o.Point, "point", "", "names of the files below the folder, with axes in braces, as in {system}/{clients}c/run{repetition}.txt; *: any part of a name; {client} tells the clients of one run apart")
	f.StringArrayVar(&o.Rename, "rename", nil, "AXIS=LABEL: the axis is called LABEL in the files; AXIS:LABEL=VALUE: so is its value; may be repeated")
	f.StringArrayVar(&o.At, "at", nil, "AXIS=VALUE: where on an axis all files are; may be repeated")
	f.BoolVar(&o.ByOperation, "by-operation", false, "of YCSB, and of HdrHistogram by tags: a result for each kind of operation, with its percentiles and the label operation; default: one for all, whose percentiles are not known")
	f.StringVar(&o.Unit, "unit", "", "of HdrPercentiles and HdrHistogram: unit of their values, ns, us, ms or s")
}

// options returns the options of the reader. systems are the Systems whose clients print the format
// Summary.
func (o *Elsewhere) options(systems map[string]v1alpha1.SystemSpec) (imported.Options, error) {
	out := imported.Options{Format: o.Format, Point: o.Point, ByOperation: o.ByOperation, Unit: o.Unit}
	var err error
	if out.Rename, err = pairs("--rename", o.Rename); err == nil {
		out.At, err = pairs("--at", o.At)
	}
	if err != nil || o.Format != parsers.FormatSummary {
		return out, err
	}
	var with []string
	for name, system := range systems {
		if summary := system.Clients.Results.Summary; summary != nil {
			with = append(with, name)
			out.Summary = plan.Summary(summary)
		}
	}
	if len(with) != 1 {
		slices.Sort(with)
		return out, fmt.Errorf("--format %s: read by the clients.results.summary of one System, and -f has %d (%s)", o.Format, len(with), strings.Join(with, ", "))
	}
	return out, nil
}

func pairs(flag string, texts []string) (map[string]string, error) {
	all := map[string]string{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" || value == "" {
			return nil, fmt.Errorf("%s %s: give a name, =, and a value", flag, text)
		}
		all[name] = value
	}
	return all, nil
}

// Read reads folders and files.
func (o *Elsewhere) Read(_ context.Context, paths []string, systems map[string]v1alpha1.SystemSpec) (*imported.Set, error) {
	var all *imported.Set
	for _, name := range paths {
		folder, only, err := open(name)
		if err != nil {
			return nil, err
		}
		one := *o
		if one.Format == "" {
			if one.Format = imported.Guess(folder, only); one.Format == "" {
				return nil, fmt.Errorf("%s: no file's name tells the format; give --format, one of %s", name, strings.Join(imported.Formats(), ", "))
			}
		}
		if err := imported.CheckFormat(one.Format); err != nil {
			return nil, fmt.Errorf("--format %w", err)
		}
		options, err := one.options(systems)
		if err != nil {
			return nil, err
		}
		options.Only = only
		set, err := imported.Read(folder, options)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(paths) > 1 {
			for i := range set.Results {
				set.Results[i].From.File = path.Join(filepath.Base(name), set.Results[i].From.File)
			}
		}
		if all == nil {
			all = set
			continue
		}
		all.Files += set.Files
		all.Results, all.Skipped = append(all.Results, set.Results...), append(all.Skipped, set.Skipped...)
	}
	if all == nil {
		return nil, errors.New("no folder and no file of results is named")
	}
	return all, nil
}

// open opens a folder, or the folder of a file.
func open(name string) (folder fs.FS, only []string, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, fmt.Errorf("read the results: %w", err)
	}
	if info.IsDir() {
		return os.DirFS(name), nil, nil
	}
	return os.DirFS(filepath.Dir(name)), []string{filepath.Base(name)}, nil
}
