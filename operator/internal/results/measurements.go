package results

import (
	"fmt"
	"maps"
	"strings"

	"assay.dev/assay/operator/internal/model/timeline"
)

// Measurement is the result of one of an experiment's measurements in a trial.
type Measurement struct {
	Name string `json:"name"`
	// Value in the measurement's unit. Nil: it was not measured, and Reason says why.
	Value  *float64 `json:"value,omitempty"`
	Reason string   `json:"reason,omitempty"`
}

// MeasurementColumn is one of an experiment's measurements: the meaning of the numbers with its
// name.
type MeasurementColumn struct {
	Name  string `json:"name"`
	Unit  string `json:"unit,omitempty"`
	Query string `json:"query,omitempty"`
	// Over says how the window's values of the query became one: Last, Mean, Minimum or Maximum.
	Over string `json:"over,omitempty"`
	// Counter is the clients' counter that the numbers come from, and Per the counter by which it
	// is divided. Empty: the numbers do not come from a counter.
	Counter string `json:"counter,omitempty"`
	Per     string `json:"per,omitempty"`
	// Use is the use of resources that the numbers come from. Nil: they come from a query or a
	// counter.
	Use *Use `json:"use,omitempty"`
}

// Read reads a measurement from a trial: from the counters of its clients, or from its pods' use of
// resources. It returns false for a query, which only Prometheus can answer.
func (c MeasurementColumn) Read(t *Trial) (Measurement, bool) {
	switch {
	case c.Counter != "":
		return Counted(c.Name, c.Counter, c.Per, OwnNumbers(t)), true
	case c.Use != nil:
		return Used(c.Name, c.Unit, *c.Use, t), true
	}
	return Measurement{}, false
}

// OwnNumbers are a trial's numbers besides throughput, latency and resources, by the names that
// measurements use:
//
//   - counters of their drivers,
//   - latencies by kind of operation, by node that answered and by region,
//   - counters of clients that misbehave, and their share,
//   - bytes and times of pods that came back after a fault,
//   - numbers that checks printed, and numbers of each client's run if there are several clients,
//   - times of commands at an instant,
//   - numbers of the clients' own, which a System names; they override the others.
func OwnNumbers(t *Trial) map[string]float64 {
	own := make(map[string]float64, len(t.Driver)+len(t.Summary.Numbers))
	for name, n := range t.Driver {
		own[name] = float64(n)
	}
	ownNumbers(operationPrefix, t.Summary.Operations, own)
	ownNumbers(nodePrefix, t.Summary.Nodes, own)
	ownNumbers(regionPrefix, t.Summary.Regions, own)
	t.misbehaved(own)
	t.restored(own)
	t.checked(own)
	t.byClient(own)
	t.commanded(own)
	maps.Copy(own, t.Summary.Numbers)
	return own
}

// The names of numbers about clients that misbehave on purpose.
const (
	misbehavingShare        = "misbehavingShare"
	misbehavingTransactions = "misbehavingTransactionShare"
	misbehavingPrefix       = "misbehaving:"
)

// misbehaved adds the counters of misbehaving clients, and their share of the transactions that
// ended in the window. The shares of a trial without such clients are 0.
func (t *Trial) misbehaved(to map[string]float64) {
	for name, n := range t.MisbehavingDriver {
		to[misbehavingPrefix+name] = float64(n)
	}
	if t.CorrectClients <= 0 && t.Clients > 0 && t.MisbehavingCounters == nil {
		return // results from before there were such clients
	}
	if t.Clients > 0 {
		to[misbehavingShare] = float64(t.Clients-t.CorrectClients) / float64(t.Clients)
	}
	if t.CorrectClients == t.Clients {
		to[misbehavingTransactions] = 0
	}
	if m := t.MisbehavingCounters; m != nil {
		for _, n := range m.all() {
			if _, counts := t.MisbehavingDriver[n.name]; !counts { // the driver's own counters take precedence
				to[misbehavingPrefix+n.name] = float64(*n.value)
			}
		}
		if all := m.ended() + t.Summary.ended(); all > 0 {
			to[misbehavingTransactions] = float64(m.ended()) / float64(all)
		}
	}
}

// restored adds the bytes that pods received when they came back after a fault, and how long that
// took. It adds up the bytes of all occurrences of a fault, and takes the longest time.
func (t *Trial) restored(to map[string]float64) {
	for _, r := range t.Recovery {
		if r.Data == nil {
			continue
		}
		to["restoredBytes:"+r.Fault] += float64(r.Data.ReceivedBytes)
		to["restoredDiskBytes:"+r.Fault] += float64(r.Data.DiskWrittenBytes)
		to["restoreMillis:"+r.Fault] = max(to["restoreMillis:"+r.Fault], r.Data.RestoreMillis)
	}
}

// commanded adds how long the commands of a fault took, in milliseconds: the longest of all pods
// and times. A command that failed does not count.
func (t *Trial) commanded(to map[string]float64) {
	for _, f := range t.Faults {
		if f.Kind == string(timeline.Execute) && f.Error == "" && !f.Skipped {
			name := "commandMillis:" + f.Fault
			to[name] = max(to[name], f.ConfirmedMillis-f.StartedMillis)
		}
	}
}

// ended counts the transactions that ended in the window, with any outcome.
func (c Counters) ended() int64 { return c.Committed + c.GivenUp + c.Errors + c.Timeouts }

// Counted reads a measurement from a trial's OwnNumbers, in which the counters of all clients are
// added up. A counter that is not among them is unknown, and not 0.
func Counted(name, counter, per string, driver map[string]float64) Measurement {
	m := Measurement{Name: name}
	count, known := driver[counter]
	if !known {
		m.Reason = unknownCounter(counter)
		return m
	}
	value := count
	if per != "" {
		by, known := driver[per]
		switch {
		case !known:
			m.Reason = unknownCounter(per)
			return m
		case by == 0:
			m.Reason = fmt.Sprintf("the counter %s is 0", per)
			return m
		}
		value /= by
	}
	m.Value = &value
	return m
}

// unknownCounter says why there is no such number.
func unknownCounter(name string) string {
	if of, number, found := strings.Cut(name, ":"); found && strings.HasPrefix(of, checkPrefix) {
		return fmt.Sprintf("not every pod of a check prints the number %s", number)
	}
	return fmt.Sprintf("no client reports the counter %s", name)
}
