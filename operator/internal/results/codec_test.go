package results

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/model/timeline"
)

func TestClientRoundTrip(t *testing.T) {
	c := report(t, 3, timeline.Windows{WarmUp: time.Second, Measure: time.Second}, 100, 5*time.Millisecond)
	c.Driver = map[string]int64{"fastPathCommits": 12}
	b, err := EncodeClient(c)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeClient(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, got); diff != "" {
		t.Errorf("round trip (-want +got):\n%s", diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	client := func(in []byte) error { _, err := DecodeClient(in); return err }
	trial := func(in []byte) error { _, err := DecodeTrial(in); return err }
	experiment := func(in []byte) error { _, err := DecodeExperiment(in); return err }
	tests := map[string]struct {
		decode   func([]byte) error
		in, want string
	}{
		"no JSON":              {client, "rw,1,2,3", "invalid character"},
		"no format":            {client, "{}", `the format is ""`},
		"another kind":         {client, `{"format":"assay.dev/trial-result/v1"}`, `this version reads "assay.dev/client-result/v1"`},
		"a later version":      {trial, `{"format":"assay.dev/trial-result/v2","name":7}`, `this version reads "assay.dev/trial-result/v1"`},
		"a later experiment":   {experiment, `{"format":"assay.dev/experiment-result/v2"}`, "experiment-result/v1"},
		"a wrong type":         {client, `{"format":"assay.dev/client-result/v1","clients":"many"}`, "cannot unmarshal"},
		"no clients":           {client, `{"format":"assay.dev/client-result/v1","measureNanos":1}`, "clients 1 or more"},
		"too many misbehave":   {client, `{"format":"assay.dev/client-result/v1","clients":2,"measureNanos":1,"misbehavingClients":3}`, "misbehavingClients is 3"},
		"no window":            {client, `{"format":"assay.dev/client-result/v1","clients":1}`, "measureNanos is 0"},
		"timeline far away":    {client, `{"format":"assay.dev/client-result/v1","clients":1,"measureNanos":1,"timeline":{"intervalMillis":100,"firstMillis":-9000000000000000000,"committed":[1],"aborted":[1],"failed":[1],"latencySumMicros":[1]}}`, "timeline starts at"},
		"negative bin":         {client, `{"format":"assay.dev/client-result/v1","clients":1,"measureNanos":1,"timeline":{"intervalMillis":100,"committed":[-1],"aborted":[1],"failed":[1],"latencySumMicros":[1]}}`, "negative"},
		"trial, timeline lies": {trial, `{"format":"assay.dev/trial-result/v1","timeline":{"committed":[1]}}`, "same number"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := tc.decode([]byte(tc.in)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestEncodeClientRefusesWhatNoReaderCouldRead(t *testing.T) {
	if _, err := EncodeClient(Client{Clients: 1, MeasureNanos: 1, Failure: strings.Repeat("x", MaxFailureText+1)}); err == nil {
		t.Error("a failure text that is too long is encoded")
	}
}

func TestFitTrial(t *testing.T) {
	bins := NewTimeline(0, 1000)
	whole := Trial{
		Name: "t", Summary: Summary{Throughput: 12}, Latency: strings.Repeat("H", 3000), Timeline: &bins,
		Logs: map[string]string{"pod/container": strings.Repeat("l", 20_000)}, LeftOut: []string{"something before"},
	}
	size := func(change func(*Trial)) int {
		trial := whole
		change(&trial)
		b, err := EncodeTrial(trial)
		if err != nil {
			t.Fatal(err)
		}
		return len(b) + 40 // room for the names in leftOut
	}
	tests := map[string]struct {
		limit int
		want  []string // left out
	}{
		"all fits":         {1 << 20, []string{"something before"}},
		"without logs":     {size(func(x *Trial) { x.Logs = nil }), []string{"something before", "logs"}},
		"without timeline": {size(func(x *Trial) { x.Logs, x.Timeline = nil, nil }), []string{"something before", "logs", "timeline"}},
		"without latency":  {size(func(x *Trial) { x.Logs, x.Timeline, x.Latency = nil, nil, "" }), []string{"something before", "logs", "timeline", "latency"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b, err := FitTrial(whole, tc.limit)
			if err != nil {
				t.Fatal(err)
			}
			got, err := DecodeTrial(b)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.LeftOut); diff != "" {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
			if len(b) > tc.limit || got.Summary.Throughput != 12 {
				t.Errorf("%d bytes for a limit of %d, throughput %v", len(b), tc.limit, got.Summary.Throughput)
			}
			if (got.Timeline == nil) != (len(tc.want) >= 3) || (got.Latency == "") != (len(tc.want) >= 4) {
				t.Errorf("leftOut says %v; timeline there: %v, latency there: %v", got.LeftOut, got.Timeline != nil, got.Latency != "")
			}
		})
	}
	if _, err := FitTrial(whole, 100); err == nil || !strings.Contains(err.Error(), "100 are allowed") {
		t.Errorf("FitTrial in 100 bytes: error = %v", err)
	}
	if diff := cmp.Diff([]string{"something before"}, whole.LeftOut); diff != "" || whole.Timeline == nil {
		t.Errorf("FitTrial changed its argument:\n%s", diff)
	}
}

func TestWriteTimelineCSV(t *testing.T) {
	tl := NewTimeline(-100, 2)
	tl.Committed[1], tl.Aborted[1], tl.Failed[0], tl.LatencySumMicros[1] = 30, 20, 10, 45000
	var b bytes.Buffer
	if err := WriteTimelineCSV(&b, tl); err != nil {
		t.Fatal(err)
	}
	want := "startMillis,committed,aborted,failed,throughput,meanMillis\n-100,0,0,10,0,\n0,30,20,0,300,1.500\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzDecodeClient(f *testing.F) {
	r := NewRecorder(timeline.Windows{Measure: time.Second})
	r.Commit(0, time.Millisecond)
	c := Client{Clients: 1, MeasureNanos: int64(time.Second)}
	if err := r.Fill(&c); err != nil {
		f.Fatal(err)
	}
	b, err := EncodeClient(c)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := DecodeClient(b)
		if err != nil {
			return
		}
		again, err := EncodeClient(c)
		if err != nil {
			t.Fatalf("encode what was decoded: %v", err)
		}
		back, err := DecodeClient(again)
		if err != nil {
			t.Fatalf("decode what was encoded: %v", err)
		}
		first, _ := json.Marshal(c)
		second, _ := json.Marshal(back)
		if !bytes.Equal(first, second) {
			t.Errorf("%s became %s", first, second)
		}
		m, err := Merge([]Client{c})
		if err == nil && m.Summary.Committed != c.Counters.Committed {
			t.Errorf("merged alone, %d committed became %d", c.Counters.Committed, m.Summary.Committed)
		}
	})
}
