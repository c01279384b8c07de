package results

import (
	"fmt"
	"maps"
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
}

// OwnNumbers are the counters of a trial's clients, the latencies of kinds of operations and the
// numbers of the clients' own, by name. The latter stand first: a System names them.
func OwnNumbers(driver map[string]int64, s Summary) map[string]float64 {
	own := make(map[string]float64, len(driver)+len(s.Numbers))
	for name, n := range driver {
		own[name] = float64(n)
	}
	for _, o := range s.Operations {
		o.ownNumbers(own)
	}
	maps.Copy(own, s.Numbers)
	return own
}

// Counted reads a measurement off the counters and own numbers of the clients (OwnNumbers),
// counters of all of a trial's added up. A counter that is not among them is unknown, and not 0.
func Counted(name, counter, per string, driver map[string]float64) Measurement {
	m := Measurement{Name: name}
	count, known := driver[counter]
	if !known {
		m.Reason = fmt.Sprintf("no client reports the counter %s", counter)
		return m
	}
	value := count
	if per != "" {
		by, known := driver[per]
		switch {
		case !known:
			m.Reason = fmt.Sprintf("no client reports the counter %s", per)
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
