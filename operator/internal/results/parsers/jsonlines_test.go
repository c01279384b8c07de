package parsers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/results"
)

// jsonSample is like the output of a load generator that streams its samples: other metrics and
// other output lie between the operations. The window is [0 s, 2 s) from 1795161600 s.
const jsonSample = `starting 2 clients
{"type":"Metric","metric":"request","data":{"name":"request","type":"trend","thresholds":[]}}
{"metric":"request","type":"Point","data":{"time":"2026-11-20T08:00:00.25Z","value":1.5,"tags":{"status":"200","method":"GET"}}}
{"metric":"checks","type":"Point","data":{"time":"2026-11-20T08:00:00.25Z","value":1,"tags":null}}
{"data":{"value":12.25e0,"tags":{"method":"PUT","status":"409"},"time":"2026-11-20T09:00:01.000000001+01:00"},"metric":"request","type":"Point"}
{"metric":"request","type":"Point","data":{"time":"2026-11-20T08:00:01.5Z","value":3,"tags":{"status":"503","method":"GET"}}}
{"metric":"request","type":"Point","data":{"time":"2026-11-20T08:00:02.5Z","value":3,"tags":{"status":"200","method":"GET"}}}
`

var jsonRecords = results.Records{
	Where:   map[string]string{"$.metric": "request", "$.type": "Point"},
	Latency: results.RecordLatency{From: "$.data.value", Unit: "ms"},
	Instant: results.RecordInstant{From: "$.data.time", Layout: results.LayoutRFC3339, Clock: results.ClockWall, Of: results.OfEnd},
	Outcome: &results.RecordOutcome{From: "$.data.tags.status", Committed: []string{"200"}, Aborted: []string{"409"}},

	Operation: "$.data.tags.method",
}

func TestJSONLines(t *testing.T) {
	c, err := Parse(FormatJSONLines, strings.NewReader(jsonSample), withRecords(jsonRecords))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(results.Counters{Committed: 1, Aborted: 1, Errors: 1, Offered: 1}, c.Counters); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
	want := map[string]int64{"otherLines": 3, "unlistedOutcome:503": 1, "operation:GET": 1, "operationMicros:GET": 1500}
	if diff := cmp.Diff(want, c.Driver); diff != "" {
		t.Errorf("driver counters (-want +got):\n%s", diff)
	}
}

func TestJSONLinesAreChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		records func(*results.Records)
		output  string
		want    string
	}{
		"cut within a line": {nil, `{"metric":"request","type":"Point","data":{"time":` + "\n{}\n", `the client's output:1: "{\"metric\"`},
		"a part of what is read": {func(r *results.Records) { r.Where = nil }, `{"data":{"value":1,"time":"2026-11-20T08:00:01Z"}}` + "\n",
			"the object has no $.data.tags.method; choose the lines that are operations by where"},
		"two objects in a line": {nil, "{} {}\n", "there is more after the object"},
		"a text for a latency":  {nil, `{"metric":"request","type":"Point","data":{"time":"2026-11-20T08:00:01Z","value":"soon","tags":{"status":"200","method":"GET"}}}` + "\n", "latency: "},
		"no path":               {func(r *results.Records) { r.Latency.From = "value" }, "", `"value" must be a path of names`},
		"where of what is read": {func(r *results.Records) { r.Where = map[string]string{"$.data.value": "1"} }, "", "it would always be the same"},
	} {
		t.Run(name, func(t *testing.T) {
			r := jsonRecords
			if tc.records != nil {
				tc.records(&r)
			}
			_, err := Parse(FormatJSONLines, strings.NewReader(tc.output), withRecords(r))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %s", err, tc.want)
			}
		})
	}
}

// Lines of other shapes are other output, whatever they hold.
func TestJSONLinesAmongOthers(t *testing.T) {
	for _, line := range []string{"", "[1,2]", "null", `"metric"`, "{}", `{"metric":"other"}`, `{"metric":{"a":1}}`, `{"metric":["request"],"type":"Point"}`, `{"data":{"deep":{"x":[{"y":1}]}}}`} {
		c, err := Parse(FormatJSONLines, strings.NewReader(line+"\n"), withRecords(jsonRecords))
		if err != nil || c.Counters.Committed != 0 {
			t.Errorf("%q: %d committed, %v", line, c.Counters.Committed, err)
		}
	}
}
