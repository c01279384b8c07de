package parsers

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a stats.json.
const (
	maxStatsOperations = 20_000
	maxStatsRuns       = 100_000
	// maxCounters of a run, kept for the first maxCounterRuns runs.
	maxCounters    = 1024
	maxCounterRuns = 100
)

// Combined is the name under which stats.json has all operations together.
const Combined = "combined"

// PequinStats is stats.json, which the scripts of the Pequin and Basil artifacts write for each
// point of their sweep.
type PequinStats struct {
	// Aggregate is pooled over all runs, by operation; "combined" are all of them.
	Aggregate map[string]PequinOperation
	// RunStats are over the runs, by operation. The artifact's instructions read the throughput at
	// run_stats, combined, tput, and the latency at run_stats, combined, mean.
	RunStats map[string]PequinRunStats
	// Runs, one for each repetition.
	Runs []PequinRun
	// CDFPoints counts the points of cumulative distributions, which are not kept.
	CDFPoints int64
}

// PequinOperation has the numbers of one operation. Latencies are in ms, throughputs in
// transactions per second.
type PequinOperation struct {
	Ops, Time                     float64 // Time in s: the divisor of Tput; only "combined" has it
	Tput, NewTput, TputHonest     float64
	Mean, Min, Max, Stddev, Var   float64
	P50, P75, P90, P95, P99, P999 float64
}

// field returns the member that stats.json calls by the name, or nil.
func (o *PequinOperation) field(name string) *float64 {
	switch name {
	case "ops":
		return &o.Ops
	case "time":
		return &o.Time
	case "tput":
		return &o.Tput
	case "new_tput":
		return &o.NewTput
	case "tput_s_honest":
		return &o.TputHonest
	case "mean":
		return &o.Mean
	case "min":
		return &o.Min
	case "max":
		return &o.Max
	case "stddev":
		return &o.Stddev
	case "var":
		return &o.Var
	case "p50":
		return &o.P50
	case "p75":
		return &o.P75
	case "p90":
		return &o.P90
	case "p95":
		return &o.P95
	case "p99":
		return &o.P99
	case "p99.9":
		return &o.P999
	}
	return nil
}

// Spread is a statistic over runs.
type Spread struct{ Mean, Stddev, Min, Max float64 }

func (s *Spread) field(name string) *float64 {
	switch name {
	case "mean":
		return &s.Mean
	case "stddev":
		return &s.Stddev
	case "min":
		return &s.Min
	case "max":
		return &s.Max
	}
	return nil
}

// PequinRunStats are the statistics over runs that the artifact's plots and instructions use.
// TputHonest is the throughput of each correct client.
type PequinRunStats struct{ Tput, Mean, TputHonest, NewTput Spread }

func (s *PequinRunStats) field(name string) *Spread {
	switch name {
	case "tput":
		return &s.Tput
	case "mean":
		return &s.Mean
	case "tput_s_honest":
		return &s.TputHonest
	case "new_tput":
		return &s.NewTput
	}
	return nil
}

// PequinRun is one repetition.
type PequinRun struct {
	Combined PequinOperation
	// Counters and rates by name, as the clients and servers counted them, warm-up included; of the
	// first hundred runs.
	Counters map[string]float64
}

// ErrNotPequinStats says that a JSON document is not from the artifact's scripts. The artifact's
// processes also write JSON, with counters of their own.
var ErrNotPequinStats = errors.New("the document has no aggregate.combined and run_stats.combined; it is no stats.json of an experiment")

// ReadPequinStats reads a stats.json. If a key is there twice, the last counts, as in the
// artifact's own Python.
func ReadPequinStats(file string, r io.Reader) (*PequinStats, error) {
	p := &pequinReader{scan: newJSONScan(file, r), stats: &PequinStats{
		Aggregate: map[string]PequinOperation{}, RunStats: map[string]PequinRunStats{}}}
	token, err := p.scan.next()
	if err != nil {
		return nil, err
	}
	if token.Kind() != '{' {
		return nil, p.scan.errorf("the document is not an object")
	}
	if err := p.scan.members(p.part); err != nil {
		return nil, err
	}
	if err := p.scan.end(); err != nil {
		return nil, err
	}
	_, pooled := p.stats.Aggregate[Combined]
	if _, overRuns := p.stats.RunStats[Combined]; !pooled || !overRuns {
		return nil, p.scan.errorf("%w", ErrNotPequinStats)
	}
	return p.stats, nil
}

type pequinReader struct {
	scan  *jsonScan
	stats *PequinStats
}

func (p *pequinReader) part(name string, first jsontext.Token) error {
	switch kind := first.Kind(); {
	case name == "aggregate" && kind == '{':
		clear(p.stats.Aggregate)
		return p.scan.members(p.aggregate)
	case name == "run_stats" && kind == '{':
		clear(p.stats.RunStats)
		return p.scan.members(p.runStats)
	case name == "runs" && kind == '[':
		p.stats.Runs = nil
		return p.runs()
	case name == "aggregate", name == "run_stats", name == "runs":
		return p.scan.errorf("%s is not what it is in a stats.json", name)
	default:
		return p.scan.skip(kind)
	}
}

func (p *pequinReader) aggregate(operation string, first jsontext.Token) error {
	if first.Kind() != '{' {
		return p.scan.skip(first.Kind())
	}
	o, err := p.operation()
	if err != nil {
		return err
	}
	if err := p.bounded(operation, len(p.stats.Aggregate)); err != nil {
		return err
	}
	p.stats.Aggregate[operation] = o
	return nil
}

func (p *pequinReader) bounded(name string, have int) error {
	if have >= maxStatsOperations || len(name) > 256 {
		return p.scan.errorf("there are more than %d operations, or one has a name of more than 256 characters", maxStatsOperations)
	}
	return nil
}

func (p *pequinReader) operation() (o PequinOperation, err error) {
	err = p.scan.members(func(name string, first jsontext.Token) error {
		if name == "cdf" || name == "cdf_log" {
			return p.cdf(first.Kind())
		}
		if field := o.field(name); field != nil {
			return p.number(name, first, field)
		}
		return p.scan.skip(first.Kind())
	})
	return o, err
}

// cdf counts the points [percentile, latency] of a distribution and checks that they are whole.
func (p *pequinReader) cdf(first jsontext.Kind) error {
	if first != '[' {
		return p.scan.errorf("a distribution is not a list of [percentile, latency]")
	}
	for {
		token, err := p.scan.next()
		if err != nil {
			return err
		}
		switch token.Kind() {
		case ']':
			return nil
		case '[':
			p.stats.CDFPoints++
		default:
			return p.scan.errorf("a point of a distribution is not [percentile, latency]")
		}
		for i := 0; ; i++ {
			if token, err = p.scan.next(); err != nil {
				return err
			}
			if token.Kind() == ']' && i == 2 {
				break
			}
			if token.Kind() != '0' || i >= 2 {
				return p.scan.errorf("a point of a distribution is not [percentile, latency]")
			}
		}
	}
}

func (p *pequinReader) number(name string, token jsontext.Token, to *float64) error {
	if token.Kind() != '0' {
		return p.scan.errorf("%s is not a number", name)
	}
	x, err := parseCountable(token.String())
	if err != nil {
		return p.scan.errorf("%s: %v", name, err)
	}
	*to = x
	return nil
}

func (p *pequinReader) runStats(operation string, first jsontext.Token) error {
	if first.Kind() != '{' {
		return p.scan.skip(first.Kind())
	}
	var s PequinRunStats
	err := p.scan.members(func(name string, first jsontext.Token) error {
		spread := s.field(name)
		if spread == nil || first.Kind() != '{' {
			return p.scan.skip(first.Kind())
		}
		return p.scan.members(func(statistic string, first jsontext.Token) error {
			if field := spread.field(statistic); field != nil {
				return p.number(name+"."+statistic, first, field)
			}
			return p.scan.skip(first.Kind())
		})
	})
	if err != nil {
		return err
	}
	if err := p.bounded(operation, len(p.stats.RunStats)); err != nil {
		return err
	}
	p.stats.RunStats[operation] = s
	return nil
}

func (p *pequinReader) runs() error {
	for {
		token, err := p.scan.next()
		if err != nil {
			return err
		}
		if token.Kind() == ']' {
			return nil
		}
		if token.Kind() != '{' {
			return p.scan.errorf("a run is not an object")
		}
		if len(p.stats.Runs) >= maxStatsRuns {
			return p.scan.errorf("there are more than %d runs", maxStatsRuns)
		}
		run, err := p.run(len(p.stats.Runs) < maxCounterRuns)
		if err != nil {
			return err
		}
		p.stats.Runs = append(p.stats.Runs, run)
	}
}

func (p *pequinReader) run(keepCounters bool) (run PequinRun, err error) {
	run.Counters = map[string]float64{}
	if !keepCounters {
		run.Counters = nil
	}
	err = p.scan.members(func(name string, first jsontext.Token) error {
		switch first.Kind() {
		case '{': // an operation; also those that are not kept are checked
			o, err := p.operation()
			if name == Combined {
				run.Combined = o
			}
			return err
		case '0':
			x, err := parseNumber(first.String())
			if err == nil && x < 0 && (name == "attempts" || name == "committed") {
				err = fmt.Errorf("%g is negative", x)
			}
			if err != nil {
				return p.scan.errorf("%s: %v", name, err)
			}
			if !keepCounters {
				return nil
			}
			if len(run.Counters) >= maxCounters || len(name) > 256 {
				return p.scan.errorf("a run has more than %d counters, or one has a name of more than 256 characters", maxCounters)
			}
			run.Counters[name] = x
			return nil
		}
		return p.scan.skip(first.Kind())
	})
	return run, err
}

// pequinStatsTable makes rows of the parts: aggregate and run_stats by operation, and each run's
// combined numbers.
func pequinStatsTable(file string, r io.Reader, _ Spec) (*Table, error) {
	s, err := ReadPequinStats(file, r)
	if err != nil {
		return nil, err
	}
	t := newTable()
	t.Skipped["distribution points"] = int(s.CDFPoints)
	for _, name := range slices.Sorted(maps.Keys(s.Aggregate)) {
		if err := t.add(Row{Labels: map[string]string{"part": "aggregate", "operation": name}, Values: s.Aggregate[name].values()}); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.RunStats)) {
		o := s.RunStats[name]
		if err := t.add(Row{Labels: map[string]string{"part": "run_stats", "operation": name}, Values: []Value{
			{Name: "tput", Unit: "tx/s", Number: o.Tput.Mean}, {Name: "mean", Unit: "ms", Number: o.Mean.Mean},
			{Name: "tput_s_honest", Unit: "tx/s", Number: o.TputHonest.Mean}, {Name: "new_tput", Unit: "tx/s", Number: o.NewTput.Mean}}}); err != nil {
			return nil, err
		}
	}
	for i, run := range s.Runs {
		if err := t.add(Row{Labels: map[string]string{"part": "runs", "run": strconv.Itoa(i), "operation": Combined}, Values: run.Combined.values()}); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// values in the order of operationFields.
func (o PequinOperation) values() []Value {
	var out []Value
	for _, f := range operationFields {
		out = append(out, Value{Name: f.name, Unit: f.unit, Number: *o.field(f.name)})
	}
	return out
}

var operationFields = []struct{ name, unit string }{
	{"ops", ""}, {"tput", "tx/s"}, {"new_tput", "tx/s"}, {"tput_s_honest", "tx/s"}, {"mean", "ms"}, {"stddev", "ms"}, {"min", "ms"}, {"max", "ms"},
	{"p50", "ms"}, {"p75", "ms"}, {"p90", "ms"}, {"p95", "ms"}, {"p99", "ms"}, {"p99.9", "ms"},
}
