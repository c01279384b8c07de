package parsers

import (
	"bytes"
	"io"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// manyRuns is a stats.json of about the given size, made as it is read: the real one, with its only run over and over.
func manyRuns(t testing.TB, size int) (r io.Reader, runs int) {
	b := unpacked(t, "TPCC/2024-10-21-17-04-33")
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

func TestLargeStatsAreReadInBoundedMemory(t *testing.T) {
	r, runs := manyRuns(t, 48<<20)
	p := &peak{r: r}
	s, err := ReadPequinStats("stats.json", p)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Runs) != runs || s.Runs[runs-1].Combined.Ops != 53528 {
		t.Errorf("%d runs, want %d", len(s.Runs), runs)
	}
	t.Logf("%d runs, the process used %.1f MB at most", runs, float64(p.bytes)/1e6)
	if p.bytes > 100<<20 {
		t.Errorf("the process used %d bytes", p.bytes)
	}
}

// BenchmarkPequinStats reads 1 GB: go test -run xxx -bench PequinStats -benchtime 1x. On a machine that others use, MB/CPU-s says what the reader can do.
func BenchmarkPequinStats(b *testing.B) {
	const size = 1 << 30
	began, reads := processorTime(b), 0
	for b.Loop() {
		reads++
		r, runs := manyRuns(b, size)
		p := &peak{r: r}
		s, err := ReadPequinStats("stats.json", p)
		if err != nil || len(s.Runs) != runs {
			b.Fatal(err, runs)
		}
		b.SetBytes(size)
		b.ReportMetric(float64(p.bytes)/1e6, "peak-MB")
	}
	b.ReportMetric(float64(reads)*size/1e6/(processorTime(b)-began).Seconds(), "MB/CPU-s")
}

// processorTime that this process has used.
func processorTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
