package parsers

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"time"

	"assay.dev/assay/operator/internal/results"
)

// Bounds of one client's output.
const (
	maxOperationNames = 1024
	maxClientIDs      = 100_000
)

// PequinClient pools the output of client processes of the Pequin and Basil artifacts. All lines
// count, since the client itself leaves out its warm-up and its cool-down. Pool several files by
// reading them one after the other into the same PequinClient.
type PequinClient struct {
	// Operations by name, and All of them together.
	Operations map[string]*Latencies
	All        *Latencies
	// FirstNanos and LastNanos are the commits of the first and the last transaction, on the client
	// machine's CLOCK_MONOTONIC. Both are 0 without transactions.
	FirstNanos, LastNanos int64
	// Committed transactions by client id, and the seconds that each client ran, by its line
	// "#end,sec,usec,id". A killed client does not print that line.
	Committed  map[int64]int64
	EndSeconds map[int64]float64
	// Starts counts "#start" lines. OtherLines are other output. CutLines are last lines without
	// their newline, which clients that are killed leave: dropped.
	Starts, OtherLines, CutLines int
}

// Latencies of transactions: a histogram, and the exact sum for a mean to all digits.
type Latencies struct {
	Histogram *results.Histogram
	sum       big.Int // of ns; 64 bits hold 292 years, which a long run of many clients may add up to
}

// Count of the latencies.
func (l *Latencies) Count() int64 { return l.Histogram.Count() + l.Histogram.OutOfRange() }

// MeanMillis is the exact mean in ms; 0 when there is none.
func (l *Latencies) MeanMillis() float64 {
	n := l.Count()
	if n == 0 {
		return 0
	}
	mean, _ := new(big.Rat).SetFrac(&l.sum, big.NewInt(n*int64(time.Millisecond))).Float64()
	return mean
}

func (l *Latencies) record(ns int64) {
	l.Histogram.Record(time.Duration(ns))
	l.sum.Add(&l.sum, big.NewInt(ns))
}

func newLatencies() *Latencies { return &Latencies{Histogram: results.NewHistogram()} }

// NewPequinClient returns an empty one.
func NewPequinClient() *PequinClient {
	return &PequinClient{Operations: map[string]*Latencies{}, All: newLatencies(), Committed: map[int64]int64{}, EndSeconds: map[int64]float64{}}
}

// Read adds a file: a line for each committed transaction (TransactionLines says how they are read)
// and the control lines "#start,sec,usec" and "#end,sec,usec,id".
func (p *PequinClient) Read(file string, r io.Reader) error {
	in := bufio.NewReaderSize(r, maxLine)
	for number := 1; ; number++ {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			if len(line) > 0 {
				p.CutLines++
			}
			return nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("%s:%d: the line is longer than %d bytes; it is no transaction", file, number, maxLine)
		}
		if err == nil {
			err = p.line(bytes.TrimRight(line, "\r\n"))
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %q: %w", file, number, short(line), err)
		}
	}
}

func (p *PequinClient) line(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if b[0] == '#' {
		return p.control(b)
	}
	t, isTransaction, err := parseTransaction(b)
	if err != nil {
		return err
	}
	if !isTransaction {
		p.OtherLines++
		return nil
	}
	operation, known := p.Operations[string(t.name)]
	if !known {
		if len(p.Operations) >= maxOperationNames || len(t.name) > 256 {
			return fmt.Errorf("there are more than %d names of operations, or one is longer than 256 characters", maxOperationNames)
		}
		operation = newLatencies()
		p.Operations[string(t.name)] = operation
	}
	if _, known := p.Committed[t.client]; !known && len(p.Committed) >= maxClientIDs {
		return fmt.Errorf("there are more than %d client ids", maxClientIDs)
	}
	if p.All.Count() == 0 || t.end < p.FirstNanos {
		p.FirstNanos = t.end
	}
	p.LastNanos = max(p.LastNanos, t.end)
	p.Committed[t.client]++
	p.All.record(t.latency)
	operation.record(t.latency)
	return nil
}

// control reads a line that begins with #. Other ones than #start and #end are comments.
func (p *PequinClient) control(b []byte) error {
	fields := bytes.Split(b, []byte(","))
	switch string(fields[0]) {
	case "#start":
		if _, err := controlNumbers(fields[1:], 2); err != nil {
			return fmt.Errorf("it is not #start,sec,usec: %w", err)
		}
		p.Starts++
	case "#end":
		n, err := controlNumbers(fields[1:], 3)
		if err != nil {
			return fmt.Errorf("it is not #end,sec,usec,id: %w", err)
		}
		if _, known := p.EndSeconds[n[2]]; !known && len(p.EndSeconds) >= maxClientIDs {
			return fmt.Errorf("there are more than %d client ids", maxClientIDs)
		}
		p.EndSeconds[n[2]] = float64(n[0]) + float64(n[1])/1e6
	}
	return nil
}

func controlNumbers(fields [][]byte, want int) ([]int64, error) {
	if len(fields) != want {
		return nil, fmt.Errorf("there are %d numbers; it has %d", len(fields), want)
	}
	numbers := make([]int64, want)
	for i, f := range fields {
		n, err := strconv.ParseUint(string(f), 10, 63)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number of 0 or more", f)
		}
		numbers[i] = int64(n)
	}
	if numbers[1] >= 1_000_000 {
		return nil, fmt.Errorf("%d us are more than a second", numbers[1])
	}
	return numbers, nil
}

// NewThroughput is the artifact's new_tput: each client's transactions divided by its own time to
// the end, added up over the clients. The result ok is false if a client with transactions did not
// print its time.
func (p *PequinClient) NewThroughput() (throughput float64, ok bool) {
	for _, id := range slices.Sorted(maps.Keys(p.Committed)) {
		seconds := p.EndSeconds[id]
		if seconds <= 0 {
			return 0, false
		}
		throughput += float64(p.Committed[id]) / seconds
	}
	return throughput, true
}

// pequinClientTable makes a row of each operation, and one of all with the operation "combined".
func pequinClientTable(file string, r io.Reader, _ Spec) (*Table, error) {
	p := NewPequinClient()
	if err := p.Read(file, r); err != nil {
		return nil, err
	}
	t := newTable()
	for kind, n := range map[string]int{"other lines": p.OtherLines, "cut lines": p.CutLines} {
		if n > 0 {
			t.Skipped[kind] = n
		}
	}
	if p.CutLines > 0 {
		t.warn("%s: the last line is cut off, as a client that is killed leaves it; its transaction is not counted", file)
	}
	if p.All.Count() == 0 {
		return t, nil // a faulty client prints none
	}
	if err := t.add(latencyRow("combined", p.All)); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(p.Operations)) {
		if err := t.add(latencyRow(name, p.Operations[name])); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func latencyRow(operation string, l *Latencies) Row {
	millis := func(p float64) float64 { return float64(l.Histogram.Percentile(p)) / 1e6 }
	return Row{Labels: map[string]string{"operation": operation}, Values: []Value{
		{Name: "ops", Number: float64(l.Count())},
		{Name: "mean", Unit: "ms", Number: l.MeanMillis()},
		{Name: "p50", Unit: "ms", Number: millis(50)},
		{Name: "p90", Unit: "ms", Number: millis(90)},
		{Name: "p99", Unit: "ms", Number: millis(99)},
		{Name: "p99.9", Unit: "ms", Number: millis(99.9)},
		{Name: "max", Unit: "ms", Number: float64(l.Histogram.Max()) / 1e6},
	}}
}
