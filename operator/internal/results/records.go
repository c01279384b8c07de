package results

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// Records say how a client's report is read that has a line for each operation: where a line says
// how long the operation took, when that was, and how it ended. As v1alpha1.ClientRecords, with its
// defaults in place.
type Records struct {
	// Pattern of a line with named groups, for the format RegularExpression. Lines that do not
	// match are other output.
	Pattern string `json:"pattern,omitempty"`
	// Separator of columns, for the format CSV, whose first line names them.
	Separator string        `json:"separator,omitempty"`
	Latency   RecordLatency `json:"latency"`
	Instant   RecordInstant `json:"instant"`
	// Outcome is nil where every line is a committed transaction.
	Outcome *RecordOutcome `json:"outcome,omitempty"`
}

// RecordLatency is a group or column with a latency.
type RecordLatency struct {
	From string `json:"from"`
	Unit string `json:"unit"` // ns, us, ms or s
}

// FromArrival is where a line's instant is from that has none: when it came.
const FromArrival = "Arrival"

// RecordInstant is a group or column with an instant, or FromArrival.
type RecordInstant struct {
	From  string `json:"from"`
	Unit  string `json:"unit"`  // ns, us, ms or s; empty for FromArrival
	Clock string `json:"clock"` // Monotonic or Wall
	Of    string `json:"of"`    // Begin or End
}

// The clocks and the instants of records.
const (
	ClockMonotonic = "Monotonic"
	ClockWall      = "Wall"
	OfBegin        = "Begin"
	OfEnd          = "End"
)

// RecordOutcome is a group or column that says how an operation ended, and what its texts mean.
type RecordOutcome struct {
	From      string   `json:"from"`
	Committed []string `json:"committed"`
	Aborted   []string `json:"aborted,omitempty"`
	Errors    []string `json:"errors,omitempty"`
	Timeouts  []string `json:"timeouts,omitempty"`
}

// RecordUnits are the units of latencies and instants.
var RecordUnits = map[string]time.Duration{"ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond, "s": time.Second}

// ByArrival reports whether a line's instant is that of its arrival.
func (r Records) ByArrival() bool { return r.Instant.From == FromArrival }

// Fields are the groups or columns that are read: of the latency, of the instant unless it is that
// of arrival, and of the outcome if there is one.
func (r Records) Fields() []string {
	fields := []string{r.Latency.From}
	if !r.ByArrival() {
		fields = append(fields, r.Instant.From)
	}
	if r.Outcome != nil {
		fields = append(fields, r.Outcome.From)
	}
	return fields
}

// CompilePattern compiles the pattern, and refuses one that lacks a group that is read.
func (r Records) CompilePattern() (*regexp.Regexp, error) {
	pattern, err := regexp.Compile(r.Pattern)
	if err != nil {
		return nil, fmt.Errorf("must be a regular expression as RE2 has them (no look-around, no back-references): %w", err)
	}
	for _, name := range r.Fields() {
		if pattern.SubexpIndex(name) < 0 {
			return nil, fmt.Errorf("has no group (?P<%s>...)", name)
		}
	}
	return pattern, nil
}

// Check refuses records that cannot be read, except for a pattern (CompilePattern).
func (r Records) Check() error {
	units := map[string]string{"latency": r.Latency.Unit}
	if !r.ByArrival() {
		units["instant"] = r.Instant.Unit
	}
	for what, unit := range units {
		if RecordUnits[unit] == 0 {
			return fmt.Errorf("the unit of %s is %q; it must be ns, us, ms or s", what, unit)
		}
	}
	switch {
	case r.ByArrival() && r.Instant.Of != OfEnd:
		return errors.New("a line comes when its operation is over: instant must be of End")
	case slices.Contains(r.Fields(), ""):
		return errors.New("latency, instant and outcome must each say where they are from")
	case r.Instant.Clock != ClockMonotonic && r.Instant.Clock != ClockWall:
		return fmt.Errorf("the clock of instant is %q; it must be %s or %s", r.Instant.Clock, ClockMonotonic, ClockWall)
	case r.Instant.Of != OfBegin && r.Instant.Of != OfEnd:
		return fmt.Errorf("instant is of %q; it must be of %s or %s", r.Instant.Of, OfBegin, OfEnd)
	case r.Outcome == nil:
		return nil
	}
	seen := map[string]bool{}
	for _, text := range slices.Concat(r.Outcome.Committed, r.Outcome.Aborted, r.Outcome.Errors, r.Outcome.Timeouts) {
		if seen[text] {
			return fmt.Errorf("the outcome %q has two meanings", text)
		}
		seen[text] = true
	}
	return nil
}
