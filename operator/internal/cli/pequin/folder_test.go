package pequin

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/parsers"
	"assay.dev/assay/operator/internal/results/stats"
	"assay.dev/assay/operator/internal/testkit/testpequin"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// row is a point in the artifact's CSV files.
type row struct {
	Clients          string
	Throughput, Mean float64
}

func rows(e results.Experiment) []row {
	var got []row
	for _, p := range e.Points {
		got = append(got, row{p.Coordinates["clients"], p.Metrics[stats.Throughput].Mean, p.Metrics[stats.MeanLatency].Mean})
	}
	return got
}

// The imported numbers equal those of lat-tput.csv and tput-clients.csv to all digits. They are the
// same without the CSV files, read from stats.json. Throughput is transactions divided by seconds.
// The means follow from the evenly spaced latencies of each operation.
func TestNumbersOfAFolder(t *testing.T) {
	// n latencies from first in equal steps add up to n*first + step*n*(n-1)/2.
	sum := func(o testpequin.Operation) float64 {
		n := float64(o.Count)
		return n*o.First + o.Step*n*(n-1)/2
	}
	orders := 0.
	for _, o := range testpequin.Orders.Points[0].Operations {
		orders += sum(o)
	}
	atOrders := row{"24", 8250. / 30, orders / 8250}
	scans := testpequin.Ranges.Points
	first, second := row{"18", 4321. / 20, sum(scans[0].Operations[0]) / 4321}, row{"25", 7654. / 20, sum(scans[1].Operations[0]) / 7654}
	tests := map[string]struct {
		evaluation     testpequin.Evaluation
		all, fromStats []row
	}{
		"one stats.json": {
			evaluation: testpequin.Orders,
			all: []row{{"12", 171.36666666666667, 11.017894736842105}, {"16", 209.9, 14.333333333333334}, atOrders,
				{"28", 274.03333333333336, 19.571428571428573}, {"32", 272.7666666666667, 23.09090909090909}, {"36", 265.1, 27.714285714285715}},
			fromStats: []row{atOrders},
		},
		"two, with clients that are not correct": {
			evaluation: testpequin.Ranges,
			all: []row{{"14", 166.15, 5.857142857142857}, first, {"24", 300.65, 5.230769230769231}, second,
				{"36", 431.9, 5.6923076923076925}, {"42", 466.35, 6.363636363636363}},
			fromStats: []row{first, second},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := testpequin.Folder(tc.evaluation)
			e, err := ReadFolder(f, "old", now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.all, rows(e)); diff != "" {
				t.Errorf("with the CSV files (-want +got):\n%s", diff)
			}
			delete(f, "lat-tput.csv")
			delete(f, "tput-clients.csv")
			if e, err = ReadFolder(f, "old", now); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.fromStats, rows(e)); diff != "" {
				t.Errorf("from stats.json alone (-want +got):\n%s", diff)
			}
		})
	}
}

// Two points with the same throughput once both got the number of clients of the last one, and so
// became repetitions of one point.
func TestPointsOfEqualThroughput(t *testing.T) {
	const latency, clients = "lat-tput.csv", "tput-clients.csv"
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	e, err := ReadFolder(fstest.MapFS{latency: file("1300,11\n1500,20\n1500,24\n"), clients: file("15,1300\n30,1500\n40,1500\n")}, "old", now)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]row{{"15", 1300, 11}, {"30", 1500, 20}, {"40", 1500, 24}}, rows(e)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// In a saturated system, the next point has the throughput of the stats.json to the last digit.
	f, mean := testpequin.Folder(testpequin.Orders), meanOfOrders(t)
	f[latency], f[clients] = file(fmt.Sprintf("275,55.5\n275,%v\n", mean)), file("45,275\n24,275\n")
	if e, err = ReadFolder(f, "old", now); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]row{{"24", 275, mean}, {"45", 275, 55.5}}, rows(e)); diff != "" {
		t.Errorf("beside a stats.json (-want +got):\n%s", diff)
	}
}

// A stats.json without runs once left a value of the axis without a point. A run without combined
// became a trial that succeeded with 0 tx/s. No message said so.
func TestRunsWithoutNumbersAreLeftOut(t *testing.T) {
	const csv, at = "100,20\n300,10\n", "2023-02-03-04-05-06/stats.json"
	const combined = `"combined":{"ops":3000,"tput":100,"mean":20}`
	none := "left out: " + at + ", which has no run with a throughput and a latency (combined)"
	for name, tc := range map[string]struct {
		runs     string
		want     []row
		trials   int
		wantNote string
	}{
		"whole":                   {`,"runs":[{` + combined + `}]`, []row{{"5", 100, 20}, {"10", 300, 10}}, 2, ""},
		"one run has no combined": {`,"runs":[{` + combined + `},{"attempts":7},{` + combined + `}]`, []row{{"5", 100, 20}, {"10", 300, 10}}, 3, "left out: 1 of the 3 runs of " + at + ", without a throughput and a latency (combined)"},
		"combined is empty":       {`,"runs":[{"combined":{}},{` + combined + `}]`, []row{{"5", 100, 20}, {"10", 300, 10}}, 2, "left out: 1 of the 2 runs of " + at},
		"no latency":              {`,"runs":[{"combined":{"ops":3000,"tput":100}}]`, []row{{"4", 100, 20}, {"10", 300, 10}}, 2, none},
		// The CSV files still have such a point. Its clients are processes.
		"no runs":       {"", []row{{"4", 100, 20}, {"10", 300, 10}}, 2, none},
		"an empty list": {`,"runs":[]`, []row{{"4", 100, 20}, {"10", 300, 10}}, 2, none},
	} {
		t.Run(name, func(t *testing.T) {
			f := fstest.MapFS{
				at:                 {Data: []byte(`{"aggregate":{"combined":{"tput":100,"mean":20,"tput_s_honest":20}},"run_stats":{"combined":{"tput":{"mean":100},"mean":{"mean":20}}}` + tc.runs + `}`)},
				"lat-tput.csv":     {Data: []byte(csv)},
				"tput-clients.csv": {Data: []byte("4,100\n10,300\n")},
			}
			e, err := ReadFolder(f, "old", now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, rows(e)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(e.Points) != len(e.Axes[0].Values) || len(e.Trials) != tc.trials {
				t.Errorf("%d points of %d values of the axis, %d trials; want %d trials and a point of each value", len(e.Points), len(e.Axes[0].Values), len(e.Trials), tc.trials)
			}
			if all := "left out: " + strings.Join(e.LeftOut, "; left out: "); !strings.Contains(all, tc.wantNote) || strings.Contains(all, "(combined)") != (tc.wantNote != "") {
				t.Errorf("%s; want %q", all, tc.wantNote)
			}
		})
	}
}

// meanOfOrders is the mean latency of the stats.json of Orders.
func meanOfOrders(t *testing.T) float64 {
	t.Helper()
	s, err := parsers.ReadPequinStats("stats.json", bytes.NewReader(testpequin.Orders.Points[0].Stats()))
	if err != nil {
		t.Fatal(err)
	}
	return s.Aggregate[parsers.Combined].Mean
}

func TestFolderAsAnExperiment(t *testing.T) {
	// One operation of 2001 latencies, 4 ms to 24 ms in steps of 0.01 ms, in 30 s. An eighth of all
	// attempts aborted: 2001 / 7.
	point := testpequin.Orders.Points[0]
	point.Operations = []testpequin.Operation{{Name: "buy", Count: 2001, First: 4, Step: 0.01}}
	e, err := ReadFolder(testpequin.Folder(testpequin.Evaluation{Points: []testpequin.Point{point}, Others: testpequin.Orders.Others}), "old", now)
	if err != nil {
		t.Fatal(err)
	}
	want := results.TrialLine{Name: "old-2", Number: 2, PointIndex: 2, Coordinates: map[string]string{"clients": "24"}, Outcome: "Succeeded",
		Message: "of 2023-02-03-04-05-06/stats.json", Imported: &results.Imported{Format: "PequinStats", File: "2023-02-03-04-05-06/stats.json"}, Committed: 2001, Aborted: 286, Throughput: 66.7, MeanMillis: 14, P50Millis: 14, P99Millis: 23.8}
	if diff := cmp.Diff(want, e.Trials[2], cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("trial (-want +got):\n%s", diff)
	}
	if got := e.Points[2].Metrics[stats.AbortRate].Mean; got < 0.12505 || got > 0.12506 { // 286 / (2001 + 286)
		t.Errorf("abort rate %v; the run has 0.125", got)
	}
	if _, has := e.Points[0].Metrics[stats.P99Latency]; has {
		t.Error("a point of the CSV file has a 99th percentile")
	}
	if !e.Started.Equal(time.Date(2023, 2, 3, 4, 5, 6, 0, time.UTC)) || len(e.LeftOut) != 3 {
		t.Errorf("started %v, left out %q", e.Started, e.LeftOut)
	}
	b, err := results.EncodeExperiment(e)
	if err != nil {
		t.Fatal(err)
	}
	back, err := results.DecodeExperiment(b)
	if diff := cmp.Diff(e, back); err != nil || diff != "" {
		t.Errorf("error %v, after writing and reading (-want +got):\n%s", err, diff)
	}
}

func TestFolderDamage(t *testing.T) {
	tests := map[string]struct {
		change func(fstest.MapFS)
		want   string
	}{
		"another latency": {func(f fstest.MapFS) {
			f["lat-tput.csv"] = &fstest.MapFile{Data: []byte("275,17.3\r\n")}
			f["tput-clients.csv"] = &fstest.MapFile{Data: []byte("24,275\r\n")}
		}, fmt.Sprintf("lat-tput.csv:1: the mean latency is 17.3 ms, in 2023-02-03-04-05-06/stats.json it is %v ms", meanOfOrders(t))},
		"other points": {func(f fstest.MapFS) {
			f["tput-clients.csv"].Data = bytes.Replace(f["tput-clients.csv"].Data, []byte("209.9"), []byte("209"), 1)
		}, "tput-clients.csv:2: the throughput is 209 tx/s, in lat-tput.csv:2 it is 209.9"},
		"fewer points": {func(f fstest.MapFS) {
			f["tput-clients.csv"] = &fstest.MapFile{Data: []byte("12,171.36666666666667\n")}
		}, "tput-clients.csv has 1 lines and lat-tput.csv 6; they are to be about the same points"},
		"a cut CSV":     {func(f fstest.MapFS) { f["lat-tput.csv"] = &fstest.MapFile{Data: []byte("1,2\n1784.2,1")} }, "lat-tput.csv:2: the last line"},
		"NaN":           {func(f fstest.MapFS) { f["lat-tput.csv"] = &fstest.MapFile{Data: []byte("NaN,2\n")} }, "lat-tput.csv:1: x: "},
		"three columns": {func(f fstest.MapFS) { f["lat-tput.csv"] = &fstest.MapFile{Data: []byte("1,2\n1,2,3\n")} }, "1 lines are not two numbers"},
		"no clients":    {func(f fstest.MapFS) { delete(f, "tput-clients.csv") }, "lat-tput.csv: the number of clients of the point with 171.36"},
		"a cut stats.json": {func(f fstest.MapFS) {
			f["2023-02-03-04-05-06/stats.json"].Data = f["2023-02-03-04-05-06/stats.json"].Data[:100_000]
		}, "2023-02-03-04-05-06/stats.json:"},
		"two evaluations": {func(f fstest.MapFS) {
			f["a/lat-tput.csv"], f["b/lat-tput.csv"] = f["lat-tput.csv"], f["lat-tput.csv"]
			delete(f, "lat-tput.csv")
		}, "a/lat-tput.csv and b/lat-tput.csv are of two evaluations"},
		"runs without numbers": {func(f fstest.MapFS) {
			clear(f)
			f["stats.json"] = &fstest.MapFile{Data: []byte(`{"aggregate":{"combined":{"tput":100,"tput_s_honest":20}},"run_stats":{"combined":{}},"runs":[{"attempts":7}]}`)}
		}, "no point of an evaluation"},
		"another folder": {func(f fstest.MapFS) { clear(f) }, "no folder of results"},
		"of a process only": {func(f fstest.MapFS) {
			clear(f)
			f["stats.json"] = &fstest.MapFile{Data: []byte(`{"rw_committed": 7}`)}
		}, "no point of an evaluation"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := testpequin.Folder(testpequin.Orders)
			tc.change(f)
			_, err := ReadFolder(f, "old", now)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
}
