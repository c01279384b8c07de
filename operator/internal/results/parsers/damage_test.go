package parsers

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// Some formats need these to be read at all.
var damageSpecs = map[string]Spec{
	FormatRegularExpression: {Pattern: `^(?P<a>\w+) (?P<b>.*)$`, Fields: []Field{{From: "a", Label: true}, {From: "b"}}},
	FormatCSV:               {Fields: []Field{{From: "a", Label: true}, {From: "b"}}},
	FormatJSONPath:          {Rows: "$[*]", Fields: []Field{{From: "$.a", Label: true}, {From: "$.b"}}},
}

const (
	damagedHATS  = "# Exp#1 #\nScheme  Workload  Throughput(ops/s)\n-----\n"
	damagedStats = `{"aggregate": {"combined": {"mean": 1}}, "run_stats": {"combined": {}}, "runs": [` + "\n"
)

// damaged are files that were cut off, edited or mixed up, by format and what is wrong with them.
var damaged = map[string]struct{ format, in, want string }{
	"YCSB cut in a number":      {FormatYCSB, strings.TrimSuffix(ycsbSample, "\n"), "file:14: the last line"},
	"YCSB cut before its start": {FormatYCSB, "Command line: x\n", "file:1: the file ends without"},
	"YCSB NaN":                  {FormatYCSB, "[OVERALL], Throughput(ops/sec), 1\n[READ], AverageLatency(us), NaN\n", `file:2: "[READ], AverageLatency(us), NaN"`},
	"YCSB negative":             {FormatYCSB, "[OVERALL], Throughput(ops/sec), -1\n", "file:1: "},
	"YCSB columns: one missing": {FormatYCSB, "[OVERALL], Throughput(ops/sec)\n", "file:1: "},
	"YCSB two reports":          {FormatYCSB, ycsbSample + ycsbSample, "file:17: [OVERALL] has RunTime twice"},

	"Eiger cut":            {FormatEigerGraph, eigerSample + "4 2", "file:2: the last line"},
	"Eiger columns":        {FormatEigerGraph, eigerSample + "4 2 3\n", "file:2: there are 3 columns; combined.graph has 11"},
	"Eiger NaN":            {FormatEigerGraph, strings.Replace(eigerSample, "1.25", "nan", 1), "file:1: column 11"},
	"Eiger negative":       {FormatEigerGraph, strings.Replace(eigerSample, "30000", "-30000", 1), "file:1: column 2: -30000 is negative"},
	"Eiger ratio":          {FormatEigerGraph, strings.Replace(eigerSample, "1.25", "2", 1), "30000 / 24000 is 1.250"},
	"Eiger other threads":  {FormatEigerGraph, strings.Replace(eigerSample, "8\t24000", "9\t24000", 1), "Eiger with 9"},
	"Eiger divide by zero": {FormatEigerGraph, "4 0 0 0 0 4 0 0 0 0 0\n", "file:1: the ratio"},
	"Eiger empty":          {FormatEigerGraph, "", "file:0: the file has no line"},

	"HATS cut in a row":          {FormatHATSTable, damagedHATS + "hats  a  1", "file:4: the last line"},
	"HATS cut in a table":        {FormatHATSTable, damagedHATS, "file:3: the file has no table"},
	"HATS second header":         {FormatHATSTable, damagedHATS + "hats a 1\n\n" + damagedHATS, "file:8: the file ends after the header"},
	"HATS columns: one missing":  {FormatHATSTable, damagedHATS + "hats  a\n", "file:4: the line has 2 columns, its header 3"},
	"HATS columns: one too many": {FormatHATSTable, damagedHATS + "hats a 1 2\n", "file:4: "},
	"HATS NaN":                   {FormatHATSTable, damagedHATS + "hats a NaN\n", "file:4: column Throughput(ops/s)"},
	"HATS negative":              {FormatHATSTable, damagedHATS + "hats a -41\n", "file:4: column Throughput(ops/s): -41 is negative"},

	"DMTree cut":      {FormatDMTreeTable, "Index,Workload,Total,Node1\na,b,1,1", "file:2: the last line"},
	"DMTree no rows":  {FormatDMTreeTable, "Index,Workload,Total,Node1\n", "file:1: the file ends without"},
	"DMTree header":   {FormatDMTreeTable, "index,load\n", "file:1: the header"},
	"DMTree columns":  {FormatDMTreeTable, "Index,Workload,Total,Node1\na,b,1\n", "file:2: the line has 3 columns, the header 4"},
	"DMTree NaN":      {FormatDMTreeTable, "Index,Workload,Total,Node1\na,b,NaN,NaN\n", "file:2: column Total"},
	"DMTree negative": {FormatDMTreeTable, "Index,Workload,Total,Node1\na,b,-1,-1\n", "file:2: column Total: -1 is negative"},
	"DMTree sum":      {FormatDMTreeTable, "Index,Workload,Total,Node1,Node2\na,b,3,1,1\n", "file:2: the total is 3, the sum of the nodes 2"},

	"ELECT cut":       {FormatELECTSummary, "[Exp info] a: b\nThroughput (unit: op/s): \n", "file:2: the file ends after"},
	"ELECT no number": {FormatELECTSummary, "[Exp info] a: b\n", "file:1: what line 1 announces"},
	"ELECT NaN":       {FormatELECTSummary, "[Exp info] a: b\nT (unit: s): NaN\n", "file:2: T: \"NaN\""},
	"ELECT negative":  {FormatELECTSummary, "[Exp info] a: b\nT (unit: s):\nAverage: 1, Min: -1, Max: 2\n", "file:3: T min: -1 is negative"},
	"ELECT columns: another line than statistics": {FormatELECTSummary, "[Exp info] a: b\nT (unit: s):\nFive rounds: 1\n", "file:3: "},

	"regexp columns: no line has them": {FormatRegularExpression, "x\n", "file:1: no line matches"},
	"regexp NaN":                       {FormatRegularExpression, "a 1\nb NaN\n", "file:2: b: "},
	"regexp hex":                       {FormatRegularExpression, "a 0x1p-2\n", "file:1: b: "},
	"regexp negative":                  {FormatRegularExpression, "a -1\n", "file:1: b: -1 is negative"},
	"regexp cut":                       {FormatRegularExpression, "a 1\na 12", "file:2: the last line"},
	"csv columns":                      {FormatCSV, "a,b\n1\n", "file:2: the line has 1 columns, the header 2"},
	"csv header":                       {FormatCSV, "a,c\n1,2\n", `file:1: the header has no column "b"; it has a, c`},
	"csv quote":                        {FormatCSV, "a,b\n\"1,2\n", "file:2: column "},
	"csv negative":                     {FormatCSV, "a,b\nx,-1\n", "file:2: b: -1 is negative"},
	"csv NaN":                          {FormatCSV, "a,b\nx,nan\n", "file:2: b: "},
	"csv empty number":                 {FormatCSV, "a,b\nx,\n", "file:2: b: "},
	"csv cut":                          {FormatCSV, "a,b\nx,1\nx,1", "file:3: the last line"},
	"json cut":                         {FormatJSONPath, "[\n{\"a\": 1", "file:2: the document is cut off"},
	"json NaN":                         {FormatJSONPath, "[\n{\"a\": NaN}]", "file:2: "},
	"json two":                         {FormatJSONPath, "[]\n[]", "file:2: there is more"},
	"json negative":                    {FormatJSONPath, `[{"a": "x", "b": -1}]`, "file: node 0 of $[*]: $.b: -1 is negative"},
	"json columns: a field missing":    {FormatJSONPath, `[{"a": "x"}]`, "$.b selects 0 nodes; it must be one"},
	"json nothing":                     {FormatJSONPath, `[]`, "file: $[*] selects nothing"},

	"stats cut":                   {FormatPequinStats, damagedStats + "\n{", "file:3: the document is cut off"},
	"stats cut in a string":       {FormatPequinStats, damagedStats + "{\"a", "file:2: the document is cut off"},
	"stats empty":                 {FormatPequinStats, "", "file:1: the document is cut off"},
	"stats NaN":                   {FormatPequinStats, "{\"aggregate\":\n{\"combined\": {\"mean\": NaN}}}", "file:2: "},
	"stats negative":              {FormatPequinStats, "{\n\"aggregate\": {\"combined\": {\"mean\": -1}}}", "file:2: mean: -1 is negative"},
	"stats text":                  {FormatPequinStats, "{\"aggregate\": {\n\"combined\": {\"mean\": \"1\"}}}", "file:2: mean is not a number"},
	"stats huge":                  {FormatPequinStats, "{\"aggregate\": {\"combined\": {\"mean\": 1e999}}}", "file:1: mean: "},
	"stats columns: half a point": {FormatPequinStats, "{\"aggregate\": {\"combined\": {\"cdf\": [[1]]}}}", "file:1: a point of a distribution"},
	"stats list":                  {FormatPequinStats, "[]", "file:1: the document is not an object"},
	"stats of a client":           {FormatPequinStats, `{"rw_committed": 1}`, "it is no stats.json of an experiment"},
	"stats trailing":              {FormatPequinStats, damagedStats + "]}\n{}", "file:3: there is more"},
	"stats runs":                  {FormatPequinStats, `{"runs": {}}`, "runs is not what it is"},

	"client NaN":       {FormatPequinClient, "rw,1,2,0\nrw,1,NaN,0\n", `file:2: "rw,1,NaN,0"`},
	"client negative":  {FormatPequinClient, "rw,1,-2,0\n", "file:1: "},
	"client columns":   {FormatPequinClient, "rw,1,2\n", "a transaction has four fields"},
	"client end":       {FormatPequinClient, "#end,1,2\n", "file:1: \"#end,1,2\": it is not #end,sec,usec,id"},
	"client start":     {FormatPequinClient, "#start,1,2000000\n", "2000000 us are more than a second"},
	"client two mixed": {FormatPequinClient, "rw,1,rw,1,2,0\n", "file:1: "},
}

func TestDamageIsRefusedWithFileAndLine(t *testing.T) {
	for name, tc := range damaged {
		t.Run(name, func(t *testing.T) {
			_, err := ReadTable(tc.format, "file", strings.NewReader(tc.in), damageSpecs[tc.format])
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
}

// TestEveryFormatIsDamaged: each format has each kind of damage; the test notices a new format
// without damage. TestOneEndlessLine has a further kind of damage.
func TestEveryFormatIsDamaged(t *testing.T) {
	taken := map[string]bool{FormatPequinClient + " cut": true} // a killed client leaves such a line; the parser counts it
	for name, tc := range damaged {
		for _, kind := range []string{"cut", "NaN", "negative", "columns"} {
			if strings.Contains(name, " "+kind) {
				taken[tc.format+" "+kind] = true
			}
		}
	}
	for _, f := range Formats() {
		for _, kind := range []string{"cut", "NaN", "negative", "columns"} {
			if f.table != nil && !taken[f.Name+" "+kind] {
				t.Errorf("%s: no file with the damage %q", f.Name, kind)
			}
		}
	}
}

func TestSpecsAreChecked(t *testing.T) {
	tests := map[string]struct {
		format string
		spec   Spec
		want   string
	}{
		"no fields":   {FormatCSV, Spec{}, "from 1 to 64 fields"},
		"twice":       {FormatCSV, Spec{Fields: []Field{{From: "a"}, {Name: "a", From: "b"}}}, `field "a" is there twice`},
		"no source":   {FormatCSV, Spec{Fields: []Field{{Name: "a"}}}, `field "a" does not say where`},
		"bad pattern": {FormatRegularExpression, Spec{Pattern: "(", Fields: []Field{{From: "a"}}}, "the pattern"},
		"no group":    {FormatRegularExpression, Spec{Pattern: "x", Fields: []Field{{From: "a"}}}, "no group (?P<a>...)"},
		"bad path":    {FormatJSONPath, Spec{Fields: []Field{{From: "a["}}}, "the path of field a["},
		"bad rows":    {FormatJSONPath, Spec{Rows: "x", Fields: []Field{{From: "$.a"}}}, "the path of the rows"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ReadTable(tc.format, "file", strings.NewReader("a\n1\n"), tc.spec)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
}

// TestOneEndlessLine gives every format 1 GB without a newline, made as it is read: it must be
// refused long before the end.
func TestOneEndlessLine(t *testing.T) {
	const gigabyte = 1 << 30
	starts := map[string]string{FormatPequinStats: `{"aggregate": "`, FormatJSONPath: `["`}
	for _, f := range Formats() {
		if f.table == nil {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			in := &io.LimitedReader{R: &repeat{line: "1234567,"}, N: gigabyte}
			_, err := f.table("file", io.MultiReader(strings.NewReader(starts[f.Name]), in), damageSpecs[f.Name])
			if err == nil || !strings.Contains(err.Error(), "file:1: ") {
				t.Errorf("error = %v, want one with file and line", err)
			}
			if read := gigabyte - in.N; read > 32<<20 {
				t.Errorf("%d bytes were read before the line was refused", read)
			}
		})
	}
}

func TestReadErrorsOfTables(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, f := range Formats() {
		if f.table == nil {
			continue
		}
		if _, err := f.table("file", errReader{broken}, damageSpecs[f.Name]); !errors.Is(err, broken) {
			t.Errorf("%s: error = %v, want %v", f.Name, err, broken)
		}
	}
}
