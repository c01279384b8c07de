package parsers

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/results"
)

// FormatHdrHistogram is a log of histograms, one for each interval, as HdrHistogram's writers for
// Java, C, Rust and Go write it (versions 1.2 and 1.3):
//
//	#[StartTime: 1795161600.000 (seconds since epoch), ...]
//	"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
//	Tag=READ,0.127,1.007,2.769,HISTFAAAA...
//
// An interval belongs to the window if its middle does: all of its transactions then count, so that
// the window is exact to one interval at each end. In the timeline they are spread evenly over the
// bins of the interval.
const FormatHdrHistogram = "HdrHistogram"

// counterCutIntervals counts intervals that lie across an end of the window.
const counterCutIntervals = "intervalsAcrossTheWindow"

// yearSeconds: an instant more than a year before the start is relative to the start, as in
// HdrHistogram's own reader.
const yearSeconds = 365 * 24 * 3600

// percentilesHeader is the header of a table of percentiles, with blanks or with commas.
var percentilesHeader = regexp.MustCompile(`^\W*Value\W+Percentile\W+TotalCount`)

type hdrLog struct {
	o     Options
	of    results.Histograms
	rec   *results.Recorder
	start float64 // seconds since 1970
	base  float64
	based bool
	// first interval's begin, relative to t = 0.
	first   time.Duration
	driver  map[string]int64
	kinds   kinds
	decoder hdrDecoder
}

func parseHdrHistogram(r io.Reader, o Options) (results.Client, error) {
	if o.Histograms == nil {
		return results.Client{}, errors.New("the format HdrHistogram needs histograms")
	}
	if err := o.Histograms.Check(); err != nil {
		return results.Client{}, err
	}
	l := hdrLog{o: o, of: *o.Histograms, rec: results.NewRecorder(o.Windows), driver: map[string]int64{}}
	seen := false
	in := newLines("the client's log", r)
	for {
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, errCutOff) {
			if !o.Whole {
				l.driver[counterCut]++
				break
			}
			line, err = in.last, nil
		}
		if err != nil {
			return results.Client{}, err
		}
		used, err := l.line(string(line), !seen)
		if err != nil {
			return results.Client{}, in.errorf("%q: %v", short(line), err)
		}
		seen = seen || used
	}
	c := results.Client{
		Index: o.Index, FirstClient: o.FirstClient, Clients: o.Clients, NothingSent: !seen, MeasureNanos: int64(o.Windows.Measure), Driver: l.driver,
		Unreported: []string{
			results.CounterAborted, results.CounterErrors, results.CounterGivenUp, results.CounterLateSends, results.CounterOffered,
			results.CounterRetries, results.CounterTimeouts, results.CounterUnsent,
		},
	}
	if len(l.of.Errors) > 0 {
		c.Unreported = slices.DeleteFunc(c.Unreported, func(name string) bool { return name == results.CounterErrors })
	}
	if seen {
		c.StartedNanos = int64(l.first + o.Windows.WarmUp)
	} else {
		l.driver[counterSilent]++
	}
	if err := l.rec.Fill(&c); err != nil {
		return results.Client{}, err
	}
	err := l.kinds.fill(&c)
	return c, err
}

// line takes in a line, and reports whether it is an interval that counts.
func (l *hdrLog) line(text string, first bool) (bool, error) {
	switch {
	case percentilesHeader.MatchString(text):
		return false, errors.New("this is a table of percentiles (.hgrm), which has no instants: it cannot be cut to the window; let the client write a log of histograms (.hlog), or read numbers of its whole run by the format Summary; \"kubectl assay import results --format HdrPercentiles\" reads such tables")
	case text == "", strings.HasPrefix(text, `"`):
		return false, nil
	case text[0] == '#':
		return false, l.comment(text)
	}
	tag := ""
	if rest, tagged := strings.CutPrefix(text, "Tag="); tagged {
		var more bool
		if tag, text, more = strings.Cut(rest, ","); !more {
			return false, errors.New("there is nothing after the tag")
		}
	}
	fields := strings.Split(text, ",")
	if len(fields) != 4 {
		return false, fmt.Errorf("an interval has 4 fields after its tag: its start, its length, its greatest value and a histogram; this one has %d", len(fields))
	}
	failed := slices.Contains(l.of.Errors, tag)
	if !failed && len(l.of.Tags) > 0 && !slices.Contains(l.of.Tags, tag) {
		l.driver[counterOther]++
		return false, nil
	}
	begin, err := parseCountable(fields[0])
	if err != nil {
		return false, fmt.Errorf("the start of the interval: %w", err)
	}
	length, err := parseCountable(fields[1])
	if err != nil || length > 24*3600 {
		return false, fmt.Errorf("the length of the interval, %q, must be a number of seconds", fields[1])
	}
	if err := l.decoder.decode(fields[3]); err != nil || l.decoder.total == 0 {
		return false, err
	}
	from := l.relative(begin)
	if err := l.interval(tag, from, from+time.Duration(length*1e9), failed); err != nil {
		return false, err
	}
	if first || from < l.first {
		l.first = from
	}
	return true, nil
}

// comment reads a start or a base time.
func (l *hdrLog) comment(text string) error {
	for prefix, to := range map[string]*float64{"#[StartTime: ": &l.start, "#[BaseTime: ": &l.base} {
		rest, found := strings.CutPrefix(text, prefix)
		if !found {
			continue
		}
		number, _, _ := strings.Cut(rest, " ")
		x, err := strconv.ParseFloat(strings.TrimRight(number, "]"), 64)
		if err != nil || !(x >= 0 && x < mostNanos/1e9) {
			return fmt.Errorf("%q is no number of seconds since 1970", number)
		}
		*to = x
		l.based = l.based || prefix == "#[BaseTime: "
	}
	return nil
}

// relative makes an instant of the log relative to t = 0.
func (l *hdrLog) relative(seconds float64) time.Duration {
	switch {
	case l.based:
		seconds += l.base
	case seconds < l.start-yearSeconds:
		seconds += l.start
	}
	whole := int64(min(seconds, mostNanos/1e9))
	nanos := whole*1e9 + int64((seconds-float64(whole))*1e9)
	return time.Duration(nanos - l.o.ZeroUnixNanos)
}

// interval takes in the transactions of an interval. Its tag is their kind.
func (l *hdrLog) interval(tag string, from, to time.Duration, failed bool) error {
	if s := l.o.Seen; s != nil {
		if s.Operations == 0 || from < s.First {
			s.First = from
		}
		if s.Operations == 0 || to > s.Last {
			s.Last = to
		}
		s.Operations += l.decoder.total
	}
	end := l.o.Windows.Measure
	for _, edge := range []time.Duration{0, end} {
		if from < edge && to > edge && end > 0 {
			l.driver[counterCutIntervals]++
		}
	}
	// Cut the interval at the window's ends, and keep the part with its middle.
	middle := from + (to-from)/2
	switch {
	case middle < 0:
		to = min(to, 0)
	case middle < end:
		from, to = max(from, 0), min(to, end)
	default:
		from = max(from, end)
	}
	unit := results.RecordUnits[l.of.Unit]
	done := int64(0)
	for _, bar := range l.decoder.bars {
		latency := time.Duration((float64(bar.From) + float64(bar.To)) / 2 * float64(unit))
		if failed {
			l.rec.FailEvenly(from, to, done, bar.Count)
		} else {
			l.rec.CommitEvenly(from, to, done, bar.Count, latency)
			if err := l.kind(tag, from, bar.Count, latency); err != nil {
				return err
			}
		}
		done += bar.Count
	}
	return nil
}

// kind counts transactions of the window by the tag of their interval.
func (l *hdrLog) kind(tag string, from time.Duration, n int64, latency time.Duration) error {
	if tag == "" || !l.rec.InWindow(from) {
		return nil
	}
	return l.kinds.commit(tag, slices.Contains(l.of.Tags, tag), n, latency)
}
