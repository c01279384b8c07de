package experiments

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/reported"
)

// No author may invent a number of a source. A value that a claim calls reported follows from
// numbers under experiments/reported, and the end of reportedIn names them:
//
//	Failure, tables U-FP and U-Ideal; pesto-failure u-fp/Throughput/max / u-ideal/Throughput/max
//
// It is a file, and one number, or the quotient (/) or difference (-) of two. A number is
// curve/metric/x; max and min stand for the curve's greatest and least value.
func TestReportedValuesOfClaims(t *testing.T) {
	files := reportedFiles(t)
	found := 0
	for _, file := range experimentFiles(t) {
		exp := readExperiment(t, file)
		for _, c := range exp.Spec.Claims {
			if c.Reported == nil {
				continue
			}
			found++
			if err := derives(files, c.Reported.String(), c.ReportedIn); err != nil {
				t.Errorf("%s: claim %s: %v", file, c.Name, err)
			}
		}
		for _, p := range exp.Spec.Profiles {
			for _, c := range p.Claims {
				if c.Reported != nil {
					t.Errorf("%s: profile %s, claim %s: reported has no place in the source; give the number a claim of its own", file, p.Name, c.Name)
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("%d claims compare with a reported value; more are expected", found)
	}
}

func TestDerives(t *testing.T) {
	files := reportedFiles(t)
	for name, tc := range map[string]struct{ value, where, want string }{
		"a number":                  {"7008", "Failure; pesto-failure u-ideal/Throughput/30", ""},
		"the greatest":              {"7008", "Failure; pesto-failure u-ideal/Throughput/max", ""},
		"a quotient":                {"0.86", "Failure; pesto-failure u-nofp/Throughput/max / u-ideal/Throughput/max", ""},
		"a difference":              {"3.2ms", "Failure; pesto-failure u-fp/MeanLatency/25 - u-nofp/MeanLatency/25", ""},
		"one that no source prints": {"0.87", "Failure; pesto-failure u-nofp/Throughput/max / u-ideal/Throughput/max", "is 0.86"},
		"nowhere":                   {"7008", "", "reportedIn does not end"},
		"no file":                   {"7008", "Failure; pesto u-ideal/Throughput/30", "no file pesto"},
		"no curve":                  {"7008", "Failure; pesto-failure ideal/Throughput/30", "no curve ideal"},
		"no such point":             {"7008", "Failure; pesto-failure u-ideal/Throughput/31", "nothing at 31"},
	} {
		t.Run(name, func(t *testing.T) {
			err := derives(files, tc.value, tc.where)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("derives: %v; want %q", err, tc.want)
			}
		})
	}
}

func reportedFiles(t *testing.T) map[string]reported.File {
	t.Helper()
	list, err := reported.Load(os.DirFS(experimentsDir + "/reported"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]reported.File{}
	for _, f := range list {
		files[f.Name] = f
	}
	return files
}

// derives checks that a claim's value equals the number at the end of where, rounded to the digits
// of the value.
func derives(files map[string]reported.File, value, where string) error {
	end := where[strings.LastIndex(where, "; ")+1:]
	words := strings.Fields(end)
	if len(words) != 2 && len(words) != 4 {
		return fmt.Errorf("reportedIn does not end with \"; FILE CURVE/METRIC/X\", or two of these with / or - between: %q", where)
	}
	f, ok := files[words[0]]
	if !ok {
		return fmt.Errorf("there is no file %s in experiments/reported", words[0])
	}
	number, unit, err := numberOf(f, words[1])
	if err != nil {
		return err
	}
	if len(words) == 4 {
		other, _, err := numberOf(f, words[3])
		switch {
		case err != nil:
			return err
		case words[2] == "/":
			number, unit = number/other, "ratio"
		case words[2] == "-":
			number -= other
		default:
			return fmt.Errorf("%q is neither / nor -", words[2])
		}
	}
	return sameNumber(value, number, unit)
}

// numberOf finds curve/metric/x. A curve's name and an x have no slash.
func numberOf(f reported.File, term string) (number float64, unit string, err error) {
	parts := strings.SplitN(term, "/", 3)
	if len(parts) != 3 {
		return 0, "", fmt.Errorf("%q is not CURVE/METRIC/X", term)
	}
	i := slices.IndexFunc(f.Curves, func(c reported.Curve) bool { return c.Name == parts[0] })
	if i < 0 {
		return 0, "", fmt.Errorf("%s has no curve %s", f.Name, parts[0])
	}
	column := f.Curves[i].Column(parts[1])
	if column == nil {
		return 0, "", fmt.Errorf("curve %s has no %s", parts[0], parts[1])
	}
	var all []float64
	for k, n := range column.Numbers {
		if n == nil {
			continue
		}
		if f.Curves[i].X[k].String() == parts[2] {
			return *n, column.Unit, nil
		}
		all = append(all, *n)
	}
	switch {
	case parts[2] == "max":
		return slices.Max(all), column.Unit, nil
	case parts[2] == "min":
		return slices.Min(all), column.Unit, nil
	}
	return 0, "", fmt.Errorf("curve %s has nothing at %s", parts[0], parts[2])
}

// sameNumber compares to the last digit of the value, in ms if it is a duration.
func sameNumber(value string, number float64, unit string) error {
	text := value
	if d, err := time.ParseDuration(value); err == nil && value != "0" {
		text = strings.TrimRight(value, "nuµmsh")
		number *= float64(map[string]time.Duration{"us": time.Microsecond, "ms": time.Millisecond, "s": time.Second}[unit]) / float64(d)
		written, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return err
		}
		number *= written
	}
	written, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("%q is not a number", value)
	}
	digits := 0
	if _, after, ok := strings.Cut(text, "."); ok {
		digits = len(after)
	}
	if step := math.Pow10(-digits); math.Abs(written-number) > 0.5000001*step {
		return fmt.Errorf("the claim says %s; by reportedIn it is %s", value, strconv.FormatFloat(number, 'f', digits, 64))
	}
	return nil
}

// A series of an Experiment is a curve under experiments/reported, or a part of one. It may also be
// the values of a file's curves at one x, such as schemes under workload A. Its axis may name the
// points in another way, such as clients for threads on each client.
func TestReportedSeriesAreOfTheSources(t *testing.T) {
	var rows []numbersRow
	for _, f := range reportedFiles(t) {
		rows = append(rows, rowsOf(f)...)
	}
	found := 0
	for _, file := range experimentFiles(t) {
		for _, s := range readExperiment(t, file).Spec.Reported {
			found++
			if !slices.ContainsFunc(rows, func(r numbersRow) bool { _, all := r.has(s); return all }) {
				t.Errorf("%s: the series %s is no part of a curve of experiments/reported", file, s.Name)
			}
		}
	}
	if found < 50 {
		t.Errorf("%d series found; more are expected", found)
	}
}

// place of a number under experiments/reported.
type place struct {
	file, curve, metric string
	index               int
}

// numbersRow has numbers of a source, in units of an Experiment's metrics.
type numbersRow struct {
	metric  string
	x       []string
	numbers []float64
	places  []place
}

func (r *numbersRow) add(x string, number float64, p place) {
	r.x, r.numbers, r.places = append(r.x, x), append(r.numbers, number), append(r.places, p)
}

// ours converts units of the sources into those of an Experiment's metrics, ms and tx/s.
var ours = map[string]float64{"us": 1e-3, "ms": 1, "s": 1e3, "tx/s": 1, "ops/s": 1, "Mops/s": 1e6}

// rowsOf are a file's curves, and the rows of their values at one x.
func rowsOf(f reported.File) []numbersRow {
	var rows []numbersRow
	across := map[string]*numbersRow{} // metric and x
	for _, c := range f.Curves {
		for _, column := range c.Values {
			factor, ok := ours[column.Unit]
			if !ok {
				factor = 1
			}
			along := numbersRow{metric: column.Metric}
			for i, n := range column.Numbers {
				if n == nil {
					continue
				}
				x, p := c.X[i].String(), place{f.Name, c.Name, column.Metric, i}
				along.add(x, *n*factor, p)
				key := column.Metric + "/" + x
				if across[key] == nil {
					across[key] = &numbersRow{metric: column.Metric}
				}
				across[key].add(c.Name, *n*factor, p)
			}
			rows = append(rows, along)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(across)) {
		rows = append(rows, *across[key])
	}
	return rows
}

// has reports whether all values of s are in the row, in its order, and at the same x if both have
// that x. The result drawn has the places of these values.
func (r numbersRow) has(s v1alpha1.ReportedSeries) (drawn []place, all bool) {
	if r.metric != s.Metric && s.Metric != "Measurement" && (r.metric != "TimePerRun" || s.Metric != "MeanLatency") {
		return nil, false
	}
	factor, ok := ours[s.Unit]
	if !ok {
		factor = 1
	}
	same := func(y, number float64) bool { return math.Abs(y*factor-number) <= 1e-9*math.Abs(number) }
	next := 0
	for _, v := range s.Values {
		y, err := strconv.ParseFloat(v.Y.String(), 64)
		if err != nil {
			return nil, false
		}
		if i := slices.Index(r.x, v.X.String()); i >= 0 && !same(y, r.numbers[i]) {
			return nil, false
		}
		i := slices.IndexFunc(r.numbers[next:], func(n float64) bool { return same(y, n) })
		if i < 0 {
			return nil, false
		}
		drawn = append(drawn, r.places[next+i])
		next += i + 1
	}
	return drawn, true
}

func TestRowHas(t *testing.T) {
	series := func(unit string, pairs ...string) v1alpha1.ReportedSeries {
		s := v1alpha1.ReportedSeries{Metric: "MeanLatency", Unit: unit}
		for i := 0; i < len(pairs); i += 2 {
			s.Values = append(s.Values, v1alpha1.ReportedValue{X: v1alpha1.NewValue(pairs[i]), Y: v1alpha1.NewValue(pairs[i+1])})
		}
		return s
	}
	source := numbersRow{metric: "MeanLatency", x: []string{"1", "2", "3"}, numbers: []float64{10, 20, 20}, places: make([]place, 3)}
	for name, tc := range map[string]struct {
		s    v1alpha1.ReportedSeries
		want bool
	}{
		"all":              {series("ms", "1", "10", "2", "20", "3", "20"), true},
		"a part":           {series("ms", "2", "20"), true},
		"another unit":     {series("us", "1", "10000"), true},
		"other names":      {series("ms", "four", "10"), true},
		"another number":   {series("ms", "1", "11"), false},
		"at another point": {series("ms", "2", "10"), false},
		"another order":    {series("ms", "four", "20", "five", "10"), false},
	} {
		if drawn, got := source.has(tc.s); got != tc.want || got && len(drawn) != len(tc.s.Values) {
			t.Errorf("%s: %v, with %d of %d values", name, got, len(drawn), len(tc.s.Values))
		}
	}
}
