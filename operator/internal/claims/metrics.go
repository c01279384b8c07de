package claims

import (
	"cmp"
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/stats"
)

// metric is what one trial gives one number of. Those of package stats have its names.
type metric struct {
	name string
	// fault and time, from 1, of a metric that is about a fault's recovery.
	fault string
	time  int
	// measurement that Prometheus was asked for, of a metric of that name.
	measurement string
}

// The metrics that package stats does not have.
const (
	p90Latency       = "p90Latency"
	p999Latency      = "p999Latency"
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

// signed is true for a metric that may be negative: Prometheus may be asked for anything, and work that was made up for counts against what was lost.
func (m metric) signed() bool { return m.name == measurement || m.name == goodputLost }

// sample is the number that one trial gives.
type sample struct {
	value float64
	// atLeast: the trial shows a lower bound only.
	atLeast bool
	// remark is what a reader of the number must know.
	remark string
}

// of reads a metric of a trial, or says why the trial does not have it.
func (m metric) of(line results.TrialLine) (sample, error) {
	switch m.name {
	case p90Latency:
		return kept(line.P90Millis, line, "90th")
	case p999Latency:
		return kept(line.P999Millis, line, "99.9th")
	case errorRate:
		ended := line.Committed + line.Aborted + line.Errors + line.Timeouts
		if ended == 0 {
			return sample{}, nil
		}
		return sample{value: float64(line.Errors+line.Timeouts) / float64(ended)}, nil
	case perCorrectClient:
		if line.CorrectClients < 1 {
			return sample{}, fmt.Errorf("trial %d does not say how many of its clients were correct", line.Number)
		}
		// stats.PerCorrectClient with the division by the window's length done already.
		return sample{value: line.Throughput / float64(line.CorrectClients)}, nil
	case timeToDetect, dip, timeTo90, goodputLost:
		return m.recovery(line)
	case measurement:
		return m.measured(line)
	}
	return sample{value: stats.Of(line, m.name)}, nil
}

// kept is a percentile that results of before did not have.
func kept(millis float64, line results.TrialLine, which string) (sample, error) {
	if millis == 0 && line.Committed > 0 {
		return sample{}, fmt.Errorf("trial %d does not say its %s percentile", line.Number, which)
	}
	return sample{value: millis}, nil
}

// measured reads what Prometheus said of the trial.
func (m metric) measured(line results.TrialLine) (sample, error) {
	for _, x := range line.Measurements {
		switch {
		case x.Name != m.measurement:
		case x.Value == nil:
			return sample{}, fmt.Errorf("trial %d: %s was not measured: %s", line.Number, x.Name, x.Reason)
		default:
			return sample{value: *x.Value}, nil
		}
	}
	return sample{}, fmt.Errorf("trial %d has no measurement %s", line.Number, m.measurement)
}

// recovery reads what one time of a fault did. A fault without a dip cost nothing, and the time to recover from it is 0; when it was noticed is no number then.
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
		return sample{remark: stats.NoDip.Text()}, nil
	}
	s := sample{value: map[string]float64{timeToDetect: r.DetectMillis, dip: r.Depth, timeTo90: r.RecoverMillis, goodputLost: r.LostTransactions}[m.name]}
	if !r.Recovered && (m.name == timeTo90 || m.name == goodputLost) {
		s.atLeast, s.remark = true, stats.NotRecovered.Text()
	}
	return s, nil
}
