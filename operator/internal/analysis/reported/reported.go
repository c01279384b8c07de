// Package reported reads what papers report: the files of experiments/reported, which hold curves
// and tables as data. It maps them onto the reported series of an Experiment.
//
// It is pure, except for Load, which reads the file system that it is given. The files are strict:
// an unknown field, a column of another length than its axis, and a text in the place of a number
// are errors. They name the file and the curve. The format is in docs/reference/reported.md.
package reported

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Bounds of a file.
const (
	maxFile   = 1 << 20
	maxCurves = 256
	maxX      = 64 // as many as a reported series of an Experiment may have
)

// File is one file: what one section of one paper, or its artifact, prints.
type File struct {
	// Name of the file without its folder and extension; not part of the file.
	Name string `json:"-"`
	// Source of the numbers.
	Source Source `json:"source"`
	// Curves in the order of the source. A row or a column of a table is a curve, too.
	Curves []Curve `json:"curves"`
}

// Source is where numbers were published.
type Source struct {
	// Title of the paper or artifact.
	Title string `json:"title"`
	// Section, figure or table.
	Section string `json:"section"`
	// URL of the paper or artifact, if the source names one.
	URL string `json:"url,omitempty"`
	// Read says how the numbers were read, and how they may differ from the paper.
	Read string `json:"read"`
}

// Curve has numbers along one axis.
type Curve struct {
	// Name of the curve, unique in its file: lower-case letters, digits, dashes, dots.
	Name string `json:"name"`
	// Labels say what the curve is about: {system: Pesto, workload: tpcc}.
	Labels map[string]string `json:"labels,omitempty"`
	// Axis that X runs along: clients, shards, configuration.
	Axis string `json:"axis"`
	// X are the values of the axis, in the order of the source.
	X []v1alpha1.Value `json:"x"`
	// XInferred says how X was found if the source does not print it. Empty: X is as printed.
	XInferred string `json:"xInferred,omitempty"`
	// Values, one list for each metric.
	Values []Column `json:"values"`
	// Marks are points that the authors name: "ankle" (their word for the knee), "peak", "stable".
	Marks []Mark `json:"marks,omitempty"`
	// Note says what is unclear in the source and how it was read.
	Note string `json:"note,omitempty"`
	// LeftOut names the numbers of the source that the curve lacks, and the reason.
	LeftOut string `json:"leftOut,omitempty"`
}

// Column is one metric along X.
type Column struct {
	// Metric in UpperCamelCase. Those of an Experiment's reported series are Throughput,
	// ThroughputPerCorrectClient, MeanLatency, and P50Latency, P90Latency, P95Latency, P99Latency
	// and P999Latency.
	Metric string `json:"metric"`
	// Unit, as the source prints it.
	Unit string `json:"unit"`
	// Numbers, as many as X has values; null where the source has none.
	Numbers []*float64 `json:"numbers"`
}

// Mark is a point that the authors name.
type Mark struct {
	Name string `json:"name"`
	// Values of the point. A metric that the authors do not give is missing.
	Values []MarkValue `json:"values"`
	Note   string      `json:"note,omitempty"`
}

// MarkValue is one number of a mark.
type MarkValue struct {
	Metric string  `json:"metric"`
	Unit   string  `json:"unit"`
	Number float64 `json:"number"`
}

// Points counts the numbers of the curve, without nulls and marks.
func (c Curve) Points() int {
	n := 0
	for _, v := range c.Values {
		for _, number := range v.Numbers {
			if number != nil {
				n++
			}
		}
	}
	return n
}

// Column returns the numbers of a metric, or nil.
func (c Curve) Column(metric string) *Column {
	i := slices.IndexFunc(c.Values, func(v Column) bool { return v.Metric == metric })
	if i < 0 {
		return nil
	}
	return &c.Values[i]
}

// Load reads all .yaml files of a folder, in the order of their names.
func Load(folder fs.FS) ([]File, error) {
	names, err := fs.Glob(folder, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the reported data: %w", err)
	}
	var files []File
	for _, name := range names {
		b, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, fmt.Errorf("read the reported data: %w", err)
		}
		f, err := Decode(name, b)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// Decode reads one file and checks it.
func Decode(name string, b []byte) (File, error) {
	f := File{Name: strings.TrimSuffix(path.Base(name), path.Ext(name))}
	if len(b) > maxFile {
		return File{}, fmt.Errorf("%s: the file is larger than %d bytes", name, maxFile)
	}
	if err := yaml.UnmarshalStrict(bytes.TrimSpace(b), &f); err != nil {
		return File{}, fmt.Errorf("%s: %w", name, err)
	}
	if err := f.check(); err != nil {
		return File{}, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

var (
	curveName  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
	metricName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	axisName   = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)
)

func (f File) check() error {
	if f.Source.Title == "" || f.Source.Section == "" || f.Source.Read == "" {
		return errors.New("source: say title, section, and what was read")
	}
	if len(f.Curves) == 0 || len(f.Curves) > maxCurves {
		return fmt.Errorf("curves: there are %d; a file has from 1 to %d", len(f.Curves), maxCurves)
	}
	seen := map[string]bool{}
	for i, c := range f.Curves {
		if seen[c.Name] {
			return fmt.Errorf("curves[%d]: the name %q is there twice", i, c.Name)
		}
		seen[c.Name] = true
		if err := c.check(); err != nil {
			return fmt.Errorf("curves[%d] %q: %w", i, c.Name, err)
		}
	}
	return nil
}

func (c Curve) check() error {
	switch {
	case !curveName.MatchString(c.Name):
		return errors.New("name: use lower-case letters, digits, dashes and dots")
	case !axisName.MatchString(c.Axis):
		return fmt.Errorf("axis: %q is not in lowerCamelCase", c.Axis)
	case len(c.X) == 0 || len(c.X) > maxX:
		return fmt.Errorf("x: there are %d values; it has from 1 to %d", len(c.X), maxX)
	case len(c.Values) == 0:
		return errors.New("values: there are none")
	}
	seen := map[string]bool{}
	for _, x := range c.X {
		if x.String() == "" || seen[x.String()] {
			return fmt.Errorf("x: %q is empty or there twice", x.String())
		}
		seen[x.String()] = true
	}
	clear(seen)
	for _, v := range c.Values {
		if seen[v.Metric] {
			return fmt.Errorf("values: %s is there twice", v.Metric)
		}
		seen[v.Metric] = true
		if err := checkMetric(v.Metric, v.Unit); err != nil {
			return fmt.Errorf("values: %w", err)
		}
		if len(v.Numbers) != len(c.X) {
			return fmt.Errorf("values: %s has %d numbers, x has %d values", v.Metric, len(v.Numbers), len(c.X))
		}
		if !slices.ContainsFunc(v.Numbers, func(n *float64) bool { return n != nil }) {
			return fmt.Errorf("values: %s has no number", v.Metric)
		}
	}
	for _, m := range c.Marks {
		if m.Name == "" || len(m.Values) == 0 {
			return errors.New("marks: each has a name and values")
		}
		for _, v := range m.Values {
			if err := checkMetric(v.Metric, v.Unit); err != nil {
				return fmt.Errorf("marks: %s: %w", m.Name, err)
			}
			if math.IsNaN(v.Number) || v.Number <= 0 {
				return fmt.Errorf("marks: %s: %s is %v; it must be above 0", m.Name, v.Metric, v.Number)
			}
		}
	}
	return nil
}

func checkMetric(metric, unit string) error {
	if !metricName.MatchString(metric) {
		return fmt.Errorf("the metric %q is not in UpperCamelCase", metric)
	}
	if unit == "" {
		return fmt.Errorf("%s has no unit; a number without one is a \"ratio\"", metric)
	}
	return nil
}
