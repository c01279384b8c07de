package pequin

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/stats"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// folder returns a folder of results of testdata with its stats.json unpacked.
func folder(t *testing.T, name string) fstest.MapFS {
	t.Helper()
	root := filepath.Join("testdata", name)
	out := fstest.MapFS{}
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		if name, packed := strings.CutSuffix(rel, ".gz"); packed {
			z, err := gzip.NewReader(strings.NewReader(string(b)))
			if err != nil {
				return err
			}
			if b, err = io.ReadAll(z); err != nil {
				return err
			}
			rel = name
		}
		out[filepath.ToSlash(rel)] = &fstest.MapFile{Data: b}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// row is what the artifact's CSV files say of a point.
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

// TestArtifactsOwnNumbers: the numbers are those of the artifact's lat-tput.csv and
// tput-clients.csv, to all digits that are printed there, also where they come from stats.json:
// without the CSV files they are the same.
func TestArtifactsOwnNumbers(t *testing.T) {
	tests := map[string]struct{ all, fromStats []row }{
		"TPCC": {
			all: []row{{"15", 1310.5666666666666, 11.771777716204186}, {"20", 1605.4666666666667, 12.820031009841376}, {"30", 1784.2666666666667, 17.311395202193243},
				{"35", 1768.2333333333333, 20.395508472317}, {"40", 1741.6666666666667, 23.673802742870816}, {"45", 1705.1666666666667, 27.221747489434073}},
			fromStats: []row{{"30", 1784.2666666666667, 17.311395202193243}},
		},
		"Uniform-Failure-2": {
			all: []row{{"12", 1308.1333333333334, 9.45160767411579}, {"16", 1866.8333333333333, 8.829114255316489}, {"20", 2435.266666666667, 8.458979149278655},
				{"25", 3138.866666666667, 8.203125417560479}, {"30", 3800.766666666667, 8.129580194311675}, {"35", 4351.133333333333, 8.285170670438353},
				{"40", 4871.266666666666, 8.457651446482094}, {"45", 5245.966666666666, 8.836086401209819}},
			fromStats: []row{{"12", 1308.1333333333334, 9.45160767411579}, {"20", 2435.266666666667, 8.458979149278655}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := folder(t, name)
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

// Two points with the same throughput were given one and the same number of clients, that of the
// last of them, and so became repetitions of one point.
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
	// A saturated system: the point beside that of a stats.json has its throughput to the last
	// digit.
	f := folder(t, "TPCC")
	f[latency], f[clients] = file("1784.2666666666667,25.5\n1784.2666666666667,17.311395202193243\n"), file("45,1784.2666666666667\n30,1784.2666666666667\n")
	if e, err = ReadFolder(f, "old", now); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]row{{"30", 1784.2666666666667, 17.311395202193243}, {"45", 1784.2666666666667, 25.5}}, rows(e)); diff != "" {
		t.Errorf("beside a stats.json (-want +got):\n%s", diff)
	}
}

// A stats.json without runs left a value of the axis without a point, and a run without combined
// became a trial that succeeded with 0 tx/s; neither was said.
func TestRunsWithoutNumbersAreLeftOut(t *testing.T) {
	const csv, at = "100,20\n300,10\n", "2024-10-21-17-04-33/stats.json"
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
		// Such a point is still one of the CSV files, whose clients are processes.
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

func TestFolderAsAnExperiment(t *testing.T) {
	e, err := ReadFolder(folder(t, "TPCC"), "old", now)
	if err != nil {
		t.Fatal(err)
	}
	want := results.TrialLine{Name: "old-2", Number: 2, PointIndex: 2, Coordinates: map[string]string{"clients": "30"}, Outcome: "Succeeded",
		Message: "of 2024-10-21-17-04-33/stats.json", Committed: 53528, Aborted: 10479, Throughput: 1784.2666666666667,
		MeanMillis: 17.311395202193243, P50Millis: 15.320336000000001, P99Millis: 51.95845363999987}
	if diff := cmp.Diff(want, e.Trials[2]); diff != "" {
		t.Errorf("trial (-want +got):\n%s", diff)
	}
	if got := e.Points[2].Metrics[stats.AbortRate].Mean; got < 0.1637 || got > 0.1638 {
		t.Errorf("abort rate %v; the artifact has 0.16371", got)
	}
	if _, has := e.Points[0].Metrics[stats.P99Latency]; has {
		t.Error("a point of the CSV file has a 99th percentile")
	}
	if !e.Started.Equal(time.Date(2024, 10, 21, 17, 4, 33, 0, time.UTC)) || len(e.LeftOut) != 3 {
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
			f["lat-tput.csv"] = &fstest.MapFile{Data: []byte("1784.2666666666667,17.3\r\n")}
			f["tput-clients.csv"] = &fstest.MapFile{Data: []byte("30,1784.2666666666667\r\n")}
		}, "lat-tput.csv:1: the mean latency is 17.3 ms, in 2024-10-21-17-04-33/stats.json it is 17.311395202193243 ms"},
		"other points": {func(f fstest.MapFS) {
			f["tput-clients.csv"].Data = bytes.Replace(f["tput-clients.csv"].Data, []byte("1605.4666666666667"), []byte("1605"), 1)
		}, "tput-clients.csv:2: the throughput is 1605 tx/s, in lat-tput.csv:2 it is 1605.4666666666667"},
		"fewer points": {func(f fstest.MapFS) {
			f["tput-clients.csv"] = &fstest.MapFile{Data: []byte("15,1310.5666666666666\n")}
		}, "tput-clients.csv has 1 lines and lat-tput.csv 6; they are to be about the same points"},
		"a cut CSV":     {func(f fstest.MapFS) { f["lat-tput.csv"] = &fstest.MapFile{Data: []byte("1,2\n1784.2,1")} }, "lat-tput.csv:2: the last line"},
		"NaN":           {func(f fstest.MapFS) { f["lat-tput.csv"] = &fstest.MapFile{Data: []byte("NaN,2\n")} }, "lat-tput.csv:1: x: "},
		"three columns": {func(f fstest.MapFS) { f["lat-tput.csv"] = &fstest.MapFile{Data: []byte("1,2\n1,2,3\n")} }, "1 lines are not two numbers"},
		"no clients":    {func(f fstest.MapFS) { delete(f, "tput-clients.csv") }, "lat-tput.csv: the number of clients of the point with 1310.56"},
		"a cut stats.json": {func(f fstest.MapFS) {
			f["2024-10-21-17-04-33/stats.json"].Data = f["2024-10-21-17-04-33/stats.json"].Data[:100_000]
		}, "2024-10-21-17-04-33/stats.json:"},
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
			f := folder(t, "TPCC")
			tc.change(f)
			_, err := ReadFolder(f, "old", now)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
}
