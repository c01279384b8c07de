package parsers

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
)

// piece is output that a launcher read at once.
type piece struct {
	text string
	at   time.Duration // relative to t = 0
}

const arrivalZero = int64(time.Hour)

// byArrival reads pieces of output whose lines say a latency in ms.
func byArrival(pieces []piece) (results.Client, error) {
	var output strings.Builder
	var kept bytes.Buffer
	for _, p := range pieces {
		output.WriteString(p.text)
		record := binary.LittleEndian.AppendUint64(nil, uint64(output.Len()))
		kept.Write(binary.LittleEndian.AppendUint64(record, uint64(arrivalZero+int64(p.at))))
	}
	return Parse(FormatRegularExpression, strings.NewReader(output.String()), Options{
		ZeroMonotonicNanos: arrivalZero, Windows: timeline.Windows{WarmUp: time.Second, Measure: 10 * time.Second}, Clients: 1,
		Records: &results.Records{
			Pattern: `^lat=(?P<ms>[0-9.]+)$`, Latency: results.RecordLatency{From: "ms", Unit: "ms"},
			Instant: results.RecordInstant{From: results.FromArrival, Clock: results.ClockWall, Of: results.OfEnd},
		},
		Arrivals: &kept,
	})
}

func TestLinesAreStampedWhenTheyArrive(t *testing.T) {
	c, err := byArrival([]piece{
		{"starting\nlat=5\n", -500 * time.Millisecond},                       // in the warm-up
		{"lat=7\nlat=9\n", 2 * time.Second},                                  // two clients that waited for the same
		{"lat=", 3 * time.Second}, {"4\n", 3*time.Second + time.Millisecond}, // a line in two pieces
		{"lat=11\n", 11 * time.Second}, // after the window
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Counters.Committed != 3 || c.StartedNanos != int64(495*time.Millisecond) || c.Driver[counterBurst] != 0 {
		t.Errorf("%d committed, started %v, driver %v; want 3 that began 495 ms after the release, without bursts",
			c.Counters.Committed, time.Duration(c.StartedNanos), c.Driver)
	}
	if bin := int(2000-c.Timeline.FirstMillis) / int(c.Timeline.IntervalMillis); c.Timeline.Committed[bin] != 2 {
		t.Errorf("the timeline has %d transactions at 2 s, want 2: %v", c.Timeline.Committed[bin], c.Timeline)
	}
}

// A program whose output is collected in blocks of 4 KiB looked like a system that stalls.
func TestBurstsAreRefused(t *testing.T) {
	var lines strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&lines, "lat=%d\n", i%10)
	}
	var blocks []piece
	for text, at := lines.String(), time.Second; text != ""; at += time.Second {
		n := min(4096, len(text))
		blocks, text = append(blocks, piece{text[:n], at}), text[n:]
	}
	for name, pieces := range map[string][]piece{
		"blocks":                 blocks,
		"everything at the end":  {{lines.String(), 9 * time.Second}},
		"flushed now and then":   {{strings.Repeat("lat=1\n", 5), 0}, {strings.Repeat("lat=1\n", 60), 2 * time.Second}},
		"blocks that begin torn": {{"lat=1\nlat=", time.Second}, {"2\nlat=3\n", 2 * time.Second}},
	} {
		c, err := byArrival(pieces)
		if err == nil || !strings.Contains(err.Error(), "came in bursts") {
			t.Errorf("%s: %d committed, %v; want an error that says that lines came in bursts", name, c.Counters.Committed, err)
		}
	}
	few := []piece{}
	for i := range 1000 {
		few = append(few, piece{"lat=1\n", time.Duration(i) * 5 * time.Millisecond})
	}
	few = append(few, piece{"lat=", 5 * time.Second}, piece{"1\nlat=2\n", 5*time.Second + 300*time.Millisecond})
	if c, err := byArrival(few); err != nil || c.Driver[counterBurst] != 2 {
		t.Errorf("2 of 1002 lines in a burst: driver %v, %v; want them counted", c.Driver, err)
	}
}

func TestArrivalsThatWereNotKept(t *testing.T) {
	o := Options{Windows: timeline.Windows{Measure: time.Second}, Clients: 1, Records: &results.Records{
		Pattern: `^(?P<ms>[0-9]+)$`, Latency: results.RecordLatency{From: "ms", Unit: "ms"},
		Instant: results.RecordInstant{From: results.FromArrival, Clock: results.ClockWall, Of: results.OfEnd}}}
	if _, err := Parse(FormatRegularExpression, strings.NewReader("1\n"), o); err == nil {
		t.Error("without a file of arrivals: no error")
	}
	o.Arrivals = strings.NewReader("half a rec")
	if _, err := Parse(FormatRegularExpression, strings.NewReader("1\n"), o); err == nil || !strings.Contains(err.Error(), "was not kept") {
		t.Errorf("a file that ends early: %v", err)
	}
}
