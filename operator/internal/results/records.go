package results

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Records say how to read a client's report that has a line for each operation. They say where a
// line has the operation's latency, its instant and its outcome. They have the fields of
// v1alpha1.ClientRecords, with the defaults filled in.
type Records struct {
	// Pattern of a line with named groups, for the format RegularExpression. Lines that do not
	// match are other output.
	Pattern string `json:"pattern,omitempty"`
	// Separator of columns, for the format CSV, whose first line names them.
	Separator string `json:"separator,omitempty"`
	// Where has the values that members of a line must have, by their paths, for the format
	// JSONLines. Lines without them are other output.
	Where   map[string]string `json:"where,omitempty"`
	Latency RecordLatency     `json:"latency"`
	Instant RecordInstant     `json:"instant"`
	// Outcome is nil where every line is a committed transaction.
	Outcome *RecordOutcome `json:"outcome,omitempty"`
	// Operation is a group or column with the kind of operation; empty: there is none.
	Operation string `json:"operation,omitempty"`
	// Node is a group or column with the node that answered; empty: there is none.
	Node string `json:"node,omitempty"`
}

// RecordLatency is a group or column with a latency, or, as Since, with the instant at which the
// operation began.
type RecordLatency struct {
	From  string `json:"from,omitempty"`
	Unit  string `json:"unit,omitempty"` // ns, us, ms or s; empty with Since
	Since string `json:"since,omitempty"`
}

// FromArrival means that the instant of a line is when it arrived, since the line itself has none.
const FromArrival = "Arrival"

// RecordInstant is a group or column with an instant, or FromArrival.
type RecordInstant struct {
	From string `json:"from"`
	Unit string `json:"unit,omitempty"` // ns, us, ms or s; empty for FromArrival and with Layout
	// Layout of a date, as Go's package time has them, or LayoutRFC3339.
	Layout string `json:"layout,omitempty"`
	// Zone of a date without one: +01:00; empty is UTC.
	Zone string `json:"zone,omitempty"`
	// Fraction is another group or column, whose number is added.
	Fraction *RecordLatency `json:"fraction,omitempty"`
	Clock    string         `json:"clock"` // Monotonic, Wall or SinceStart
	Of       string         `json:"of"`    // Begin or End
}

// The clocks and the instants of records.
const (
	ClockMonotonic  = "Monotonic"
	ClockWall       = "Wall"
	ClockSinceStart = "SinceStart"
	OfBegin         = "Begin"
	OfEnd           = "End"
)

// LayoutRFC3339 is the layout of dates such as 2023-11-14T22:13:22.123Z.
const LayoutRFC3339 = "RFC3339"

// The ways to count outcomes that no list has.
const (
	OthersErrors    = "Errors"
	OthersAborted   = "Aborted"
	OthersTimeouts  = "Timeouts"
	OthersCommitted = "Committed"
	OthersSkipped   = "Skipped"
)

// RecordOutcome is a group or column that says how an operation ended, and what its texts mean. If
// the latency is in the same group or column, a number is a committed transaction.
type RecordOutcome struct {
	From      string   `json:"from"`
	Committed []string `json:"committed,omitempty"`
	Aborted   []string `json:"aborted,omitempty"`
	Errors    []string `json:"errors,omitempty"`
	Timeouts  []string `json:"timeouts,omitempty"`
	// Others are the texts of no list; empty is OthersErrors.
	Others string `json:"others,omitempty"`
}

// Reads reports whether the outcome has endings that count for this counter.
func (o *RecordOutcome) Reads(counter string) bool {
	if o == nil {
		return false
	}
	switch counter {
	case CounterAborted:
		return len(o.Aborted) > 0 || o.Others == OthersAborted
	case CounterTimeouts:
		return len(o.Timeouts) > 0 || o.Others == OthersTimeouts
	case CounterErrors:
		return len(o.Errors) > 0 || o.Others == OthersErrors || o.Others == ""
	}
	return false
}

// Histograms say how a log of HdrHistograms is read. They have the fields of
// v1alpha1.ClientHistograms.
type Histograms struct {
	// Unit of the latencies: ns, us, ms or s.
	Unit string `json:"unit"`
	// Tags of the histograms of committed transactions; none: all that Errors does not list. Errors
	// are the tags of the histograms of failed operations.
	Tags   []string `json:"tags,omitempty"`
	Errors []string `json:"errors,omitempty"`
}

// Check refuses what cannot be read.
func (h Histograms) Check() error {
	if RecordUnits[h.Unit] == 0 {
		return fmt.Errorf("the unit of histograms is %q; it must be ns, us, ms or s", h.Unit)
	}
	for _, tag := range h.Errors {
		if slices.Contains(h.Tags, tag) {
			return fmt.Errorf("the tag %q has two meanings", tag)
		}
	}
	return nil
}

// RecordUnits are the units of latencies and instants.
var RecordUnits = map[string]time.Duration{"ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond, "s": time.Second}

// ByArrival reports whether a line's instant is that of its arrival.
func (r Records) ByArrival() bool { return r.Instant.From == FromArrival }

// Fields are the groups or columns that are read, each once.
func (r Records) Fields() []string {
	all := []string{r.Latency.From, r.Latency.Since, r.Operation, r.Node}
	if !r.ByArrival() {
		all = append(all, r.Instant.From)
	}
	if r.Instant.Fraction != nil {
		all = append(all, r.Instant.Fraction.From)
	}
	if r.Outcome != nil {
		all = append(all, r.Outcome.From)
	}
	var fields []string
	for _, name := range all {
		if name != "" && !slices.Contains(fields, name) {
			fields = append(fields, name)
		}
	}
	return fields
}

// MemberPath splits a path into the names of its members: $.data.value is value of data. It accepts
// only the part of RFC 9535 with names after dots, since an operation's line has each number once.
func MemberPath(path string) ([]string, error) {
	rest, ok := strings.CutPrefix(path, "$.")
	names := strings.Split(rest, ".")
	if !ok || slices.Contains(names, "") || strings.ContainsAny(rest, "[]*'\"") {
		return nil, fmt.Errorf("%q must be a path of names, such as $.latency or $.data.value", path)
	}
	return names, nil
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
	for _, name := range pattern.SubexpNames() {
		if name != "" && !slices.Contains(r.Fields(), name) {
			return nil, fmt.Errorf("has the group %s, which nothing reads: name it in latency, instant, outcome or operation, or write (?:...); of an outcome that nothing reads, failures count as committed", name)
		}
	}
	return pattern, nil
}

// Check refuses records that cannot be read, except for a pattern (CompilePattern).
func (r Records) Check() error {
	if err := r.checkUnits(); err != nil {
		return err
	}
	i := r.Instant
	switch {
	case r.ByArrival() && i.Of != OfEnd:
		return errors.New("a line comes when its operation is over: instant must be of End")
	case i.From == "" || r.Outcome != nil && r.Outcome.From == "" || i.Fraction != nil && i.Fraction.From == "":
		return errors.New("latency, instant and outcome must each say where they are from")
	case (r.Latency.From == "") == (r.Latency.Since == ""):
		return errors.New("latency must have either from and unit, or since")
	case r.Latency.Since != "" && (r.ByArrival() || i.Of != OfEnd || i.Fraction != nil):
		return errors.New("latency.since computes latencies up to instant: instant must be of End, with a value of its own in one part")
	case !slices.Contains([]string{ClockMonotonic, ClockWall, ClockSinceStart}, i.Clock):
		return fmt.Errorf("the clock of instant is %q; it must be %s, %s or %s", i.Clock, ClockMonotonic, ClockWall, ClockSinceStart)
	case i.Layout != "" && i.Clock != ClockWall:
		return fmt.Errorf("instant has a layout, which only a date has: its clock must be %s", ClockWall)
	case i.Layout == "" && i.Zone != "":
		return errors.New("instant has a zone, which only a date has: set its layout, or leave the zone out")
	case i.Of != OfBegin && i.Of != OfEnd:
		return fmt.Errorf("instant is of %q; it must be of %s or %s", i.Of, OfBegin, OfEnd)
	}
	if _, err := i.Location(); err != nil {
		return err
	}
	return r.checkOutcome()
}

func (r Records) checkUnits() error {
	units := map[string]string{}
	if r.Latency.Since == "" {
		units["latency"] = r.Latency.Unit
	}
	if !r.ByArrival() && r.Instant.Layout == "" {
		units["instant"] = r.Instant.Unit
	}
	if r.Instant.Fraction != nil {
		units["fraction"] = r.Instant.Fraction.Unit
	}
	for what, unit := range units {
		if RecordUnits[unit] == 0 {
			return fmt.Errorf("the unit of %s is %q; it must be ns, us, ms or s", what, unit)
		}
	}
	return nil
}

// Location of dates without a zone.
func (i RecordInstant) Location() (*time.Location, error) {
	if i.Zone == "" {
		return time.UTC, nil
	}
	at, err := time.Parse("-07:00", i.Zone)
	if err != nil {
		return nil, fmt.Errorf("the zone of instant is %q; it must be such as +01:00", i.Zone)
	}
	_, seconds := at.Zone()
	return time.FixedZone(i.Zone, seconds), nil
}

func (r Records) checkOutcome() error {
	o := r.Outcome
	if o == nil {
		return nil
	}
	if !slices.Contains([]string{"", OthersErrors, OthersAborted, OthersTimeouts, OthersCommitted, OthersSkipped}, o.Others) {
		return fmt.Errorf("others of outcome is %q; it must be Errors, Aborted, Timeouts, Committed or Skipped", o.Others)
	}
	if len(o.Committed) == 0 && o.Others != OthersCommitted && o.From != r.Latency.From {
		return errors.New("committed of outcome is missing: it may be only where the outcome stands in the latency's place, or others is Committed")
	}
	seen := map[string]bool{}
	for _, text := range slices.Concat(o.Committed, o.Aborted, o.Errors, o.Timeouts) {
		if seen[text] {
			return fmt.Errorf("the outcome %q has two meanings", text)
		}
		seen[text] = true
	}
	return nil
}
