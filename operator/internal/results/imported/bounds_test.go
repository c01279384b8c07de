package imported

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

func TestUnitsOfColumns(t *testing.T) {
	for column, want := range map[string][2]string{
		"p99": {"p99", ""}, "p99_ms": {"p99", "ms"}, "P99_MS": {"P99", "ms"}, "p99(ms)": {"p99", "ms"}, "p99 [us]": {"p99", "us"}, "p99 ()": {"p99", ""},
		"p99)": {"p99)", ""}, "p99(ms": {"p99(ms", ""}, "p99[ms)": {"p99[ms)", ""}, "(ms)": {"(ms)", ""}, "x(ms)": {"x", "ms"}, "f(x) (ms)": {"f(x)", "ms"},
		"rate (ops) [ops/s]": {"rate (ops)", "ops/s"}, "_ms": {"", "ms"}, "": {"", ""}, "p99_km": {"p99_km", ""},
	} {
		if base, unit := splitColumn(column); base != want[0] || unit != want[1] {
			t.Errorf("%q: %q in %q, want %q", column, base, unit, want)
		}
	}
}

func TestFormatsThatFilesTell(t *testing.T) {
	for name, tc := range map[string]struct {
		files, only []string
		want        string
	}{
		"a table":              {files: []string{"a/r.csv"}, want: "CSV"},
		"Eiger-PORT's":         {files: []string{"a/combined.graph"}, want: "EigerGraph"},
		"percentiles":          {files: []string{"r.hgrm"}, want: "HdrPercentiles"},
		"histograms":           {files: []string{"r.hlog"}, want: "HdrHistogram"},
		"Assay's own":          {files: []string{"results.json"}, want: "Results"},
		"others":               {files: []string{"README.md", "r.txt", "csv", "a.graph"}, want: ""},
		"the first that tells": {files: []string{"a.txt", "b.json", "c.csv"}, want: "Results"},
		"only some":            {files: []string{"b.json", "c.csv"}, only: []string{"c.csv"}, want: "CSV"},
		"none":                 {},
	} {
		all := map[string]string{}
		for _, f := range tc.files {
			all[f] = "x"
		}
		if got := Guess(folder(all), tc.only); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	for format, ok := range map[string]bool{FormatResults: true, FormatHdrPercentiles: true, "CSV": true, "Rows": false, "": false} {
		if err := CheckFormat(format); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), FormatResults) {
			t.Errorf("%q: %v", format, err)
		}
	}
}

// A run of one transaction, or with a mean of 1 ms, has measured something.
func TestRunsOfAnArtifactThatMeasuredNothing(t *testing.T) {
	for _, tc := range []struct {
		tput, mean float64
		ok         bool
	}{{1, 1, true}, {1, 5, true}, {5, 1, true}, {0, 5, false}, {5, 0, false}, {0, 0, false}} {
		all, _, err := readPequinStats("stats.json", []byte(statsJSON(tc.tput, 1, tc.mean, 9)), Options{})
		if (err == nil) != tc.ok || tc.ok && (len(all) != 1 || *all[0].Throughput != tc.tput || *all[0].Mean != tc.mean || all[0].Labels["clients"] != "1") {
			t.Errorf("throughput %g, mean %g: %+v, %v", tc.tput, tc.mean, all, err)
		}
	}
}

// TestResultsOfAssayItself: which numbers of trials are known, and how many trials do not count.
func TestResultsOfAssayItself(t *testing.T) {
	at := func(x string) map[string]string { return map[string]string{"n": x} }
	data, err := results.EncodeExperiment(results.Experiment{Trials: []results.TrialLine{
		{Name: "a", Outcome: stats.Succeeded, Coordinates: at("1"), Throughput: 100, MeanMillis: 1, P10Millis: 2, P50Millis: 3, P90Millis: 4, P99Millis: 5, P999Millis: 6, Committed: 90, Aborted: 7, Errors: 0, Timeouts: 3},
		{Name: "b", Outcome: stats.Invalid, Coordinates: at("1"), Throughput: 1e9},
		{Name: "c", Outcome: stats.Succeeded, Coordinates: at("2"), Throughput: 50, Imported: &results.Imported{File: "x.csv", Line: 17}},
		{Name: "d", Outcome: stats.Failed, Coordinates: at("2")},
		{Name: "e", Outcome: stats.Succeeded, Coordinates: at("3"), Throughput: 1, Committed: 1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	all, skipped, err := readResults("results.json", data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := func(x float64) *float64 { return &x }
	want := []Result{
		{Labels: at("1"), Numbers: Numbers{Throughput: n(100), Mean: n(1), P10: n(2), P50: n(3), P90: n(4), P99: n(5), P999: n(6), Committed: n(90), Aborted: n(7), Errors: n(0), Timeouts: n(3)}},
		{From: results.Imported{Line: 17}, Labels: at("2"), Numbers: Numbers{Throughput: n(50)}},
		{Labels: at("3"), Numbers: Numbers{Throughput: n(1), Committed: n(1), Aborted: n(0), Errors: n(0), Timeouts: n(0)}},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"of results.json: 2 trials that did not count there"}, skipped); diff != "" {
		t.Errorf("not read (-want +got)\n%s", diff)
	}
	whole, err := results.EncodeExperiment(results.Experiment{Trials: []results.TrialLine{{Name: "a", Outcome: stats.Succeeded, Coordinates: at("1"), Throughput: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	if all, skipped, err := readResults("results.json", whole, Options{}); err != nil || len(all) != 1 || skipped != nil {
		t.Errorf("of one trial that counts: %+v, %q, %v", all, skipped, err)
	}
	if _, _, err := readResults("results.json", []byte("{"), Options{}); err == nil {
		t.Error("what is no JSON is read")
	}
}

// TestAxesOfLabels: values are in the order of numbers where all are some, else in that of the
// results.
func TestAxesOfLabels(t *testing.T) {
	s := &Set{}
	for _, at := range [][2]string{{"10", "b"}, {"9", "a"}, {"10", "a"}, {"100.5", "7"}} {
		s.Results = append(s.Results, Result{From: results.Imported{File: "f"}, Labels: map[string]string{"n": at[0], "kind": at[1]}})
	}
	got, err := s.AxesOf([]string{"kind", "n"})
	if diff := cmp.Diff([]results.Axis{{Name: "kind", Values: []string{"b", "a", "7"}}, {Name: "n", Values: []string{"9", "10", "100.5"}}}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if _, err := s.AxesOf([]string{"n", "other"}); err == nil || !strings.Contains(err.Error(), "f: it has no value of the axis other") {
		t.Errorf("of a label that is not there: %v", err)
	}
}

// TestPointsWithoutResults: all of five are named, and of seven five.
func TestPointsWithoutResults(t *testing.T) {
	axes := []results.Axis{{Name: "a", Values: []string{"x", "y"}}, {Name: "b", Values: []string{"1", "2", "3", "4"}}}
	with := func(points ...int32) map[int32][]int {
		of := map[int32][]int{}
		for _, p := range points {
			of[p] = []int{0}
		}
		return of
	}
	for _, tc := range []struct {
		of   map[int32][]int
		want []string
	}{
		{with(0, 1, 2, 3, 4, 5, 6, 7), nil},
		{with(0, 1, 2, 3, 4, 5, 7), []string{"results of 1 points: a=y, b=3"}},
		{with(0, 6, 7), []string{"results of 5 points: a=x, b=2; a=x, b=3; a=x, b=4; a=y, b=1; a=y, b=2"}},
		{with(0), []string{"results of 7 points: a=x, b=2; a=x, b=3; a=x, b=4; a=y, b=1; a=y, b=2; 2 more"}},
	} {
		if diff := cmp.Diff(tc.want, missing(axes, tc.of)); diff != "" {
			t.Errorf("of %d points: (-want +got)\n%s", len(tc.of), diff)
		}
	}
}

// TestMeanOfClients is that of all operations: 1 ms of 100 and 3 ms of 300 are 2.5 ms.
func TestMeanOfClients(t *testing.T) {
	n := func(x float64) *float64 { return &x }
	client := func(mean, committed *float64) Result {
		return Result{Numbers: Numbers{Mean: mean, Committed: committed}}
	}
	for name, tc := range map[string]struct {
		clients []Result
		mean    float64 // 0: none
		all     bool
	}{
		"both":                     {[]Result{client(n(1), n(100)), client(n(3), n(300))}, 2.5, true},
		"one operation":            {[]Result{client(n(4), n(1)), client(n(9), n(0))}, 4, true},
		"none says a mean":         {[]Result{client(nil, n(100)), client(nil, n(300))}, 0, true},
		"the second says none":     {[]Result{client(n(1), n(100)), client(nil, n(300))}, 0, true},
		"one does not say of what": {[]Result{client(n(1), nil), client(n(3), n(300))}, 0, false},
		"nothing committed":        {[]Result{client(n(1), n(0)), client(n(3), n(0))}, 0, true},
	} {
		mean, all := meanOf(tc.clients)
		if all != tc.all || (mean == nil) != (tc.mean == 0) || mean != nil && *mean != tc.mean {
			t.Errorf("%s: %v, %v; want %g, %v", name, mean, all, tc.mean, tc.all)
		}
	}
}

// TestNumbersByTheirNames: what the units of columns make of 6.
func TestNumbersByTheirNames(t *testing.T) {
	for _, tc := range []struct {
		name, unit string
		x          float64
		known      bool
		want       string // the numbers
		err        string
	}{
		{"p99", "ms", 6, true, "p99=6", ""}, {"P99Latency", "us", 6, true, "p99=0.006", ""}, {"latency_p50", "s", 6, true, "p50=6000", ""}, {"mean", "ns", 6e6, true, "mean=6", ""},
		{"p99", "", 6, true, "", `p99 has the unit ""; a time has one of ns, us, ms, s`}, {"p99", "ops/s", 6, true, "", "a time has one of"},
		{"tput", "", 6, true, "tput=6", ""}, {"tput", "kops/s", 6, true, "tput=6000", ""}, {"tput", "tx/min", 6, true, "tput=0.1", ""}, {"tput", "ms", 6, true, "", `tput has the unit "ms"; a rate has one of`},
		{"errors", "", 6, true, "errors=6", ""}, {"errors", "", 0, true, "errors=0", ""}, {"errors", "", 6.5, true, "", "errors is 6.5, which is no number of that kind"},
		{"errors", "", -1, true, "", "errors is -1"}, {"tput", "", -0.5, true, "", "tput is -0.5"}, {"nodes", "", 6, false, "", ""},
	} {
		var r Result
		known, err := r.set(tc.name, tc.unit, tc.x)
		if known != tc.known || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s of %q is %g: known %v, %v; want %v, %q", tc.name, tc.unit, tc.x, known, err, tc.known, tc.err)
		}
		if _, got, _ := strings.Cut(shown(r), ":"); strings.TrimSpace(got) != tc.want {
			t.Errorf("%s of %q is %g: %s, want %s", tc.name, tc.unit, tc.x, got, tc.want)
		}
	}
	var twice Numbers
	for i, want := range []string{"", "p99 is there twice"} {
		if _, err := twice.set("p99", "ms", float64(i)); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("the number %d: %v, want %q", i, err, want)
		}
	}
}

// TestColumnsThatAreGuessed: what the name of a column says of it. A latency needs a unit, and one
// that is no mean is not taken for it.
func TestColumnsThatAreGuessed(t *testing.T) {
	for column, want := range map[string]string{
		"throughput": "Throughput its own", "tput (kops/s)": "Throughput its own", "p99_ms": "P99Latency its own", "mean (us)": "MeanLatency its own", "errors": "Errors its own",
		"committed": "Committed its own", "max_s": "MaxLatency its own", "P50 [ns]": "P50Latency its own", "p99.9(ms)": "P999Latency its own",
		"ops per second": "Throughput ops/s", "total kops": "Throughput kops/s", "ktps done": "Throughput kops/s", "read kqps": "Throughput kops/s", "Mops total": "Throughput Mops/s", "my iops": "Throughput ops/s",
		"read latency in ms": "MeanLatency ms", "response seconds": "MeanLatency s", "99th tail us": "P99Latency us", "read median millis": "P50Latency ms", "99.9 tail micros": "P999Latency us",
		"90% tail ms": "P90Latency ms", "tail max ms": "MaxLatency ms", "tail p10 ms": "P10Latency ms",
		"latency": "", "read latency": "", "min latency ms": "", "latency stddev ms": "", "latency 95 ms": "", "latency var us": "", "p75 latency ms": "", "system": "", "": "",
	} {
		name, unit, known := numberOf(column)
		if got := strings.TrimSpace(name + " " + unit); known != (want != "") || known && got != want {
			t.Errorf("%q: %s, known %v; want %q", column, got, known, want)
		}
	}
}
