package parsers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
)

// mustBeSound checks what must hold of every report that the parser accepts. The report can be
// sent, counts are 0 or more, and kinds of operations add up to at most all. Percentiles rise, and
// the rate times the time is the count, or a remark says why not.
func mustBeSound(t *testing.T, c results.Client) {
	t.Helper()
	if _, err := results.EncodeClient(c); err != nil {
		t.Errorf("what was read cannot be sent: %v", err)
		return
	}
	m, err := results.Merge([]results.Client{c})
	if err != nil {
		t.Errorf("what was read cannot be merged: %v", err)
		return
	}
	s := m.Summary
	for name, n := range map[string]int64{"committed": s.Committed, "aborted": s.Aborted, "errors": s.Errors, "timeouts": s.Timeouts, "offered": s.Offered} {
		if n < 0 {
			t.Errorf("%s is %d", name, n)
		}
	}
	ofKinds := int64(0)
	for _, o := range s.Operations {
		ofKinds += o.Committed
		mustRise(t, o.Name, o.Percentiles, o.MaxMillis)
	}
	if ofKinds > s.Committed {
		t.Errorf("%d operations of all kinds committed, and %d in all", ofKinds, s.Committed)
	}
	if len(s.Remarks) > 0 {
		return
	}
	percentiles := map[string]float64{"P10": s.P10Millis, "P50": s.P50Millis, "P90": s.P90Millis, "P99": s.P99Millis, "P999": s.P999Millis}
	for name, millis := range s.Percentiles {
		percentiles[name] = millis
	}
	mustRise(t, "all", percentiles, s.MaxMillis)
	seconds := time.Duration(m.MeasureNanos).Seconds()
	if c.RunSummary == nil && math.Abs(s.Throughput*seconds-float64(s.Committed)) > tolerated*float64(s.Committed)+1 {
		t.Errorf("%g per second in %g s are not the %d that committed", s.Throughput, seconds, s.Committed)
	}
}

// mustRise checks that percentiles rise to the maximum, apart from the rounding of a summary. A
// percentile of 0 is not known.
func mustRise(t *testing.T, of string, percentiles map[string]float64, longest float64) {
	t.Helper()
	names := []string{}
	for name, millis := range percentiles {
		if millis > 0 {
			names = append(names, name)
		}
	}
	rank := func(name string) float64 { return results.Percentile(name + "Latency") }
	slices.SortFunc(names, func(a, b string) int { return int(1000 * (rank(a) - rank(b))) })
	last := 0.0
	for _, name := range names {
		if percentiles[name] < 0.97*last {
			t.Errorf("of %s, %s is %g ms, and one below it %g ms", of, name, percentiles[name], last)
		}
		last = max(last, percentiles[name])
	}
	if longest > 0 && last > 1.03*longest {
		t.Errorf("of %s, a percentile is %g ms, and the longest latency %g ms", of, last, longest)
	}
}

// drawn is an operation of a run: times are whole milliseconds after t = 0.
type drawn struct {
	begin, took time.Duration
	kind, how   string
}

func drawOperations(rng *rand.Rand, windows timeline.Windows) (all []drawn) {
	millis := func(from, to time.Duration) time.Duration {
		return from + time.Duration(rng.Int64N(int64((to-from)/time.Millisecond)))*time.Millisecond
	}
	for range rng.IntN(400) {
		all = append(all, drawn{
			begin: millis(-windows.WarmUp, windows.LastRequest()), took: millis(time.Millisecond, time.Second),
			kind: []string{"READ", "UPDATE", "SCAN"}[rng.IntN(3)], how: []string{"ok", "ok", "ok", "conflict", "broken", "late", "odd"}[rng.IntN(7)],
		})
	}
	return all
}

// recordForm is a way in which programs write operations.
type recordForm struct {
	format  string
	records results.Records
	header  string
	line    func(d drawn, at time.Time) string
	noise   string
}

const propertyZero = 1_795_161_600

var outcomes = &results.RecordOutcome{From: "how", Committed: []string{"ok"}, Aborted: []string{"conflict"}, Errors: []string{"broken"}, Timeouts: []string{"late"}}

func instantOf(from, unit, clock, of string) results.RecordInstant {
	return results.RecordInstant{From: from, Unit: unit, Clock: clock, Of: of}
}

var recordForms = map[string]recordForm{
	"seconds and microseconds in two columns": {
		format: FormatRegularExpression, noise: "progress 50%\rprogress 51%\n",
		records: results.Records{
			Pattern: `^op (?P<kind>[A-Z]+) (?P<how>[a-z]+) (?P<took>[0-9.]+) (?P<sec>[0-9]+) (?P<usec>[0-9]+)$`, Latency: results.RecordLatency{From: "took", Unit: "ms"},
			Instant: results.RecordInstant{From: "sec", Unit: "s", Fraction: &results.RecordLatency{From: "usec", Unit: "us"}, Clock: results.ClockWall, Of: results.OfEnd},
		},
		line: func(d drawn, at time.Time) string {
			end := at.Add(d.took)
			return fmt.Sprintf("op %s %s %d.0 %d %d\n", d.kind, d.how, d.took.Milliseconds(), end.Unix(), end.Nanosecond()/1000)
		},
	},
	"begin and end, and records of several lines": {
		format: FormatCSV, header: "begin,text,end,how,kind\n",
		records: results.Records{Latency: results.RecordLatency{Since: "begin"}, Instant: instantOf("end", "ms", results.ClockWall, results.OfEnd)},
		line: func(d drawn, at time.Time) string {
			return fmt.Sprintf("%d,\"said \"\"no\"\",\n then, yes\n\",%d,%s,%s\n", at.UnixMilli(), at.Add(d.took).UnixMilli(), d.how, d.kind)
		},
	},
	"dates with a zone, of the begin": {
		format: FormatJSONLines, noise: "[info] connected\n{\"metric\":\"other\"}\n",
		records: results.Records{
			Where: map[string]string{"$.metric": "op"}, Latency: results.RecordLatency{From: "$.d.took", Unit: "s"},
			Instant: results.RecordInstant{From: "$.d.at", Layout: results.LayoutRFC3339, Clock: results.ClockWall, Of: results.OfBegin},
		},
		line: func(d drawn, at time.Time) string {
			return fmt.Sprintf("{\"metric\":\"op\",\"how\":%q,\"kind\":%q,\"d\":{\"took\":%.3f,\"at\":%q}}\n", d.how, d.kind, d.took.Seconds(), at.In(time.FixedZone("", -5*3600)).Format(time.RFC3339Nano))
		},
	},
	"local dates": {
		format: FormatRegularExpression, noise: "INFO started\n",
		records: results.Records{
			Pattern: `^(?P<at>[0-9-]+ [0-9:,]+) (?P<kind>[A-Z]+) (?P<how>[a-z]+) in (?P<took>[0-9]+) us$`, Latency: results.RecordLatency{From: "took", Unit: "us"},
			Instant: results.RecordInstant{From: "at", Layout: "2006-01-02 15:04:05,000", Zone: "+05:30", Clock: results.ClockWall, Of: results.OfEnd},
		},
		line: func(d drawn, at time.Time) string {
			return fmt.Sprintf("%s %s %s in %d us\n", at.Add(d.took).In(time.FixedZone("", 19800)).Format("2006-01-02 15:04:05,000"), d.kind, d.how, d.took.Microseconds())
		},
	},
	"times of day": {
		format: FormatRegularExpression, noise: "INFO started\n",
		records: results.Records{
			Pattern: `^(?P<at>[0-9:.]+) (?P<kind>[A-Z]+) (?P<how>[a-z]+) (?P<took>[0-9]+)$`, Latency: results.RecordLatency{From: "took", Unit: "ms"},
			Instant: results.RecordInstant{From: "at", Layout: "15:04:05.000", Clock: results.ClockWall, Of: results.OfEnd},
		},
		line: func(d drawn, at time.Time) string {
			return fmt.Sprintf("%s %s %s %d\n", at.Add(d.took).UTC().Format("15:04:05.000"), d.kind, d.how, d.took.Milliseconds())
		},
	},
	"since the start of the process": {
		format: FormatCSV, header: "offset;took;how;kind\n",
		records: results.Records{Separator: ";", Latency: results.RecordLatency{From: "took", Unit: "ms"}, Instant: instantOf("offset", "s", results.ClockSinceStart, results.OfBegin)},
		line: func(d drawn, at time.Time) string {
			return fmt.Sprintf("%.3f;%d;%s;%s\n", at.Sub(time.Unix(propertyZero-7, 0)).Seconds(), d.took.Milliseconds(), d.how, d.kind)
		},
	},
}

// counted is what a reader must find, by the definitions alone: an operation is of the window if it
// ended in it.
func counted(all []drawn, window time.Duration) (c results.Counters, kinds map[string][]time.Duration) {
	kinds = map[string][]time.Duration{}
	for _, d := range all {
		if d.how == "ok" && d.begin >= 0 && d.begin < window {
			c.Offered++
		}
		if end := d.begin + d.took; end < 0 || end >= window {
			continue
		}
		switch d.how {
		case "ok":
			c.Committed++
			kinds[d.kind] = append(kinds[d.kind], d.took)
		case "conflict":
			c.Aborted++
		case "late":
			c.Timeouts++
		default: // no list has "odd"
			c.Errors++
		}
	}
	return c, kinds
}

// TestRecordsSayWhatRan: for every form of a program's lines the parser reads what ran, as counts,
// and as the percentiles of each kind of operation.
func TestRecordsSayWhatRan(t *testing.T) {
	windows := timeline.Windows{WarmUp: 3 * time.Second, Measure: 10 * time.Second, CoolDown: 2 * time.Second}
	for name, form := range recordForms {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(29, 3))
			records := form.records
			outcome := *outcomes
			records.Outcome, records.Operation = &outcome, "kind"
			if form.format == FormatJSONLines {
				records.Outcome.From, records.Operation = "$.how", "$.kind"
			}
			o := Options{Clients: 1, Windows: windows, ZeroUnixNanos: propertyZero * 1e9, StartNanos: -7e9, Records: &records}
			for run := range 40 {
				all := drawOperations(rng, windows)
				var text strings.Builder
				text.WriteString(form.header)
				for _, d := range all {
					if rng.IntN(5) == 0 {
						text.WriteString(form.noise)
					}
					text.WriteString(form.line(d, time.Unix(propertyZero, 0).Add(d.begin)))
				}
				c, err := Parse(form.format, strings.NewReader(text.String()), o)
				if err != nil {
					t.Fatalf("run %d: %v", run, err)
				}
				mustBeSound(t, c)
				want, kinds := counted(all, windows.Measure)
				if c.Counters != want {
					t.Fatalf("run %d: read %+v, and there were %+v", run, c.Counters, want)
				}
				mustHaveKinds(t, c, kinds)
			}
		})
	}
}

// mustHaveKinds compares the percentiles of each kind with those of its latencies, sorted.
func mustHaveKinds(t *testing.T, c results.Client, kinds map[string][]time.Duration) {
	t.Helper()
	m, err := results.Merge([]results.Client{c})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Summary.Operations) != len(kinds) {
		t.Fatalf("%d kinds of operations are read, and there were %d", len(m.Summary.Operations), len(kinds))
	}
	for _, o := range m.Summary.Operations {
		latencies := kinds[o.Name]
		slices.Sort(latencies)
		if o.Committed != int64(len(latencies)) {
			t.Errorf("%s: %d committed, want %d", o.Name, o.Committed, len(latencies))
		}
		for _, p := range []int{10, 50, 90, 99} {
			want := results.Millis(latencies[(p*len(latencies)+99)/100-1])
			if got := o.Percentiles[fmt.Sprintf("P%d", p)]; math.Abs(got-want) > 0.001*want {
				t.Errorf("%s: the %dth percentile of %d is %g ms, want %g", o.Name, p, len(latencies), got, want)
			}
		}
	}
}
