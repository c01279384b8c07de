package parsers

import (
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
)

// formatOfABench is a format with reports of any size in it.
type formatOfABench struct {
	format, header, line, end string
	options                   Options
}

func formatsOfABench(tb testing.TB) map[string]formatOfABench {
	base := Options{Clients: 1, ZeroUnixNanos: hdrStart * 1e9, ZeroMonotonicNanos: 7548e9, Windows: timeline.Windows{Measure: 10 * time.Second}, Whole: true}
	records := func(pattern string) Options {
		o := base
		o.Records = &results.Records{Pattern: pattern, Latency: results.RecordLatency{From: "latency", Unit: "us"}, Operation: "operation",
			Instant: results.RecordInstant{From: "end", Unit: "ms", Clock: results.ClockWall, Of: results.OfEnd}}
		return o
	}
	summary, logs := base, base
	summary.Summary = []results.SummaryNumber{{Name: results.NumberThroughput, Pattern: `^Throughput: (?P<value>[0-9.]+)$`}}
	logs.Histograms = &results.Histograms{Unit: "us"}
	jsonLines := records("")
	jsonLines.Records.Latency.From, jsonLines.Records.Instant.From, jsonLines.Records.Operation = "$.data.value", "$.data.time", "$.data.tags.method"
	jsonLines.Records.Where = map[string]string{"$.metric": "request", "$.type": "Point"}
	return map[string]formatOfABench{
		"TransactionLines": {format: FormatTransactionLines, line: "rw,3703921,7548133599816,0\n", options: base},
		"RegularExpression": {format: FormatRegularExpression, line: "READ,1795161601000,412\n",
			options: records(`^(?P<operation>READ|UPDATE),(?P<end>[0-9]+),(?P<latency>[0-9]+)$`)},
		"RegularExpression/anywhere": {format: FormatRegularExpression, line: "12:00:04.001 INFO op=READ end=1795161601000 took=412us\n",
			options: records(`op=(?P<operation>[A-Z]+) end=(?P<end>[0-9]+) took=(?P<latency>[0-9]+)us`)},
		"RegularExpression/mostlyOtherLines": {format: FormatRegularExpression,
			line:    strings.Repeat("12:00:04.001 INFO Generator - 1000 operations, all is well\n", 19) + "op=READ; end=1795161601000; took=412us\n",
			options: records(`^.*op=(?P<operation>[A-Z]+);.*end=(?P<end>[0-9]+);.*took=(?P<latency>[0-9]+)us`)},
		"RegularExpression/ambiguous": {format: FormatRegularExpression, line: "12:00:04.001 INFO op=READ end=1795161601000 took=412us\n",
			options: records(`^.* op=(?P<operation>[A-Z]+) .*end=(?P<end>[0-9]+) .*took=(?P<latency>[0-9]+)us`)},
		"JSONLines": {format: FormatJSONLines, options: jsonLines,
			line: `{"metric":"request","type":"Point","data":{"time":1795161601000,"value":412,"tags":{"method":"GET","status":"200","proto":"HTTP/1.1"}}}` + "\n"},
		"CSV": {format: FormatCSV, header: "operation,end,latency\n", line: "READ,1795161601000,412\n", options: records("")},
		"Summary": {format: FormatSummary, line: "12:00:04.001 [main] INFO Generator - 1000 operations, all is well\n", end: "Throughput: 12\n",
			options: summary},
		"HdrHistogram": {format: FormatHdrHistogram, line: lastLine(hdrSpread(tb)), options: logs},
	}
}

// hdrSpread is a log with one interval of 1000 values from 0.1 to 100 ms.
func hdrSpread(tb testing.TB) string {
	tb.Helper()
	h := hdr.New(1, 60_000_000, 3)
	for i := range 1000 {
		if err := h.RecordValue(int64(100 * math.Pow(1000, float64(i)/999))); err != nil {
			tb.Fatal(err)
		}
	}
	text, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		tb.Fatal(err)
	}
	return fmt.Sprintf("Tag=READ,%d.000,1.000,100.000,%s\n", hdrStart, text)
}

// report of about a size, made while it is read: its lines come from a block of 256 kB that is
// copied.
func (f formatOfABench) report(size int) (io.Reader, int) {
	block := strings.Repeat(f.line, max(1, 256<<10/len(f.line)))
	blocks := max(1, size/len(block))
	all := []io.Reader{strings.NewReader(f.header)}
	for range blocks {
		all = append(all, strings.NewReader(block))
	}
	return io.MultiReader(append(all, strings.NewReader(f.end))...), blocks * len(block)
}

// BenchmarkFormats reads 4 MB of each format of a client. The target make bench-parsers prints MB
// and lines for each second of a processor, which other programs on the machine change less than
// the clock.
func BenchmarkFormats(b *testing.B) {
	formats := formatsOfABench(b)
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		b.Run(name, func(b *testing.B) {
			f := formats[name]
			bytes, began := 0, processorTime(b)
			for b.Loop() {
				r, n := f.report(4 << 20)
				if _, err := Parse(f.format, r, f.options); err != nil {
					b.Fatal(err)
				}
				bytes += n
			}
			seconds := (processorTime(b) - began).Seconds()
			lines := float64(bytes) / float64(len(f.line)) * float64(strings.Count(f.line, "\n"))
			b.ReportMetric(float64(bytes)/1e6/seconds, "MB/s")
			b.ReportMetric(lines/seconds, "lines/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// liveHeap measures the live memory while a report is read: it collects the garbage every few MB.
type liveHeap struct {
	r           io.Reader
	every, read int
	bytes       uint64
}

func (l *liveHeap) Read(b []byte) (int, error) {
	n, err := l.r.Read(b)
	if l.read += n; l.read >= l.every {
		l.read = 0
		l.bytes = max(l.bytes, live())
	}
	return n, err
}

func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestLiveMemoryIsIndependentOfTheSize: a report of ten times the size has the same peak of live
// memory, up to 256 kB. ASSAY_BENCH_PARSERS reads 10 and 100 MB instead of 1 and 10.
func TestLiveMemoryIsIndependentOfTheSize(t *testing.T) {
	size := 1 << 20
	if os.Getenv("ASSAY_BENCH_PARSERS") != "" {
		size = 10 << 20
	}
	for name, f := range formatsOfABench(t) {
		var peak [2]uint64
		for i, size := range []int{size, 10 * size} {
			r, _ := f.report(size)
			before := live()
			l := liveHeap{r: r, every: size / 8}
			if _, err := Parse(f.format, &l, f.options); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			peak[i] = l.bytes - min(before, l.bytes)
		}
		t.Logf("%-36s %5d kB live at most while %3d MB are read, %5d kB while %3d MB", name, peak[0]>>10, size>>20, peak[1]>>10, 10*size>>20)
		if peak[1] > peak[0]+256<<10 {
			t.Errorf("%s: %d bytes are live while %d MB are read, and %d while ten times as much", name, peak[0], size>>20, peak[1])
		}
	}
}

func lastLine(text string) string {
	lines := strings.SplitAfter(text, "\n")
	return lines[len(lines)-2]
}

// TestASummaryThatIsReadIsConsistent: whatever the numbers, the parser refuses the report, or three
// things hold. Counts are 0 or more, percentiles rise, and rate times time is the count, within 2%
// and the printed digits.
func TestASummaryThatIsReadIsConsistent(t *testing.T) {
	o := Options{Clients: 1, Windows: timeline.Windows{Measure: 20 * time.Second}, Summary: []results.SummaryNumber{
		{Name: results.NumberCommitted, Pattern: "^c (?P<value>.*)$"}, {Name: results.NumberThroughput, Pattern: "^x (?P<value>.*)$"},
		{Name: results.NumberRunTime, Pattern: "^t (?P<value>.*)$", Unit: "s"}, {Name: results.NumberErrors, Pattern: "^e (?P<value>.*)$"},
		{Name: "P50Latency", Pattern: "^p50 (?P<value>.*)$", Unit: "ms"}, {Name: "P9999Latency", Pattern: "^p9999 (?P<value>.*)$", Unit: "ms"},
	}}
	read := 0
	for i := range 20000 {
		// Numbers that fit; in one of four cases, each is wrong by up to 8%.
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
		if product := got.RunSummary.Throughput * s; n < 0 || product > n*1.0205+2 || n > product*1.0205+2 {
			t.Fatalf("%q is read, and %g/s in %g s are not %g", text, got.RunSummary.Throughput, s, n)
		}
		if *got.RunSummary.P50Millis > 1.0205*got.RunSummary.Percentiles["P9999"]+0.002 {
			t.Fatalf("%q is read, and its percentiles fall", text)
		}
	}
	if read < 2000 || read > 19000 {
		t.Errorf("%d of 20000 were read: the numbers try nothing", read)
	}
}
