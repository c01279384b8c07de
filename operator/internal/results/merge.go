package results

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Merged is the merged report of all clients of a trial.
type Merged struct {
	// Clients of all pods.
	Clients int32
	// CorrectClients counts the clients whose requests are in the numbers: all but those that
	// misbehaved on purpose.
	CorrectClients int32
	// MeasureNanos is the length of the window.
	MeasureNanos int64
	Summary      Summary
	// ClientSummaries are those of Trial.
	ClientSummaries []ClientSummary
	// Latency is the merged histogram of committed transactions.
	Latency  *Histogram
	Timeline Timeline
	// Driver counters, added up by name.
	Driver map[string]int64
	// MisbehavingDriver has the driver counters of clients that misbehaved on purpose.
	MisbehavingDriver map[string]int64
	// MisbehavingCounters count the requests of these clients by outcome; nil: unknown for some of
	// them.
	MisbehavingCounters *Counters
	// StartSpread is how far apart the first and the last client pod started. Pods that sent
	// nothing do not count.
	StartSpread time.Duration
}

// Merge puts the reports of all client pods together. The order of clients does not matter. It
// refuses reports of different runs (windows of different lengths, an index twice), reports that
// contradict themselves, and reports of failed clients.
func Merge(clients []Client) (Merged, error) {
	if len(clients) == 0 {
		return Merged{}, errors.New("merge the clients' results: there are none")
	}
	clients = slices.Clone(clients)
	slices.SortFunc(clients, func(a, b Client) int { return int(a.Index) - int(b.Index) })
	m := Merged{MeasureNanos: clients[0].MeasureNanos, Driver: map[string]int64{}, MisbehavingDriver: map[string]int64{}}
	latency, lag, own := newHistogramSum(), newHistogramSum(), newHistogramSum()
	operations, nodes := operationSums{}, operationSums{}
	var counters Counters
	for i, c := range clients {
		if i > 0 && c.Index == clients[i-1].Index {
			return Merged{}, fmt.Errorf("merge the clients' results: client %d reported twice", c.Index)
		}
		if (c.RunSummary == nil) != (clients[0].RunSummary == nil) {
			return Merged{}, fmt.Errorf("merge the clients' results: client %d reports of its whole run and client %d of the window, or the other way round",
				c.Index, clients[0].Index)
		}
		if err := m.add(c, &counters, latency, lag); err != nil {
			return Merged{}, fmt.Errorf("merge the results of client %d: %w", c.Index, err)
		}
		if _, err := own.addIfAny(c.GeneratorLag); err != nil {
			return Merged{}, fmt.Errorf("merge the results of client %d: generatorLag: %w", c.Index, err)
		}
		if err := errors.Join(operations.add(c.Operations), nodes.add(c.Nodes)); err != nil {
			return Merged{}, fmt.Errorf("merge the results of client %d: %w", c.Index, err)
		}
	}
	m.MisbehavingCounters = misbehaved(clients)
	m.Timeline = mergeTimelines(clients)
	m.StartSpread = startSpread(clients)
	m.Latency = latency.histogram()
	counters.OutOfRange = m.Latency.OutOfRange()
	if clients[0].RunSummary == nil { // the timeline of one, and none of another
		if err := Agree(counters, m.Latency.Count(), m.Timeline, time.Duration(m.MeasureNanos)); err != nil {
			return Merged{}, fmt.Errorf("merge the clients' results: %w; either all clients have a timeline, or none", err)
		}
	}
	unreported := m.Summary.Unreported
	m.Summary = Summarize(counters, m.Latency, time.Duration(m.MeasureNanos))
	if clients[0].RunSummary != nil {
		m.Summary, m.ClientSummaries = mergeRunSummaries(counters, clients), clientSummaries(clients)
	}
	m.Summary.Unreported = unreported
	m.Summary.Operations, m.Summary.Nodes = operations.summaries(time.Duration(m.MeasureNanos)), nodes.summaries(time.Duration(m.MeasureNanos))
	m.Summary.SendLagP99Millis = Millis(lag.histogram().Percentile(99))
	m.Summary.GeneratorLagP99Millis = Millis(own.histogram().Percentile(99))
	return m, nil
}

func (m *Merged) add(c Client, counters *Counters, latency, lag *histogramSum) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Failure != "" {
		return fmt.Errorf("the client failed: %s", c.Failure)
	}
	if c.MeasureNanos != m.MeasureNanos {
		return fmt.Errorf("its window is %v long, that of the others %v", time.Duration(c.MeasureNanos), time.Duration(m.MeasureNanos))
	}
	n, err := latency.addIfAny(c.Latency)
	if err != nil {
		return fmt.Errorf("latency: %w", err)
	}
	if c.RunSummary == nil {
		if err := Agree(c.Counters, n, c.Timeline, time.Duration(c.MeasureNanos)); err != nil {
			return err
		}
	}
	if _, err := lag.addIfAny(c.SendLag); err != nil {
		return fmt.Errorf("sendLag: %w", err)
	}
	latency.outOfRange += c.Counters.OutOfRange
	m.Summary.Unreported = union(m.Summary.Unreported, c.Unreported)
	counters.Add(c.Counters)
	m.Clients += c.Clients
	m.CorrectClients += c.Clients - c.MisbehavingClients
	for name, n := range c.Driver {
		m.Driver[name] += n
	}
	for name, n := range c.MisbehavingDriver {
		m.MisbehavingDriver[name] += n
	}
	return nil
}

// misbehaved adds up the counters of clients that misbehaved. It returns nil if there were no such
// clients, or if a pod with such clients does not report them.
func misbehaved(clients []Client) *Counters {
	var sum *Counters
	for _, c := range clients {
		switch {
		case c.MisbehavingClients == 0:
		case c.MisbehavingCounters == nil:
			return nil
		default:
			if sum == nil {
				sum = &Counters{}
			}
			sum.Add(*c.MisbehavingCounters)
		}
	}
	return sum
}

// addIfAny is add, for which an empty text is an empty histogram.
func (h *histogramSum) addIfAny(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	return h.add(s)
}

// morePercentiles of a histogram are those of Summary.Percentiles.
var morePercentiles = map[string]float64{"P75": 75, "P95": 95, "P9999": 99.99, "P99999": 99.999}

// Summarize turns the counters and the latencies of a window into its numbers.
func Summarize(c Counters, latency *Histogram, window time.Duration) Summary {
	s := Summary{
		Counters:   c,
		MeanMillis: float64(latency.Mean()) / 1e6,
		P10Millis:  Millis(latency.Percentile(10)),
		P50Millis:  Millis(latency.Percentile(50)),
		P90Millis:  Millis(latency.Percentile(90)),
		P99Millis:  Millis(latency.Percentile(99)),
		P999Millis: Millis(latency.Percentile(99.9)),
		MaxMillis:  Millis(latency.Max()),
	}
	if latency.Count() > 0 {
		s.Percentiles = map[string]float64{}
		for name, p := range morePercentiles {
			s.Percentiles[name] = Millis(latency.Percentile(p))
		}
	}
	s.OfAll = percentilesOfAll(latency, c.Failed())
	if window > 0 {
		s.Throughput = float64(c.Committed) / window.Seconds()
	}
	return s
}

// percentilesOfAll are those of committed and failed requests; nil if no request failed, since they
// then equal those of the committed ones.
func percentilesOfAll(latency *Histogram, failed int64) *Percentiles {
	if failed == 0 || latency.Count() == 0 {
		return nil
	}
	of := func(p float64) float64 { return Millis(latency.PercentileOfAll(p, failed)) }
	return &Percentiles{P10Millis: of(10), P50Millis: of(50), P90Millis: of(90), P99Millis: of(99), P999Millis: of(99.9),
		P75Millis: of(75), P95Millis: of(95), P9999Millis: of(99.99), P99999Millis: of(99.999)}
}

// Millis are the milliseconds of a duration.
func Millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func startSpread(clients []Client) time.Duration {
	var starts []int64
	for _, c := range clients {
		if !c.NothingSent {
			starts = append(starts, c.StartedNanos)
		}
	}
	if len(starts) == 0 {
		return 0
	}
	return time.Duration(slices.Max(starts) - slices.Min(starts))
}

// mergeTimelines adds the bins that start at the same instant; where a client has no bin it adds
// nothing.
func mergeTimelines(clients []Client) Timeline {
	interval := TimelineInterval.Milliseconds()
	var first, end int64
	seen := false
	for _, c := range clients {
		t := c.Timeline
		if len(t.Committed) == 0 {
			continue
		}
		e := t.FirstMillis + interval*int64(len(t.Committed))
		if !seen {
			first, end, seen = t.FirstMillis, e, true
		}
		first, end = min(first, t.FirstMillis), max(end, e)
	}
	out := NewTimeline(first, int((end-first)/interval))
	for _, c := range clients {
		at := int((c.Timeline.FirstMillis - first) / interval)
		for i := range c.Timeline.Committed {
			out.Committed[at+i] += c.Timeline.Committed[i]
			out.Aborted[at+i] += c.Timeline.Aborted[i]
			out.Failed[at+i] += c.Timeline.Failed[i]
			out.LatencySumMicros[at+i] += c.Timeline.LatencySumMicros[i]
		}
		for i, n := range c.Timeline.Offered {
			if out.Offered == nil {
				out.Offered = make([]int64, len(out.Committed))
			}
			out.Offered[at+i] += n
		}
	}
	return out
}

// NewTimeline returns a timeline of empty bins.
func NewTimeline(firstMillis int64, bins int) Timeline {
	return Timeline{
		IntervalMillis: TimelineInterval.Milliseconds(), FirstMillis: firstMillis,
		Committed: make([]int64, bins), Aborted: make([]int64, bins), Failed: make([]int64, bins), LatencySumMicros: make([]int64, bins),
	}
}

// DriverNames returns the names of the driver counters in order, for output.
func (m Merged) DriverNames() []string { return slices.Sorted(maps.Keys(m.Driver)) }
