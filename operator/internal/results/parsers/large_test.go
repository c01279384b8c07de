package parsers

import (
	"bytes"
	"io"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// manyRuns is a stats.json of about the given size, made as it is read: that of statsPoint, with
// its only run over and over.
func manyRuns(size int) (r io.Reader, runs int) {
	b := statsPoint.Stats()
	open := bytes.Index(b, []byte("\"runs\": [")) + len("\"runs\": [")
	end := bytes.LastIndexByte(b, ']')
	run := b[open:end]
	runs = max(1, size/len(run))
	next := 0
	middle := readerFunc(func(p []byte) (int, error) {
		at := next % (len(run) + 1)
		if next/(len(run)+1) == runs-1 && at == len(run) {
			return 0, io.EOF
		}
		n := copy(p, run[at:])
		if at == len(run) {
			p[0], n = ',', 1
		}
		next += n
		return n, nil
	})
	return io.MultiReader(bytes.NewReader(b[:open]), middle, bytes.NewReader(b[end:])), runs
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// peak samples the heap while another reader is read.
type peak struct {
	r     io.Reader
	calls int
	bytes uint64
}

func (p *peak) Read(b []byte) (int, error) {
	if p.calls++; p.calls%512 == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		p.bytes = max(p.bytes, m.Sys-m.HeapReleased)
	}
	return p.r.Read(b)
}

// These are the promises for a stats.json of 1 GB. The rate is by the processor's time and not by
// the clock: other programs on the machine slow it down only through the caches.
const (
	peakLimit = 100e6 // bytes of the whole process
	rateLimit = 200   // MB for each second of a processor
)

// 48 MB are too few to check the promised rate of 1 GB on a busy machine. So the best of three
// readings must have half of that rate. A reader that had become several times slower would miss
// it. No reading can be faster than the second figure: then the processor's time would be wrong.
const (
	leastRate = rateLimit / 2
	mostRate  = 5000
)

func TestLargeStatsAreReadInBoundedMemory(t *testing.T) {
	const size = 48 << 20
	best := 0.0
	for range 3 {
		r, runs := manyRuns(size)
		p := &peak{r: r}
		began := processorTime(t)
		s, err := ReadPequinStats("stats.json", p)
		if err != nil {
			t.Fatal(err)
		}
		rate := size / 1e6 / (processorTime(t) - began).Seconds()
		best = max(best, rate)
		if len(s.Runs) != runs || s.Runs[runs-1].Combined.Ops != 1200 {
			t.Errorf("%d runs, want %d", len(s.Runs), runs)
		}
		t.Logf("%d runs, the process used %.1f MB at most, %.0f MB for each second of a processor", runs, float64(p.bytes)/1e6, rate)
		if p.bytes >= peakLimit {
			t.Errorf("the process used %d bytes, want less than %.0f", p.bytes, peakLimit)
		}
	}
	if best < leastRate || best > mostRate {
		t.Errorf("%.0f MB are read in a second of a processor, want %d to %d", best, leastRate, mostRate)
	}
}

// BenchmarkPequinStats reads 1 GB and checks the promises above: go test -run xxx -bench
// PequinStats -benchtime 1x.
func BenchmarkPequinStats(b *testing.B) {
	const size = 1 << 30
	began, reads, most := processorTime(b), 0, uint64(0)
	for b.Loop() {
		reads++
		r, runs := manyRuns(size)
		p := &peak{r: r}
		s, err := ReadPequinStats("stats.json", p)
		if err != nil || len(s.Runs) != runs {
			b.Fatal(err, runs)
		}
		most = max(most, p.bytes)
	}
	b.SetBytes(size)
	rate := float64(reads) * size / 1e6 / (processorTime(b) - began).Seconds()
	b.ReportMetric(float64(most)/1e6, "peak-MB")
	b.ReportMetric(rate, "MB/CPU-s")
	if most >= peakLimit {
		b.Errorf("the process used %d bytes, want less than %.0f", most, peakLimit)
	}
	if rate < rateLimit {
		b.Errorf("%.0f MB are read in a second of a processor, want %d at least", rate, rateLimit)
	}
}

// processorTime that this process has used.
func processorTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
