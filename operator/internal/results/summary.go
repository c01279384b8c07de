package results

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/theory/jsonpath"
)

// The numbers of a client's summary, named as v1alpha1.SummaryNumberName names them. Ended and
// EndedRate are of all attempts, with any outcome. Answered is of attempts that had an answer: all
// but Timeouts.
const (
	NumberCommitted  = "Committed"
	NumberAborted    = "Aborted"
	NumberErrors     = "Errors"
	NumberTimeouts   = "Timeouts"
	NumberEnded      = "Ended"
	NumberAnswered   = "Answered"
	NumberThroughput = "Throughput"
	NumberEndedRate  = "EndedRate"
	NumberRunTime    = "RunTime"
	NumberMean       = "MeanLatency"
	NumberP10        = "P10Latency"
	NumberP50        = "P50Latency"
	NumberP90        = "P90Latency"
	NumberP99        = "P99Latency"
	NumberP999       = "P999Latency"
	NumberMax        = "MaxLatency"
)

// The values of SummaryNumber.Of, which says which number counts when several lines match.
const (
	OfOnly       = "Only"
	OfLast       = "Last"
	OfSum        = "Sum"
	OfMean       = "Mean"
	OfLastOfEach = "LastOfEach"
)

// SummaryNumber says where a client's summary has a number: by a pattern of its line, or by a path
// in JSON. It has the fields of v1alpha1.SummaryNumber, with the defaults filled in.
type SummaryNumber struct {
	Name    string `json:"name"`
	Pattern string `json:"pattern,omitempty"`
	Path    string `json:"path,omitempty"`
	// Unit of the number: see NumberUnits.
	Unit string `json:"unit,omitempty"`
	// Of says which number counts when several lines match; empty is Only.
	Of string `json:"of,omitempty"`
}

// The groups of a number's pattern.
const (
	groupValue = "value" // the number
	groupUnit  = "unit"  // its unit
	groupEach  = "each"  // what it is about, for LastOfEach
)

// NumberKind is the kind of a number of a summary.
type NumberKind int

// The kinds.
const (
	NumberOwn   NumberKind = iota // of the client's own
	NumberCount                   // of attempts
	NumberRate                    // of attempts per second
	NumberTime                    // in milliseconds
)

const latencySuffix = "Latency"

// Kind of the number.
func (n SummaryNumber) Kind() NumberKind {
	switch n.Name {
	case NumberCommitted, NumberAborted, NumberErrors, NumberTimeouts, NumberEnded, NumberAnswered:
		return NumberCount
	case NumberThroughput, NumberEndedRate:
		return NumberRate
	case NumberRunTime:
		return NumberTime
	}
	if strings.HasSuffix(n.Name, latencySuffix) {
		return NumberTime
	}
	return NumberOwn
}

// IsLatency reports whether the number is a latency.
func (n SummaryNumber) IsLatency() bool { return strings.HasSuffix(n.Name, latencySuffix) }

// Percentile of a latency's name: 95 of P95Latency, 99.99 of P9999Latency. 0: it is not one.
func Percentile(name string) float64 {
	digits, isLatency := strings.CutSuffix(name, latencySuffix)
	digits, isPercentile := strings.CutPrefix(digits, "P")
	if !isLatency || !isPercentile || len(digits) < 2 || len(digits) > 5 || digits[0] < '1' || digits[0] > '9' ||
		len(digits) > 2 && digits[0] != '9' {
		return 0
	}
	if _, err := strconv.ParseUint(digits, 10, 32); err != nil {
		return 0
	}
	p, err := strconv.ParseFloat(digits[:2]+"."+digits[2:], 64)
	if err != nil {
		return 0
	}
	return p
}

// NumberUnits are the units of counts, rates and times: how many attempts, attempts per second and
// milliseconds they are.
var NumberUnits = map[NumberKind]map[string]float64{
	NumberOwn:   magnitudes(""),
	NumberCount: magnitudes(""),
	NumberRate:  rates(),
	NumberTime:  {"ns": 1e-6, "us": 1e-3, "\u00b5s": 1e-3, "\u03bcs": 1e-3, "ms": 1, "s": 1e3, "min": 60e3, "m": 60e3, "h": 3600e3},
}

// magnitudes are the prefixes of large numbers.
func magnitudes(suffix string) map[string]float64 {
	return map[string]float64{suffix: 1, "k" + suffix: 1e3, "K" + suffix: 1e3, "M" + suffix: 1e6, "G" + suffix: 1e9}
}

func rates() map[string]float64 {
	units := magnitudes("")
	for suffix, seconds := range map[string]float64{"/s": 1, "/min": 60, "/h": 3600} {
		for name, n := range magnitudes(suffix) {
			units[name] = n / seconds
		}
	}
	return units
}

// SummaryPattern is a compiled pattern with its groups. Unit and Each are -1 where there is no such
// group.
type SummaryPattern struct {
	*regexp.Regexp
	Value, Unit, Each int
}

// Compile compiles the pattern, and refuses one without the groups that it needs.
func (n SummaryNumber) Compile() (SummaryPattern, error) {
	pattern, err := regexp.Compile(n.Pattern)
	if err != nil {
		return SummaryPattern{}, fmt.Errorf("must be a regular expression as RE2 has them (no look-around, no back-references): %w", err)
	}
	p := SummaryPattern{Regexp: pattern, Value: pattern.SubexpIndex(groupValue), Unit: pattern.SubexpIndex(groupUnit), Each: pattern.SubexpIndex(groupEach)}
	unread := slices.DeleteFunc(slices.Clone(pattern.SubexpNames()), func(name string) bool {
		return name == "" || name == groupValue || name == groupUnit || name == groupEach && n.Of == OfLastOfEach
	})
	switch {
	case p.Value < 0:
		return p, fmt.Errorf("has no group (?P<%s>...)", groupValue)
	case n.Of == OfLastOfEach && p.Each < 0:
		return p, fmt.Errorf("has no group (?P<%s>...), which says what a line is about: of is %s", groupEach, OfLastOfEach)
	case len(unread) > 0:
		return p, fmt.Errorf("has the group %s, which nothing reads: a number has the groups %s, %s and, of %s, %s; write (?:...) for a group without a name", unread[0], groupValue, groupUnit, OfLastOfEach, groupEach)
	case n.Kind() == NumberTime && n.Unit == "" && p.Unit < 0 && !hasUnit(n.Pattern, groupValue):
		return p, fmt.Errorf("reads a time without its unit: say unit, or let (?P<%s>...) match it, as in 402us", groupValue)
	case n.Kind() == NumberRate && n.Unit == "" && p.Unit < 0 && perMinute.MatchString(n.Pattern):
		return p, fmt.Errorf("has %q, which looks like a rate per minute: set unit to /min, or to /s if it is per second", perMinute.FindString(n.Pattern))
	}
	return p, nil
}

// perMinute are words of benchmarks and units for what is counted by the minute.
var perMinute = regexp.MustCompile(`\b(NOPM|TPM|tpmC|tpmTOTAL|tpm)\b|(?i:per minute|/min\b)`)

// hasUnit reports whether what a named group of a pattern matches can have a letter, as 402us has,
// or a colon, as 00:01:24 has. The pattern compiles.
func hasUnit(pattern, group string) bool {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return true
	}
	var find func(re *syntax.Regexp, inside bool) bool
	find = func(re *syntax.Regexp, inside bool) bool {
		inside = inside || re.Op == syntax.OpCapture && re.Name == group
		if inside {
			switch re.Op {
			case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
				return true
			case syntax.OpLiteral:
				if slices.ContainsFunc(re.Rune, func(r rune) bool { return unicode.IsLetter(r) || r == ':' }) {
					return true
				}
			case syntax.OpCharClass: // pairs of first and last
				for i := 0; i+1 < len(re.Rune); i += 2 {
					first, last := re.Rune[i], re.Rune[i+1]
					if first <= ':' && last >= ':' || first <= 'Z' && last >= 'A' || first <= 'z' && last >= 'a' {
						return true
					}
				}
			}
		}
		return slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return find(sub, inside) })
	}
	return find(tree, false)
}

// CompilePath compiles the path.
func (n SummaryNumber) CompilePath() (*jsonpath.Path, error) {
	p, err := jsonpath.Parse(n.Path)
	if err != nil {
		return nil, fmt.Errorf("must be a JSONPath as RFC 9535 has them: %w", err)
	}
	return p, nil
}

// check refuses a number that cannot be read, except for its pattern or path.
func (n SummaryNumber) check() error {
	kind := n.Kind()
	known := n.Name == NumberMean || n.Name == NumberMax || Percentile(n.Name) > 0
	switch _, unit := NumberUnits[kind][n.Unit]; {
	case n.IsLatency() && !known:
		return fmt.Errorf("there is no number %s: a latency is %s, %s or a percentile such as P95Latency or P9999Latency", n.Name, NumberMean, NumberMax)
	case (n.Pattern == "") == (n.Path == ""):
		return fmt.Errorf("%s must have either pattern or path", n.Name)
	case n.Unit != "" && !unit && kind == NumberTime:
		return fmt.Errorf("the unit of %s is %q; it must be ns, us, ms, s, min or h; without one, the number is a duration such as 402us or 1m24.17s", n.Name, n.Unit)
	case n.Unit != "" && !unit && kind == NumberRate:
		return fmt.Errorf("the unit of %s is %q; it must be /s, /min or /h, with k, M or G before it or without", n.Name, n.Unit)
	case n.Unit != "" && !unit:
		return fmt.Errorf("the unit of %s is %q; it must be k, M, G or none", n.Name, n.Unit)
	case (n.Of == OfSum || n.Of == OfLastOfEach) && kind == NumberTime:
		return fmt.Errorf("%s is a time, and times are not added up: of must not be %s", n.Name, n.Of)
	case n.Of == OfMean && Percentile(n.Name) > 0:
		return fmt.Errorf("%s is a percentile, and the mean of percentiles is none: of must not be %s", n.Name, n.Of)
	case n.Of == OfMean && kind == NumberCount:
		return fmt.Errorf("%s is a count, and the mean of counts is none: of must not be %s", n.Name, n.Of)
	case n.Of == OfLastOfEach && n.Path != "":
		return fmt.Errorf("%s has a path: of %s needs a pattern with the group %s", n.Name, n.Of, groupEach)
	}
	return nil
}

// CheckSummary refuses numbers that do not make a summary.
func CheckSummary(numbers []SummaryNumber) error {
	has := func(names ...string) bool {
		return slices.ContainsFunc(numbers, func(n SummaryNumber) bool { return slices.Contains(names, n.Name) })
	}
	counts := []string{NumberCommitted, NumberEnded, NumberAnswered}
	paths := 0
	for _, n := range numbers {
		if err := n.check(); err != nil {
			return err
		}
		if n.Path != "" {
			paths++
		}
	}
	if a, b, found := countAndRate(numbers); found {
		return fmt.Errorf("%s and %s are read by the same pattern or path, and one number is not both a count and a rate: leave out %s if the client prints a rate; it is computed then", a, b, a)
	}
	switch {
	case paths > 0 && paths < len(numbers):
		return errors.New("some numbers have a path and some a pattern; a report is either JSON or lines")
	case has(NumberThroughput, NumberEndedRate), has(counts...) && has(NumberRunTime):
		return nil
	case has(counts...):
		return errors.New("Throughput is missing, and so is RunTime, from which it can be computed")
	}
	return errors.New("Throughput is missing, and so are Committed and RunTime, from which it can be computed: nothing says that the client did anything")
}

// countAndRate finds a count and a rate that are read from the same place.
func countAndRate(numbers []SummaryNumber) (count, rate string, found bool) {
	for _, a := range numbers {
		for _, b := range numbers {
			same := a.Pattern == b.Pattern && a.Path == b.Path && a.Of == b.Of
			if same && a.Kind() == NumberCount && b.Kind() == NumberRate {
				return a.Name, b.Name, true
			}
		}
	}
	return "", "", false
}
