package claims

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// metric is a quantity of which each trial gives one number. The metrics of package stats have the
// names from there.
type metric struct {
	name string
	// fault and time, from 1, of a metric that is about a fault's recovery.
	fault string
	time  int
	// measurement is the name of the measurement by Prometheus that the metric reads.
	measurement string
}

// The metrics that package stats does not have.
const (
	p10Latency       = "p10Latency"
	p75Latency       = "p75Latency"
	p9999Latency     = "p9999Latency"
	p99999Latency    = "p99999Latency"
	errorRate        = "errorRate"
	perCorrectClient = "perCorrectClient"
	timeToDetect     = "timeToDetect"
	dip              = "dip"
	timeTo90         = "timeTo90"
	goodputLost      = "goodputLost"
	measurement      = "measurement"
)

func (m metric) compare(n metric) int {
	return cmp.Or(cmp.Compare(m.name, n.name), cmp.Compare(m.fault, n.fault), cmp.Compare(m.time, n.time), cmp.Compare(m.measurement, n.measurement))
}

// signed is true for a metric that may be negative. A query of Prometheus may give any number. Work
// that was made up for is subtracted from the lost work.
func (m metric) signed() bool { return m.name == measurement || m.name == goodputLost }

// sample is the number that one trial gives.
type sample struct {
	value float64
	// low and high bound the number. Both equal value if the trial gives it exactly.
	low, high float64
	// remark is a fact that a reader of the number must know.
	remark string
}

// exactly is a sample with an exact number.
func exactly(value float64) sample { return sample{value: value, low: value, high: value} }

// of reads a metric of a trial, or says why the trial does not have it.
func (m metric) of(line results.TrialLine) (sample, error) {
	switch m.name {
	case stats.MeanLatency, p10Latency, stats.P50Latency, p75Latency, stats.P90Latency, stats.P95Latency, stats.P99Latency, stats.P999Latency, p9999Latency, p99999Latency:
		return m.latency(line)
	case stats.AbortRate, errorRate:
		return m.rate(line)
	case perCorrectClient:
		if line.CorrectClients < 1 {
			return sample{}, fmt.Errorf("trial %d does not say how many of its clients were correct", line.Number)
		}
		// stats.PerCorrectClient with the division by the window's length done already.
		return exactly(line.Throughput / float64(line.CorrectClients)), nil
	case timeToDetect, dip, timeTo90, goodputLost:
		return m.recovery(line)
	case measurement:
		return m.measured(line)
	}
	return exactly(stats.Of(line, m.name)), nil
}

// latencies are the percentiles of latency: their names, and how many of perMany transactions
// are slower.
var latencies = map[string]struct {
	which  string
	slower int64
	of     func(results.TrialLine) float64
	all    func(*results.Percentiles) float64
}{
	p10Latency:        {"10th", 90_000, func(l results.TrialLine) float64 { return l.P10Millis }, func(p *results.Percentiles) float64 { return p.P10Millis }},
	stats.P50Latency:  {"50th", 50_000, func(l results.TrialLine) float64 { return l.P50Millis }, func(p *results.Percentiles) float64 { return p.P50Millis }},
	stats.P90Latency:  {"90th", 10_000, func(l results.TrialLine) float64 { return l.P90Millis }, func(p *results.Percentiles) float64 { return p.P90Millis }},
	stats.P99Latency:  {"99th", 1000, func(l results.TrialLine) float64 { return l.P99Millis }, func(p *results.Percentiles) float64 { return p.P99Millis }},
	stats.P999Latency: {"99.9th", 100, func(l results.TrialLine) float64 { return l.P999Millis }, func(p *results.Percentiles) float64 { return p.P999Millis }},

	p75Latency:       {"75th", 25_000, func(l results.TrialLine) float64 { return l.Percentiles["P75"] }, func(p *results.Percentiles) float64 { return p.P75Millis }},
	stats.P95Latency: {"95th", 5000, func(l results.TrialLine) float64 { return l.P95Millis }, func(p *results.Percentiles) float64 { return p.P95Millis }},
	p9999Latency:     {"99.99th", 10, func(l results.TrialLine) float64 { return l.Percentiles["P9999"] }, func(p *results.Percentiles) float64 { return p.P9999Millis }},
	p99999Latency:    {"99.999th", 1, func(l results.TrialLine) float64 { return l.Percentiles["P99999"] }, func(p *results.Percentiles) float64 { return p.P99999Millis }},
}

// perMany is the whole for the shares of latencies.
const perMany = 100_000

// slowerSamples is how many transactions must be slower than a percentile. With fewer, the number
// is really that of another percentile. With n transactions, the one of rank pn has a share of
// pn/(n+1) below it. So the share above it is too great by 1/(n(1-p)): by a tenth with 10. Below
// the median, the faster transactions are the few ones.
const slowerSamples = 10

// latency reads the mean or a percentile.
func (m metric) latency(line results.TrialLine) (sample, error) {
	percentile, ok := latencies[m.name]
	if !ok {
		if !stats.Has(line, m.name) && line.RunSummary {
			return sample{}, fmt.Errorf("the clients of trial %d do not say their mean latency", line.Number)
		}
		if !stats.Has(line, m.name) {
			return sample{}, fmt.Errorf("trial %d committed nothing, so that it has no latency", line.Number)
		}
		return exactly(stats.Of(line, m.name)), nil
	}
	millis, needs := percentile.of(line), slowerSamples*perMany/min(percentile.slower, perMany-percentile.slower)
	few, other := "slower", "lower"
	if percentile.slower > perMany/2 {
		few, other = "faster", "higher"
	}
	switch {
	case millis == 0 && line.Committed == 0:
		return sample{}, fmt.Errorf("trial %d committed nothing, so that it has no latency", line.Number)
	case millis == 0: // results from before did not have it
		return sample{}, fmt.Errorf("trial %d does not say its %s percentile", line.Number, percentile.which)
	case line.Committed > 0 && line.Committed < needs:
		return sample{}, fmt.Errorf("trial %d committed %d transactions; the %s percentile needs %d, so that %d are %s: "+
			"measure for longer, or claim a %s percentile", line.Number, line.Committed, percentile.which, needs, slowerSamples, few, other)
	}
	return m.ofAll(line, millis), nil
}

// ofAll takes failed requests into account: without an answer in time, with an error, or never
// sent. No histogram has them. They count as slower than all requests in it. With C committed and F
// failed requests the p-th percentile of all is the p (C+F)/C-th of the committed. Where that rank
// lies among failed requests, the measured value is a lower bound. Older results do not have the
// percentile of all requests, and only give bounds.
func (m metric) ofAll(line results.TrialLine, millis float64) sample {
	failed, all := line.Errors+line.Timeouts+line.Unsent, line.Committed+line.Errors+line.Timeouts+line.Unsent
	percentile := latencies[m.name]
	s := exactly(millis)
	switch {
	case failed == 0:
		return s
	case failed*perMany > all*percentile.slower:
		s.low, s.high = max(millis, line.P999Millis), math.Inf(1)
		s.value = s.low
		s.remark = fmt.Sprintf("%s of %d requests failed, so that the %s percentile of all requests is this or more",
			percent(failed, all), all, percentile.which)
		return s
	case line.OfAll != nil && percentile.all(line.OfAll) > 0:
		return exactly(percentile.all(line.OfAll))
	}
	s.high = math.Inf(1)
	for _, name := range []string{stats.P50Latency, p75Latency, stats.P90Latency, stats.P95Latency, stats.P99Latency, stats.P999Latency} {
		// the committed requests slower than the percentile of all are at least as many as those
		// slower than this known percentile
		if k := latencies[name]; k.of(line) > 0 && all*percentile.slower-perMany*failed >= line.Committed*k.slower {
			s.high = max(millis, k.of(line))
			break
		}
	}
	s.remark = fmt.Sprintf("%s of %d requests failed, and these results do not have the %s percentile of all requests: it is this or more", percent(failed, all), all, percentile.which)
	return s
}

// percent writes a share.
func percent(part, whole int64) string {
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'g', 2, 64) + "%"
}

// rate reads the share of attempts that aborted, or of requests that failed: with an error, by a
// timeout, or, in an open loop, since they were never sent.
func (m metric) rate(line results.TrialLine) (sample, error) {
	ended := stats.Ended(line)
	aborts := m.name == stats.AbortRate
	errors, timeouts := stats.Reports(line, results.CounterErrors), stats.Reports(line, results.CounterTimeouts)
	switch {
	case aborts && !stats.Reports(line, results.CounterAborted):
		return sample{}, fmt.Errorf("trial %d does not know its aborts: its client does not report them", line.Number)
	case !aborts && !errors && !timeouts:
		return sample{}, fmt.Errorf("trial %d does not know its errors and timeouts: its client does not report them", line.Number)
	case ended+line.Unsent == 0:
		return sample{}, fmt.Errorf("trial %d has no attempt that ended", line.Number)
	case aborts && ended == 0:
		return sample{}, fmt.Errorf("trial %d has no attempt that ended", line.Number)
	case aborts:
		return exactly(stats.Of(line, stats.AbortRate)), nil
	}
	return exactly(float64(line.Errors+line.Timeouts+line.Unsent) / float64(ended+line.Unsent)), nil
}

// measured reads the trial's value of a measurement.
func (m metric) measured(line results.TrialLine) (sample, error) {
	for _, x := range line.Measurements {
		switch {
		case x.Name != m.measurement:
		case x.Value == nil:
			return sample{}, fmt.Errorf("trial %d: %s was not measured: %s", line.Number, x.Name, x.Reason)
		default:
			return exactly(*x.Value), nil
		}
	}
	return sample{}, fmt.Errorf("trial %d has no measurement %s", line.Number, m.measurement)
}

// binMillis is the resolution of instants that are read from a timeline.
const binMillis = float64(results.TimelineInterval / time.Millisecond)

// recovery reads the effect of one occurrence of a fault. Noise may hide a dip: a trial without a
// dip, or with one that noise may have made, gives bounds. If the fault was not noticed, there is
// no time of detection.
func (m metric) recovery(line results.TrialLine) (sample, error) {
	i := slices.IndexFunc(line.Recovery, func(r results.Recovery) bool { return r.Fault == m.fault && r.Time == m.time })
	if i < 0 {
		return sample{}, fmt.Errorf("trial %d has no recovery from fault %s, time %d: it did not act within the measurement window", line.Number, m.fault, m.time)
	}
	r := line.Recovery[i]
	switch {
	case r.Error != "":
		return sample{}, fmt.Errorf("trial %d: the recovery from fault %s, time %d, was not measured: %s", line.Number, m.fault, m.time, r.Error)
	case !r.Dipped && m.name == timeToDetect:
		return sample{}, fmt.Errorf("trial %d: %s", line.Number, stats.NoDip.Text())
	case !r.Dipped:
		return m.withoutDip(r, line.Throughput), nil
	}
	s := exactly(map[string]float64{timeToDetect: r.DetectMillis, dip: r.Depth, timeTo90: r.RecoverMillis, goodputLost: r.LostTransactions}[m.name])
	if m.name == timeToDetect || m.name == timeTo90 {
		s.high += binMillis // the instant is the start of a bin
	}
	if r.LeastDip > 0 && r.Depth < r.LeastDip {
		return m.shallow(r, s), nil
	}
	if !r.Recovered && (m.name == timeTo90 || m.name == goodputLost) {
		s.high, s.remark = math.Inf(1), stats.NotRecovered.Text()
	}
	return s, nil
}

// shallow gives bounds from a dip that noise may have made: no dip was deeper than noise hides.
func (m metric) shallow(r results.Recovery, s sample) sample {
	s.remark = stats.ShallowDip.Text()
	switch m.name {
	case dip:
		s.low, s.high = 0, math.Min(1, r.LeastDip)
	case timeTo90, goodputLost:
		s.low, s.high = math.Min(0, s.value), math.Inf(1)
	}
	return s
}

// withoutDip gives bounds from a trial in which no dip was found: any dip was small enough for
// noise to hide it. The argument throughput is about that before the fault.
func (m metric) withoutDip(r results.Recovery, throughput float64) sample {
	s := sample{remark: stats.NoDip.Text()}
	switch {
	case r.LeastDip == 0:
		s.high = math.Inf(1)
		s.remark += "; these results are of a version that did not keep which dip could have been seen"
	case m.name == dip:
		s.high = r.LeastDip
		s.remark += fmt.Sprintf("; the least that could have been seen is %.0f%%", 100*r.LeastDip)
	case r.ResolvedMillis == 0:
		s.high = math.Inf(1)
		s.remark += fmt.Sprintf("; noise hides a fall to 90%%, however long: the least dip that could have been seen is %.0f%%", 100*r.LeastDip)
	default:
		s.high = r.ResolvedMillis
		if m.name == goodputLost {
			s.high = r.LeastDip * throughput * r.ResolvedMillis / 1000
		}
		s.remark += fmt.Sprintf("; a fall to 90%% is seen that lasts %.1f s", r.ResolvedMillis/1000)
	}
	return s
}
