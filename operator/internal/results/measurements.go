package results

import (
	"fmt"
	"maps"
	"strings"
)

// Measurement is what became of one of an experiment's measurements in a trial.
type Measurement struct {
	Name string `json:"name"`
	// Value in the measurement's unit. Nil: it was not measured, and Reason says why.
	Value  *float64 `json:"value,omitempty"`
	Reason string   `json:"reason,omitempty"`
}

// MeasurementColumn is one of an experiment's measurements: what the numbers of its name are.
type MeasurementColumn struct {
	Name  string `json:"name"`
	Unit  string `json:"unit,omitempty"`
	Query string `json:"query,omitempty"`
	// Over says how the window's values of the query became one: Last, Mean, Minimum or Maximum.
	Over string `json:"over,omitempty"`
	// Counter of the clients that the numbers are, and Per: the one that it is divided by. Empty:
	// the numbers are of a query.
	Counter string `json:"counter,omitempty"`
	Per     string `json:"per,omitempty"`
	// Use of resources by the pods that the numbers are. Nil: they are of a query or a counter.
	Use *Use `json:"use,omitempty"`
}

// Read reads a measurement off a trial: off the counters of its clients, or off what its pods used.
// It returns false for what only Prometheus can say.
func (c MeasurementColumn) Read(t *Trial) (Measurement, bool) {
	switch {
	case c.Counter != "":
		return Counted(c.Name, c.Counter, c.Per, OwnNumbers(t)), true
	case c.Use != nil:
		return Used(c.Name, c.Unit, *c.Use, t), true
	}
	return Measurement{}, false
}

// OwnNumbers are what a trial says beside throughput, latency and resources, by the names that
// measurements have for it:
//
//   - counters of their drivers,
//   - latencies by kind of operation, by node that answered and by region,
//   - what clients that misbehave did, and their share,
//   - what pods got that came back after a fault,
//   - what checks printed, and what each of several clients said of its run,
//   - numbers of the clients' own, which stand before the others: a System names them.
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
			if _, counts := t.MisbehavingDriver[n.name]; !counts { // the driver's own stand first
				to[misbehavingPrefix+n.name] = float64(*n.value)
			}
		}
		if all := m.ended() + t.Summary.ended(); all > 0 {
			to[misbehavingTransactions] = float64(m.ended()) / float64(all)
		}
	}
}

// restored adds what pods got that came back after a fault: bytes are added up over its times, and
// the longest time counts.
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

// ended are the transactions that ended in the window, however they did.
func (c Counters) ended() int64 { return c.Committed + c.GivenUp + c.Errors + c.Timeouts }

// Counted reads a measurement off the counters and own numbers of the clients (OwnNumbers),
// counters of all of a trial's added up. A counter that is not among them is unknown, and not 0.
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
