package parsers

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
)

// fuzzTable checks what must hold of any input: no panic, no value that is not a number, an error
// that names the file, no more rows than lines or nodes.
func fuzzTable(f *testing.F, format string, spec Spec, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
		f.Add(s[:len(s)/2])
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, err := ReadTable(format, "file", strings.NewReader(in), spec)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "file:") {
				t.Errorf("error %q does not begin with the file", err)
			}
			return
		}
		for _, r := range got.Rows {
			for _, v := range r.Values {
				if math.IsNaN(v.Number) || math.IsInf(v.Number, 0) {
					t.Errorf("%v: %s is %v", r.Labels, v.Name, v.Number)
				}
			}
		}
		if len(got.Rows) > 3*(len(in)+1) {
			t.Errorf("%d rows of %d bytes", len(got.Rows), len(in))
		}
	})
}

func FuzzYCSB(f *testing.F)       { fuzzTable(f, FormatYCSB, Spec{}, ycsbSample) }
func FuzzEigerGraph(f *testing.F) { fuzzTable(f, FormatEigerGraph, Spec{}, eigerSample) }
func FuzzHATSTable(f *testing.F) {
	fuzzTable(f, FormatHATSTable, Spec{}, hatsManyTables, hatsOneBlank)
}
func FuzzDMTreeTable(f *testing.F)  { fuzzTable(f, FormatDMTreeTable, Spec{}, dmtreeSample) }
func FuzzELECTSummary(f *testing.F) { fuzzTable(f, FormatELECTSummary, Spec{}, electSample) }
func FuzzPequinClient(f *testing.F) {
	fuzzTable(f, FormatPequinClient, Spec{}, printed, "#start,1,2\nrw,1,2,3\n#end,1,2,3\n")
}

func FuzzPequinStats(f *testing.F) {
	fuzzTable(f, FormatPequinStats, Spec{},
		`{"aggregate": {"combined": {"mean": 1.5, "cdf": [[1, 2], [2, 3]], "ops": 3}}, "run_stats": {"combined": {"tput": {"mean": 7}}}, "runs": [{"combined": {}, "attempts": 3, "txn_groups": [0]}]}`)
}

func FuzzRegularExpression(f *testing.F) {
	fuzzTable(f, FormatRegularExpression, damageSpecs[FormatRegularExpression], "a 1\nb 2.5e3\n")
}
func FuzzCSV(f *testing.F) {
	fuzzTable(f, FormatCSV, damageSpecs[FormatCSV], "a,b\nx,1\n\"y\",\"2\"\n")
}
func FuzzJSONPath(f *testing.F) {
	fuzzTable(f, FormatJSONPath, damageSpecs[FormatJSONPath], `[{"a": "x", "b": 1}, {"a": true, "b": "2"}]`)
}

func FuzzSummary(f *testing.F) {
	f.Add("committed 12\nseconds 3.5\np99 4\n")
	f.Add("committed 9e15\ncommitted 9e15\nseconds 1e-300\n")
	o := Options{Clients: 1, Windows: timeline.Windows{Measure: time.Second}, Summary: []results.SummaryNumber{
		{Name: results.NumberCommitted, Pattern: "^committed (?P<value>.*)$", Of: "Sum"},
		{Name: results.NumberRunTime, Pattern: "^seconds (?P<value>.*)$", Unit: "s"},
		{Name: results.NumberAborted, Pattern: "^aborted (?P<value>.*)$"},
		{Name: results.NumberP99, Pattern: "^p99 (?P<value>.*)$", Unit: "us"},
	}}
	f.Fuzz(func(t *testing.T, in string) {
		c, err := Parse(FormatSummary, strings.NewReader(in), o)
		if err != nil {
			return
		}
		mustBeSound(t, c)
	})
}

func FuzzRows(f *testing.F) {
	f.Add(`{"table": "a\tops\n1\t2\n", "events": [{"kind": "session", "machine": "m1", "beginUnixNanos": 5, "endUnixNanos": 9, "exitCode": 0}]}`)
	f.Add(`{"missing": "there is none", "events": null}`)
	f.Fuzz(func(t *testing.T, in string) {
		c, err := Parse(FormatRows, strings.NewReader(in), Options{Clients: 1, Windows: timeline.Windows{Measure: time.Second}, ZeroUnixNanos: 3})
		if err != nil {
			return
		}
		if _, err := results.EncodeClient(c); err != nil {
			t.Errorf("what was read cannot be sent: %v", err)
		}
	})
}

// TestEveryFormatIsFuzzed: the test notices a new format without a fuzz function.
func TestEveryFormatIsFuzzed(t *testing.T) {
	names, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(b)
	}
	for _, format := range Formats() {
		if format.Name != FormatAssay && !strings.Contains(tests.String(), "func Fuzz"+format.Name+"(f *testing.F)") {
			t.Errorf("%s has no fuzz function", format.Name)
		}
	}
}
