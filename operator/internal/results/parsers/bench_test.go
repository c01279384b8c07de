package parsers

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/timeline"
)

// BenchmarkFormats reads 1 MB of each format of a client, made as they are read, so that what a
// report takes in memory is the reader's own. make bench-parsers prints MB/s and bytes.
func BenchmarkFormats(b *testing.B) {
	const size = 1 << 20
	base := Options{Clients: 1, ZeroUnixNanos: hdrStart * 1e9, ZeroMonotonicNanos: 7548e9, Windows: timeline.Windows{Measure: 10 * time.Second}, Whole: true}
	number := func(n results.SummaryNumber) []results.SummaryNumber { return []results.SummaryNumber{n} }
	records := func(pattern string) *results.Records {
		return &results.Records{Pattern: pattern, Latency: results.RecordLatency{From: "latency", Unit: "us"},
			Instant: results.RecordInstant{From: "end", Unit: "ms", Clock: results.ClockWall, Of: results.OfEnd}}
	}
	for _, bc := range []struct {
		format, header, line, end string
		change                    func(*Options)
	}{
		{format: FormatTransactionLines, line: "rw,3703921,7548133599816,0\n"},
		{format: FormatRegularExpression, line: "READ,1795161601000,412\n", change: func(o *Options) {
			o.Records = records(`^(?P<operation>READ|UPDATE),(?P<end>[0-9]+),(?P<latency>[0-9]+)$`)
		}},
		{format: FormatCSV, header: "op,end,latency\n", line: "READ,1795161601000,412\n", change: func(o *Options) { o.Records = records("") }},
		{format: FormatSummary, line: "12:00:04.001 [main] INFO Generator - 1000 operations, all is well\n", end: "Throughput: 12\n", change: func(o *Options) {
			o.Summary = number(results.SummaryNumber{Name: results.NumberThroughput, Pattern: `^Throughput: (?P<value>[0-9.]+)$`})
		}},
		{format: FormatHdrHistogram, line: lastLine(hdrSeconds(b, hdrStart, "READ", 1000)), change: func(o *Options) { o.Histograms = &results.Histograms{Unit: "us"} }},
	} {
		b.Run(bc.format, func(b *testing.B) {
			o := base
			if bc.change != nil {
				bc.change(&o)
			}
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				body := io.LimitReader(&repeat{line: bc.line}, size/int64(len(bc.line))*int64(len(bc.line)))
				if _, err := Parse(bc.format, io.MultiReader(strings.NewReader(bc.header), body, strings.NewReader(bc.end)), o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func lastLine(text string) string {
	lines := strings.SplitAfter(text, "\n")
	return lines[len(lines)-2]
}

// TestASummaryThatIsReadIsConsistent: of any numbers, counts are 0 or more, percentiles rise, and
// rate times time is the count within 2%, beyond the digits that were printed; or the report is
// refused.
func TestASummaryThatIsReadIsConsistent(t *testing.T) {
	o := Options{Clients: 1, Windows: timeline.Windows{Measure: 20 * time.Second}, Summary: []results.SummaryNumber{
		{Name: results.NumberCommitted, Pattern: "^c (?P<value>.*)$"}, {Name: results.NumberThroughput, Pattern: "^x (?P<value>.*)$"},
		{Name: results.NumberRunTime, Pattern: "^t (?P<value>.*)$", Unit: "s"}, {Name: results.NumberErrors, Pattern: "^e (?P<value>.*)$"},
		{Name: "P50Latency", Pattern: "^p50 (?P<value>.*)$", Unit: "ms"}, {Name: "P9999Latency", Pattern: "^p9999 (?P<value>.*)$", Unit: "ms"},
	}}
	read := 0
	for i := range 20000 {
		// Numbers that fit, each off by up to 8% in one of four.
		off := func(bit int) float64 {
			if i>>bit&3 != 0 {
				return 1
			}
			return 1 + 0.02*float64((i>>bit/4)%9-4)
		}
		c, x, s := 20000*off(0), 1000*off(3), 20*off(6)
		p50, p9999 := 10*off(8), 10.1*off(10)
		text := fmt.Sprintf("c %.0f\nx %.3f\nt %.3f\ne %d\np50 %.3f\np9999 %.3f\n", c, x, s, i%7, p50, p9999)
		got, err := Parse(FormatSummary, strings.NewReader(text), o)
		if err != nil {
			continue
		}
		read++
		n := float64(got.Counters.Committed)
		if product := got.Whole.Throughput * s; n < 0 || product > n*1.0205+2 || n > product*1.0205+2 {
			t.Fatalf("%q is read, and %g/s in %g s are not %g", text, got.Whole.Throughput, s, n)
		}
		if *got.Whole.P50Millis > 1.0205*got.Whole.Percentiles["P9999"]+0.002 {
			t.Fatalf("%q is read, and its percentiles fall", text)
		}
	}
	if read < 2000 || read > 19000 {
		t.Errorf("%d of 20000 were read: the numbers try nothing", read)
	}
}
