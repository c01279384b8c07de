package results

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/results/renames"
	"assay.dev/assay/operator/internal/text/jsonlimit"
)

// The counters that a client may not know, by their names in JSON.
const (
	CounterOffered   = "offered"
	CounterAborted   = "aborted"
	CounterGivenUp   = "givenUp"
	CounterErrors    = "errors"
	CounterTimeouts  = "timeouts"
	CounterRetries   = "retries"
	CounterLateSends = "lateSends"
	CounterUnsent    = "unsent"
)

// MaxFailureText is the most that Client.Failure may take.
const MaxFailureText = 4 << 10

// Bounds of what a Client may report; they keep a reader's memory bounded whatever a client sends.
const (
	maxBins        = int((26*time.Hour + TimelineInterval) / TimelineInterval) // 1 h warm-up, 24 h window, 1 h cool-down
	maxFirstMillis = int64(time.Hour / time.Millisecond)
	maxDriverNames = 1024
	maxMeasure     = int64(24 * time.Hour)
)

// EncodeClient writes what a client reports, with the format's name filled in.
func EncodeClient(c Client) ([]byte, error) {
	c.Format = ClientFormat
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("encode the client's results: %w", err)
	}
	return encode(c)
}

// DecodeClient reads what a client reports. It refuses other formats and reports that contradict
// themselves; histograms are checked when they are merged.
func DecodeClient(b []byte) (Client, error) {
	var c Client
	if err := decode(b, clientMay, ClientFormat, nil, &c.Format, &c); err != nil {
		return Client{}, fmt.Errorf("decode the client's results: %w", err)
	}
	absent, err := absentCounters(b)
	if err != nil {
		return Client{}, fmt.Errorf("decode the client's results: %w", err)
	}
	c.Unreported = union(c.Unreported, absent)
	if err := c.check(); err != nil {
		return Client{}, fmt.Errorf("decode the client's results: %w", err)
	}
	return c, nil
}

// absentCounters lists the counters that a report has no member for: its client does not count
// them.
func absentCounters(b []byte) ([]string, error) {
	var report struct {
		Counters map[string]json.RawMessage `json:"counters"`
	}
	if err := json.Unmarshal(b, &report); err != nil {
		return nil, err
	}
	var absent []string
	for _, n := range (&Counters{}).all() {
		if _, ok := report.Counters[n.name]; !ok && n.optional {
			absent = append(absent, n.name)
		}
	}
	return absent, nil
}

// union of two sets of names, sorted.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

const (
	// clientBase is what the JSON of a client's results may take beside its timeline: counters,
	// histograms and the driver's names.
	clientBase = 4 << 20
	// clientBin is what one bin of its timeline may take.
	clientBin = 4 * 20
)

// UnpackClient reads a client's gzipped results of a run of the given length. It refuses more bytes
// than any run of that length can have, so that the writer cannot make the reader run out of
// memory.
func UnpackClient(packed []byte, run time.Duration) (Client, error) {
	gz, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return Client{}, fmt.Errorf("unpack the client's results: %w", err)
	}
	limit := clientBase + clientBin*(int64(run/TimelineInterval)+1)
	raw, err := io.ReadAll(io.LimitReader(gz, limit+1))
	if err != nil {
		return Client{}, fmt.Errorf("unpack the client's results: %w", err)
	}
	if int64(len(raw)) > limit {
		return Client{}, fmt.Errorf("unpack the client's results: they take more than the %d bytes that a run of %v can", limit, run)
	}
	return DecodeClient(raw)
}

// EncodeTrial writes a trial, with the format's name filled in.
func EncodeTrial(t Trial) ([]byte, error) {
	t.Format = TrialFormat
	return encode(t)
}

// DecodeTrial reads a trial.
func DecodeTrial(b []byte) (Trial, error) {
	var t Trial
	if err := decode(b, trialMay, TrialFormat, renames.TrialResults, &t.Format, &t); err != nil {
		return Trial{}, fmt.Errorf("decode the trial's results: %w", err)
	}
	if t.Timeline != nil {
		if err := t.Timeline.check(); err != nil {
			return Trial{}, fmt.Errorf("decode the trial's results: %w", err)
		}
	}
	return t, nil
}

// EncodeExperiment writes an experiment, with the format's name filled in.
func EncodeExperiment(e Experiment) ([]byte, error) {
	e.Format = ExperimentFormat
	return encode(e)
}

// DecodeExperiment reads an experiment.
func DecodeExperiment(b []byte) (Experiment, error) {
	var e Experiment
	if err := decode(b, experimentMay, ExperimentFormat, renames.ExperimentResults, &e.Format, &e); err != nil {
		return Experiment{}, fmt.Errorf("decode the experiment's results: %w", err)
	}
	return e, nil
}

func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode as JSON: %w", err)
	}
	return append(b, '\n'), nil
}

// The most that results hold: a thousand trials have some ten thousand records, and a trial of a
// hundred pods has about as many.
const (
	maxRecords = 100_000
	maxObjects = 400_000
)

var (
	clientMay     = jsonlimit.For(Client{}, maxRecords, maxObjects)
	trialMay      = jsonlimit.For(Trial{}, maxRecords, maxObjects)
	experimentMay = jsonlimit.For(Experiment{}, maxRecords, maxObjects)
)

// decode first checks the format, since members of another version may have other types. It ignores
// unknown members, so that an older reader can read results of a newer writer in the same format.
// The function renamed gives members their present names; nil: no member was renamed.
func decode(b []byte, may jsonlimit.Limit, want string, renamed func([]byte) ([]byte, error), format *string, v any) error {
	if err := jsonlimit.Check(b, may); err != nil {
		return err
	}
	var head struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return err
	}
	if head.Format != want {
		return fmt.Errorf("the format is %q; this version reads %q", head.Format, want)
	}
	if renamed != nil {
		var err error
		if b, err = renamed(b); err != nil {
			return err
		}
	}
	if err := json.Unmarshal(b, v); err != nil {
		return err
	}
	*format = want
	return nil
}

func (c Client) check() error {
	if c.Index < 0 || c.FirstClient < 0 || c.Clients < 1 {
		return fmt.Errorf("index %d, firstClient %d, clients %d: the first two must be 0 or more, clients 1 or more", c.Index, c.FirstClient, c.Clients)
	}
	if c.MeasureNanos <= 0 || c.MeasureNanos > maxMeasure {
		return fmt.Errorf("measureNanos is %d; it must be above 0, %d (24 h) at most", c.MeasureNanos, maxMeasure)
	}
	if n := max(len(c.Driver), len(c.MisbehavingDriver)); n > maxDriverNames {
		return fmt.Errorf("there are %d driver counters, %d are allowed", n, maxDriverNames)
	}
	if c.MisbehavingClients < 0 || c.MisbehavingClients > c.Clients {
		return fmt.Errorf("misbehavingClients is %d; it must be from 0 to %d, the clients", c.MisbehavingClients, c.Clients)
	}
	if len(c.Failure) > MaxFailureText {
		return fmt.Errorf("failure has %d characters, %d are allowed", len(c.Failure), MaxFailureText)
	}
	if err := c.checkUnreported(); err != nil {
		return err
	}
	counters := c.Counters.all()
	if c.MisbehavingCounters != nil {
		counters = append(counters, c.MisbehavingCounters.all()...)
	}
	for _, n := range counters {
		if *n.value < 0 || *n.value > maxCount {
			return fmt.Errorf("the counter %s is %d; it must be from 0 to %d", n.name, *n.value, maxCount)
		}
	}
	if err := c.checkOperations(); err != nil {
		return err
	}
	if c.RunSummary != nil {
		if err := c.RunSummary.check(c); err != nil {
			return err
		}
	}
	return c.Timeline.check()
}

func (t Timeline) check() error {
	n := len(t.Committed)
	if t.Offered != nil && len(t.Offered) != n {
		return fmt.Errorf("the timeline has %d bins of committed transactions and %d of offered ones; they must be as many", n, len(t.Offered))
	}
	if slices.ContainsFunc(t.Offered, func(n int64) bool { return n < 0 }) {
		return errors.New("a bin of the timeline has a negative number of offered requests")
	}
	if len(t.Aborted) != n || len(t.Failed) != n || len(t.LatencySumMicros) != n {
		return fmt.Errorf("the timeline's slices have %d, %d, %d and %d elements; they must have the same number",
			n, len(t.Aborted), len(t.Failed), len(t.LatencySumMicros))
	}
	if n == 0 {
		return nil
	}
	if n > maxBins {
		return fmt.Errorf("the timeline has %d bins, %d are allowed", n, maxBins)
	}
	for i := range n {
		if min(t.Committed[i], t.Aborted[i], t.Failed[i], t.LatencySumMicros[i]) < 0 {
			return fmt.Errorf("bin %d of the timeline has a negative number", i)
		}
	}
	interval := TimelineInterval.Milliseconds()
	if t.IntervalMillis != interval {
		return fmt.Errorf("the timeline's bins are %d ms wide; they must be %d ms", t.IntervalMillis, interval)
	}
	if t.FirstMillis%interval != 0 || t.FirstMillis < -maxFirstMillis-interval || t.FirstMillis > maxMeasure/1e6 {
		return fmt.Errorf("the timeline starts at %d ms; it must be a multiple of %d ms, at most 1 h before t = 0", t.FirstMillis, interval)
	}
	return nil
}

// checkUnreported refuses names that are no counters, and numbers of counters that the client
// reports as unknown.
func (c Client) checkUnreported() error {
	known := map[string]int64{}
	for _, n := range c.Counters.all() {
		if n.optional {
			known[n.name] = *n.value
		}
	}
	for _, name := range c.Unreported {
		switch value, ok := known[name]; {
		case !ok:
			return fmt.Errorf("unreported names %q; it can name %s", name,
				strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		case value != 0:
			return fmt.Errorf("unreported names %s, which is %d; remove the name or the number", name, value)
		}
	}
	return nil
}

type namedCounter struct {
	name  string
	value *int64
	// optional: some clients do not know the counter.
	optional bool
}

// all lists the counters, so that adding up and checking cannot forget one (a test counts them).
func (c *Counters) all() []namedCounter {
	return []namedCounter{
		{CounterOffered, &c.Offered, true}, {"committed", &c.Committed, false},
		{CounterAborted, &c.Aborted, true}, {CounterGivenUp, &c.GivenUp, true},
		{CounterErrors, &c.Errors, true}, {CounterTimeouts, &c.Timeouts, true},
		{CounterRetries, &c.Retries, true}, {CounterLateSends, &c.LateSends, true},
		{CounterUnsent, &c.Unsent, true}, {"outOfRange", &c.OutOfRange, false},
	}
}

// Failed are the requests that had no answer in time, an error, or were never sent.
func (c Counters) Failed() int64 { return c.Errors + c.Timeouts + c.Unsent }

// Add adds another client's counters.
func (c *Counters) Add(o Counters) {
	other := o.all()
	for i, n := range c.all() {
		*n.value += *other[i].value
	}
}
