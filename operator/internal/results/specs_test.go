package results

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func wantError(t *testing.T, name string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v, want %q", name, err, want)
	}
}

func TestPercentilesHaveNames(t *testing.T) {
	for name, want := range map[string]float64{
		"P95Latency": 95, "P9999Latency": 99.99, "P99999Latency": 99.999, "P10Latency": 10, "P99Latency": 99, "P900Latency": 90,
		"P5Latency": 0, "P999999Latency": 0, "P05Latency": 0, "P9xLatency": 0, "P955": 0, "95Latency": 0, "MeanLatency": 0, "PxxLatency": 0, "P:0Latency": 0, "P8899Latency": 0, "P-9Latency": 0,
	} {
		if got := Percentile(name); got != want {
			t.Errorf("%s is the percentile %g, want %g", name, got, want)
		}
	}
}

func TestKindsAndUnitsOfNumbers(t *testing.T) {
	for name, want := range map[string]NumberKind{
		NumberCommitted: NumberCount, NumberAborted: NumberCount, NumberErrors: NumberCount, NumberTimeouts: NumberCount, NumberEnded: NumberCount, NumberAnswered: NumberCount,
		NumberThroughput: NumberRate, NumberEndedRate: NumberRate, NumberRunTime: NumberTime, NumberMean: NumberTime, "P95Latency": NumberTime, "gc": NumberOwn,
	} {
		if got := (SummaryNumber{Name: name}).Kind(); got != want {
			t.Errorf("%s is of kind %d, want %d", name, got, want)
		}
	}
	for _, tc := range []struct {
		kind NumberKind
		unit string
		want float64
	}{
		{NumberRate, "", 1}, {NumberRate, "k", 1e3}, {NumberRate, "K/s", 1e3}, {NumberRate, "/min", 1. / 60}, {NumberRate, "M/min", 1e6 / 60.}, {NumberRate, "G/h", 1e9 / 3600.}, {NumberRate, "/s", 1},
		{NumberCount, "M", 1e6}, {NumberCount, "/s", 0}, {NumberTime, "h", 3600e3}, {NumberTime, "µs", 1e-3}, {NumberTime, "m", 60e3},
	} {
		if got := NumberUnits[tc.kind][tc.unit]; got != tc.want {
			t.Errorf("a number of kind %d with the unit %q is multiplied by %g, want %g", tc.kind, tc.unit, got, tc.want)
		}
	}
	if !(SummaryNumber{Name: NumberMax}).IsLatency() || (SummaryNumber{Name: NumberRunTime}).IsLatency() {
		t.Error("the longest latency is one, and the time of the run is none")
	}
}

func TestPatternsOfNumbers(t *testing.T) {
	for name, tc := range map[string]struct {
		number SummaryNumber
		want   string
	}{
		"a count":                           {SummaryNumber{Name: NumberCommitted, Pattern: `n=(?P<value>\d+)`}, ""},
		"no expression":                     {SummaryNumber{Name: NumberCommitted, Pattern: `(`}, "must be a regular expression"},
		"no value":                          {SummaryNumber{Name: NumberCommitted, Pattern: `n=(\d+)`}, "has no group (?P<value>...)"},
		"each is missing":                   {SummaryNumber{Name: NumberCommitted, Of: OfLastOfEach, Pattern: `(?P<value>\d+)`}, "has no group (?P<each>...)"},
		"each is there":                     {SummaryNumber{Name: NumberCommitted, Of: OfLastOfEach, Pattern: `(?P<each>\w+) (?P<value>\d+)`}, ""},
		"each that nothing reads":           {SummaryNumber{Name: NumberCommitted, Of: OfLast, Pattern: `(?P<each>\w+) (?P<value>\d+)`}, "has the group each, which nothing reads"},
		"another group":                     {SummaryNumber{Name: NumberCommitted, Pattern: `(?P<value>\d+)(?P<more>.)`}, "has the group more, which nothing reads"},
		"a time without a unit":             {SummaryNumber{Name: NumberMean, Pattern: `(?P<value>[\d.]+)`}, "reads a time without its unit"},
		"a time with a unit":                {SummaryNumber{Name: NumberMean, Unit: "ms", Pattern: `(?P<value>[\d.]+)`}, ""},
		"a time with a group of a unit":     {SummaryNumber{Name: NumberMean, Pattern: `(?P<value>[\d.]+)(?P<unit>ms|s)`}, ""},
		"a time whose value may be all":     {SummaryNumber{Name: NumberMean, Pattern: `(?P<value>.+)`}, ""},
		"a time whose value may be all, s":  {SummaryNumber{Name: NumberMean, Pattern: `(?s)(?P<value>.+)`}, ""},
		"a time with letters":               {SummaryNumber{Name: NumberMean, Pattern: `(?P<value>\d+ms)`}, ""},
		"a time with a class of letters":    {SummaryNumber{Name: NumberMean, Pattern: `(?P<value>[\da-z]+)`}, ""},
		"a time with a class of capitals":   {SummaryNumber{Name: NumberMean, Pattern: `(?P<value>[A-Z]+)`}, ""},
		"a time with one letter of a class": {SummaryNumber{Name: NumberMean, Pattern: `(?P<value>[0-9z]+)`}, ""},
		"a time with colons":                {SummaryNumber{Name: NumberMean, Pattern: `(?P<value>\d+:\d+)`}, ""},
		"a time with a class with a colon":  {SummaryNumber{Name: NumberMean, Pattern: `(?P<value>[\d:]+)`}, ""},
		"a time after letters":              {SummaryNumber{Name: NumberMean, Pattern: `mean (?P<value>[\d.,]+)`}, "reads a time without its unit"},
		"a time with signs":                 {SummaryNumber{Name: NumberMean, Pattern: `(?P<value>[-+\d;<=>?@{|}~]+)`}, "reads a time without its unit"},
		"a rate by the minute":              {SummaryNumber{Name: NumberThroughput, Pattern: `(?P<value>\d+) NOPM`}, `has "NOPM", which looks like a rate per minute`},
		"a rate by the minute, unit":        {SummaryNumber{Name: NumberThroughput, Unit: "/min", Pattern: `(?P<value>\d+) NOPM`}, ""},
		"a rate by the minute, group":       {SummaryNumber{Name: NumberThroughput, Pattern: `(?P<value>\d+)(?P<unit>/min)`}, ""},
		"a count by the minute":             {SummaryNumber{Name: NumberCommitted, Pattern: `(?P<value>\d+) per minute`}, ""},
	} {
		p, err := tc.number.Compile()
		wantError(t, name, err, tc.want)
		if err == nil && p.Value != p.SubexpIndex("value") {
			t.Errorf("%s: the value is group %d", name, p.Value)
		}
	}
	if _, err := (SummaryNumber{Path: "$.a"}).CompilePath(); err != nil {
		t.Error(err)
	}
	_, err := SummaryNumber{Path: "a["}.CompilePath()
	wantError(t, "no path", err, "must be a JSONPath")
}

func TestSummariesThatCannotBeRead(t *testing.T) {
	number := func(name string) SummaryNumber { return SummaryNumber{Name: name, Pattern: name} }
	with := func(n SummaryNumber, change func(*SummaryNumber)) SummaryNumber { change(&n); return n }
	rate := number(NumberThroughput)
	for name, tc := range map[string]struct {
		numbers []SummaryNumber
		want    string
	}{
		"a rate":                       {[]SummaryNumber{rate}, ""},
		"a rate of all":                {[]SummaryNumber{number(NumberEndedRate)}, ""},
		"a count and the time":         {[]SummaryNumber{number(NumberCommitted), number(NumberRunTime)}, ""},
		"a count of all and the time":  {[]SummaryNumber{number(NumberEnded), number(NumberRunTime)}, ""},
		"answers and the time":         {[]SummaryNumber{number(NumberAnswered), number(NumberRunTime)}, ""},
		"a count":                      {[]SummaryNumber{number(NumberCommitted)}, "Throughput is missing, and so is RunTime"},
		"a time":                       {[]SummaryNumber{number(NumberRunTime)}, "and so are Committed and RunTime"},
		"aborts and the time":          {[]SummaryNumber{number(NumberAborted), number(NumberRunTime)}, "and so are Committed and RunTime"},
		"nothing":                      {nil, "and so are Committed and RunTime"},
		"no such latency":              {[]SummaryNumber{rate, number("P5Latency")}, "there is no number P5Latency"},
		"the mean, the longest, a p95": {[]SummaryNumber{rate, number(NumberMean), number(NumberMax), number("P95Latency")}, ""},
		"neither pattern nor path":     {[]SummaryNumber{{Name: NumberThroughput}}, "Throughput must have either pattern or path"},
		"pattern and path":             {[]SummaryNumber{{Name: NumberThroughput, Pattern: "a", Path: "$.a"}}, "Throughput must have either pattern or path"},
		"a time in no unit of time":    {[]SummaryNumber{rate, with(number(NumberMean), func(n *SummaryNumber) { n.Unit = "k" })}, "the unit of MeanLatency is \"k\"; it must be ns"},
		"a rate in no unit of a rate":  {[]SummaryNumber{with(rate, func(n *SummaryNumber) { n.Unit = "ms" })}, "the unit of Throughput is \"ms\"; it must be /s"},
		"a count in no unit of counts": {[]SummaryNumber{rate, with(number(NumberErrors), func(n *SummaryNumber) { n.Unit = "ms" })}, "the unit of Errors is \"ms\"; it must be k"},
		"an own number with a unit":    {[]SummaryNumber{rate, with(number("gc"), func(n *SummaryNumber) { n.Unit = "M" })}, ""},
		"times that are added up":      {[]SummaryNumber{rate, with(number(NumberMean), func(n *SummaryNumber) { n.Of = OfSum })}, "MeanLatency is a time, and times are not added up: of must not be Sum"},
		"times of each":                {[]SummaryNumber{rate, with(number(NumberRunTime), func(n *SummaryNumber) { n.Of = OfLastOfEach })}, "of must not be LastOfEach"},
		"the mean of means":            {[]SummaryNumber{rate, with(number(NumberMean), func(n *SummaryNumber) { n.Of = OfMean })}, ""},
		"the mean of percentiles":      {[]SummaryNumber{rate, with(number("P99Latency"), func(n *SummaryNumber) { n.Of = OfMean })}, "the mean of percentiles is none"},
		"the mean of counts":           {[]SummaryNumber{rate, with(number(NumberErrors), func(n *SummaryNumber) { n.Of = OfMean })}, "the mean of counts is none"},
		"the mean of rates":            {[]SummaryNumber{with(rate, func(n *SummaryNumber) { n.Of = OfMean })}, ""},
		"a path of each":               {[]SummaryNumber{{Name: NumberThroughput, Path: "$.a", Of: OfLastOfEach}}, "Throughput has a path"},
		"a pattern of each":            {[]SummaryNumber{with(rate, func(n *SummaryNumber) { n.Of = OfLastOfEach })}, ""},
		"paths and patterns":           {[]SummaryNumber{rate, {Name: NumberErrors, Path: "$.a"}}, "a report is either JSON or lines"},
		"paths":                        {[]SummaryNumber{{Name: NumberThroughput, Path: "$.t"}, {Name: NumberErrors, Path: "$.a"}}, ""},
		"a count that is the rate":     {[]SummaryNumber{rate, {Name: NumberCommitted, Pattern: rate.Pattern}}, "Committed and Throughput are read by the same pattern or path"},
		"a count of the rate's path":   {[]SummaryNumber{{Name: NumberThroughput, Path: "$.t"}, {Name: NumberCommitted, Path: "$.t"}}, "by the same pattern or path"},
		"a count of all such lines":    {[]SummaryNumber{rate, {Name: NumberCommitted, Pattern: rate.Pattern, Of: OfSum}}, ""},
	} {
		wantError(t, name, CheckSummary(tc.numbers), tc.want)
	}
}

func TestRecordsThatCannotBeRead(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Records)
		want   string
	}{
		"as they are":           {func(*Records) {}, ""},
		"no unit of latency":    {func(r *Records) { r.Latency.Unit = "min" }, `the unit of latency is "min"`},
		"no unit of instant":    {func(r *Records) { r.Instant.Unit = "" }, `the unit of instant is ""`},
		"no unit of fraction":   {func(r *Records) { r.Instant.Fraction = &RecordLatency{From: "f"} }, `the unit of fraction is ""`},
		"a fraction":            {func(r *Records) { r.Instant.Fraction = &RecordLatency{From: "f", Unit: "ns"} }, ""},
		"a fraction of nothing": {func(r *Records) { r.Instant.Fraction = &RecordLatency{Unit: "ns"} }, "must each say where they are from"},
		"no instant":            {func(r *Records) { r.Instant.From = "" }, "must each say where they are from"},
		"no outcome":            {func(r *Records) { r.Outcome.From = "" }, "must each say where they are from"},
		"every line commits":    {func(r *Records) { r.Outcome = nil }, ""},
		"no latency":            {func(r *Records) { r.Latency.From = "" }, "latency must have either from and unit, or since"},
		"two latencies":         {func(r *Records) { r.Latency.Since = "s" }, "latency must have either from and unit, or since"},
		"since":                 {func(r *Records) { r.Latency = RecordLatency{Since: "s"} }, ""},
		"since, of the begin":   {func(r *Records) { r.Latency, r.Instant.Of = RecordLatency{Since: "s"}, OfBegin }, "latency.since computes latencies up to instant"},
		"since, in parts": {func(r *Records) {
			r.Latency, r.Instant.Fraction = RecordLatency{Since: "s"}, &RecordLatency{From: "f", Unit: "ns"}
		}, "latency.since computes latencies up to instant"},
		"since, by arrival":        {func(r *Records) { r.Latency, r.Instant.From = RecordLatency{Since: "s"}, FromArrival }, "latency.since computes latencies up to instant"},
		"by arrival":               {func(r *Records) { r.Instant.From, r.Instant.Unit = FromArrival, "" }, ""},
		"by arrival, of the begin": {func(r *Records) { r.Instant.From, r.Instant.Of = FromArrival, OfBegin }, "instant must be of End"},
		"of the begin":             {func(r *Records) { r.Instant.Of = OfBegin }, ""},
		"of the middle":            {func(r *Records) { r.Instant.Of = "Middle" }, `instant is of "Middle"`},
		"no clock":                 {func(r *Records) { r.Instant.Clock = "Sun" }, `the clock of instant is "Sun"`},
		"since the start":          {func(r *Records) { r.Instant.Clock = ClockSinceStart }, ""},
		"a date":                   {func(r *Records) { r.Instant.Clock, r.Instant.Layout, r.Instant.Unit = ClockWall, LayoutRFC3339, "" }, ""},
		"a date of another clock":  {func(r *Records) { r.Instant.Layout = LayoutRFC3339 }, "its clock must be Wall"},
		"a zone without a date":    {func(r *Records) { r.Instant.Zone = "+01:00" }, "instant has a zone, which only a date has"},
		"a date in no zone": {func(r *Records) {
			r.Instant.Clock, r.Instant.Layout, r.Instant.Zone = ClockWall, LayoutRFC3339, "Berlin"
		}, `the zone of instant is "Berlin"`},
		"others":                     {func(r *Records) { r.Outcome.Others = "Lost" }, `others of outcome is "Lost"`},
		"nothing commits":            {func(r *Records) { r.Outcome.Committed = nil }, "committed of outcome is missing"},
		"others commit":              {func(r *Records) { r.Outcome.Committed, r.Outcome.Others = nil, OthersCommitted }, ""},
		"numbers commit":             {func(r *Records) { r.Outcome.Committed, r.Outcome.From = nil, "took" }, ""},
		"an outcome of two meanings": {func(r *Records) { r.Outcome.Timeouts = []string{"ok"} }, `the outcome "ok" has two meanings`},
	} {
		r := Records{
			Latency: RecordLatency{From: "took", Unit: "ms"}, Instant: RecordInstant{From: "at", Unit: "s", Clock: ClockMonotonic, Of: OfEnd},
			Outcome: &RecordOutcome{From: "end", Committed: []string{"ok"}, Aborted: []string{"no"}},
		}
		tc.change(&r)
		wantError(t, name, r.Check(), tc.want)
	}
	for name, tc := range map[string]struct {
		of   Histograms
		want string
	}{
		"a unit": {Histograms{Unit: "us"}, ""}, "no unit": {Histograms{Unit: "h"}, `the unit of histograms is "h"`},
		"tags": {Histograms{Unit: "s", Tags: []string{"a"}, Errors: []string{"b"}}, ""}, "a tag twice": {Histograms{Unit: "s", Tags: []string{"a"}, Errors: []string{"b", "a"}}, `the tag "a" has two meanings`},
	} {
		wantError(t, name, tc.of.Check(), tc.want)
	}
}

func TestFieldsOfRecords(t *testing.T) {
	r := Records{
		Latency: RecordLatency{From: "took"}, Operation: "kind", Node: "node", Instant: RecordInstant{From: "at", Fraction: &RecordLatency{From: "ms"}}, Outcome: &RecordOutcome{From: "took"},
	}
	if diff := cmp.Diff([]string{"took", "kind", "node", "at", "ms"}, r.Fields()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for pattern, want := range map[string]string{
		`(?P<took>.)(?P<kind>.)(?P<node>.)(?P<at>.)(?P<ms>.)`:           "",
		`(?P<took>.)(?P<kind>.)(?P<node>.)(?P<at>.)`:                    "has no group (?P<ms>...)",
		`(?P<took>.)(?P<kind>.)(?P<node>.)(?P<at>.)(?P<ms>.)(?P<end>.)`: "has the group end, which nothing reads",
		`(.)(?P<took>.)(?P<kind>.)(?P<node>.)(?P<at>.)(?P<ms>.)`:        "",
		`(`: "must be a regular expression",
	} {
		r.Pattern = pattern
		_, err := r.CompilePattern()
		wantError(t, pattern, err, want)
	}
	byArrival := Records{Latency: RecordLatency{Since: "s"}, Instant: RecordInstant{From: FromArrival}}
	if diff := cmp.Diff([]string{"s"}, byArrival.Fields()); diff != "" || !byArrival.ByArrival() || r.ByArrival() {
		t.Errorf("by arrival (-want +got):\n%s", diff)
	}
	for path, want := range map[string][]string{"$.a": {"a"}, "$.data.value": {"data", "value"}, "a": nil, "$.": nil, "$.a..b": nil, "$.a[0]": nil, "$.a*": nil, "$.'a'": nil} {
		got, err := MemberPath(path)
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (want != nil) {
			t.Errorf("%s: %v (-want +got):\n%s", path, err, diff)
		}
	}
	at, err := RecordInstant{Zone: "-01:30"}.Location()
	if err != nil {
		t.Fatal(err)
	}
	if _, seconds := time.Unix(0, 0).In(at).Zone(); seconds != -5400 {
		t.Errorf("-01:30 is %d s from UTC", seconds)
	}
	if at, err := (RecordInstant{}).Location(); at != time.UTC || err != nil {
		t.Errorf("without a zone it is %v, %v", at, err)
	}
}

func TestCountersThatAnOutcomeReads(t *testing.T) {
	for name, tc := range map[string]struct {
		outcome                   *RecordOutcome
		aborted, timeouts, errors bool
	}{
		"nothing":          {nil, false, false, false},
		"by default":       {&RecordOutcome{}, false, false, true},
		"lists":            {&RecordOutcome{Aborted: []string{"a"}, Timeouts: []string{"t"}, Errors: []string{"e"}, Others: OthersSkipped}, true, true, true},
		"others abort":     {&RecordOutcome{Others: OthersAborted}, true, false, false},
		"others time out":  {&RecordOutcome{Others: OthersTimeouts}, false, true, false},
		"others fail":      {&RecordOutcome{Others: OthersErrors}, false, false, true},
		"others committed": {&RecordOutcome{Others: OthersCommitted}, false, false, false},
	} {
		o := tc.outcome
		if o.Reads(CounterAborted) != tc.aborted || o.Reads(CounterTimeouts) != tc.timeouts || o.Reads(CounterErrors) != tc.errors || o.Reads("committed") {
			t.Errorf("%s: it reads aborts %t, timeouts %t, errors %t", name, o.Reads(CounterAborted), o.Reads(CounterTimeouts), o.Reads(CounterErrors))
		}
	}
}

func TestCellsAndValuesThatAreTheSame(t *testing.T) {
	for _, tc := range []struct {
		a, b        string
		cell, value bool
	}{
		{"a", "a", true, true}, {"4", "4.0", true, true}, {"4", "5", false, false}, {"4", "x", false, false}, {"x", "4", false, false}, {"x", "y", false, false},
		{"4ms", "4000us", false, true}, {"4ms", "4us", false, false}, {"4ms", "0", false, false}, {"0", "0s", false, true}, {"", "", true, true}, {"4ms", "x", false, false}, {"x", "0s", false, false},
	} {
		if cell, value := SameCell(tc.a, tc.b), SameValue(tc.a, tc.b); cell != tc.cell || value != tc.value {
			t.Errorf("%q and %q are the same cell: %t, the same value: %t; want %t, %t", tc.a, tc.b, cell, value, tc.cell, tc.value)
		}
	}
}
