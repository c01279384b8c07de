package results

import (
	"cmp"
	"encoding/json"
	"time"
)

// Aggregate is one metric over the valid trials of a point. Interval is the 95% Student-t interval
// of the mean; it is present for two trials and more (Low and High are equal to Mean otherwise).
type Aggregate struct {
	N      int     `json:"n"`
	Mean   float64 `json:"mean"`
	StdDev float64 `json:"stdDev"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// PointResult is what a point comes to over its valid trials.
type PointResult struct {
	Index       int32             `json:"index"`
	Coordinates map[string]string `json:"coordinates"`
	// Valid, Invalid and Failed trials.
	Valid   int `json:"valid"`
	Invalid int `json:"invalid"`
	Failed  int `json:"failed"`
	// Metrics by name: throughput (tx/s), meanLatency, p50Latency, p99Latency (ms), abortRate
	// (aborted attempts by all ended attempts), and the experiment's measurements, each over the
	// trials that have it.
	Metrics map[string]Aggregate `json:"metrics"`
}

// TrialLine is one trial in an experiment's results: enough to aggregate again. The rest is in the
// trial's own ConfigMap.
type TrialLine struct {
	Name        string            `json:"name"`
	Number      int32             `json:"number"`
	PointIndex  int32             `json:"pointIndex"`
	Coordinates map[string]string `json:"coordinates"`
	Repetition  int32             `json:"repetition"`
	Attempt     int32             `json:"attempt"`
	Outcome     string            `json:"outcome"`
	Reason      string            `json:"reason,omitempty"`
	Message     string            `json:"message,omitempty"`
	// NodeSet and Imported are as in Trial.
	NodeSet    string    `json:"nodeSet,omitempty"`
	Imported   *Imported `json:"imported,omitempty"`
	GapSeconds float64   `json:"gapSeconds,omitempty"`
	Committed  int64     `json:"committed"`
	Aborted    int64     `json:"aborted"`
	Errors     int64     `json:"errors"`
	Timeouts   int64     `json:"timeouts"`
	// Offered, GivenUp and Unsent are as in Counters; 0 in older results.
	Offered int64 `json:"offered,omitempty"`
	GivenUp int64 `json:"givenUp,omitempty"`
	Unsent  int64 `json:"unsent,omitempty"`
	// Unreported are the counters that some client does not know, by their names in JSON: they are
	// 0 here, and mean nothing.
	Unreported []string `json:"unreported,omitempty"`
	// RunSummary is as in Summary.
	RunSummary bool    `json:"runSummary,omitempty"`
	Throughput float64 `json:"throughput"`
	MeanMillis float64 `json:"meanMillis"`
	P50Millis  float64 `json:"p50Millis"`
	P99Millis  float64 `json:"p99Millis"`
	// P10Millis, P90Millis, P999Millis and CorrectClients are 0 in older results.
	P10Millis      float64 `json:"p10Millis,omitempty"`
	P90Millis      float64 `json:"p90Millis,omitempty"`
	P999Millis     float64 `json:"p999Millis,omitempty"`
	CorrectClients int32   `json:"correctClients,omitempty"`
	// OfAll is as in Summary.
	OfAll *Percentiles `json:"ofAll,omitempty"`
	// ThrottledShare of the container, and StealShare of the node, that had most of it. Nil: not
	// measured.
	ThrottledShare *float64 `json:"throttledShare,omitempty"`
	StealShare     *float64 `json:"stealShare,omitempty"`
	// ContendedShare of the machine on which the trial waited most for others. Nil: not known.
	ContendedShare *float64 `json:"contendedShare,omitempty"`
	// ClientTimeShare of a closed loop is the share of the clients' time in the window that their
	// transactions and think time fill: 1 by Little's law. ClientBusyShare is the greatest share of
	// a CPU limit or of a node's processors that client pods used. Nil: not known, or not kept in
	// these results.
	ClientTimeShare *float64 `json:"clientTimeShare,omitempty"`
	ClientBusyShare *float64 `json:"clientBusyShare,omitempty"`
	// Script is the name of the trial whose script wrote the row that this is. Empty: it is all of
	// its trial.
	Script string `json:"script,omitempty"`
	// Measurements of Prometheus and of the clients' counters, in the order of the spec.
	Measurements []Measurement `json:"measurements,omitempty"`
	// Recovery from the first times of faults, at most 16. Their cautions and the throughput before
	// are in the trial's own results.
	Recovery []Recovery `json:"recovery,omitempty"`
	// Checks of the System and what they say of the trial, valid or not.
	Checks []Check `json:"checks,omitempty"`
	// Datasets that the pods began with.
	Datasets  []Dataset `json:"datasets,omitempty"`
	ConfigMap string    `json:"configMap,omitempty"`
	// Window says whether the window was steady. The manager's lines have it where it was not, with
	// what moves the mean and by how much; a report computes the rest from the trial's timeline.
	// Nil: it was steady, or that is not known, or the trial does not count.
	Window *WindowCheck `json:"window,omitempty"`
	// P95Millis is 0 in older results, and where it is not known. A report reads it off the trial's
	// histogram then.
	P95Millis float64 `json:"p95Millis,omitempty"`
	// Percentiles are as in Summary.
	Percentiles map[string]float64 `json:"percentiles,omitempty"`
	// Remarks are as in Summary. Only a report has them.
	Remarks []string `json:"remarks,omitempty"`
}

// Dataset is a data set that the pods of a trial began with.
type Dataset struct {
	// Name in the System, and Object: the name of the Dataset.
	Name   string `json:"name"`
	Object string `json:"object"`
	// Digest of the tree, with which every copy was compared.
	Digest string `json:"digest"`
	Bytes  int64  `json:"bytes"`
	Files  int64  `json:"files"`
	// PreparedNodes had the data when the trial was made. PrepareSeconds is how long the recipe,
	// the hash and keeping took on the slowest of them.
	PreparedNodes  int32   `json:"preparedNodes"`
	PrepareSeconds float64 `json:"prepareSeconds"`
	// Copies of the trial, one in each pod that uses the set; Method is Reflink, Copy or Mixed,
	// Check Sizes or Content.
	Copies int32  `json:"copies"`
	Method string `json:"method,omitempty"`
	Check  string `json:"check,omitempty"`
	// FastestSeconds and SlowestSeconds of a copy with its check.
	FastestSeconds float64 `json:"fastestSeconds"`
	SlowestSeconds float64 `json:"slowestSeconds"`
}

// Experiment is what an experiment comes to.
type Experiment struct {
	Format string `json:"format"`
	Name   string `json:"name"`
	// Recurs is the experiment that recurs and has this one as a run. The runs of one history have
	// the same. Empty: this one was applied by itself.
	Recurs     string            `json:"recurs,omitempty"`
	UID        string            `json:"uid"`
	Profile    string            `json:"profile,omitempty"`
	Seed       int64             `json:"seed"`
	SpecSHA256 string            `json:"specSHA256"`
	Source     map[string]string `json:"source,omitempty"` // title, section, url
	// Fidelity says what ran, relative to the source. Older results lack it.
	Fidelity  *Fidelity  `json:"fidelity,omitempty"`
	Started   time.Time  `json:"started"`
	Completed *time.Time `json:"completed,omitempty"`
	// Written is when these results were put together: they are about the trials that were done by
	// then.
	Written time.Time `json:"written"`
	// Judged says that all but the trials was made anew after the run. Nil: it was not.
	Judged *Judged `json:"judged,omitempty"`
	// Seal says what the claims were before the first trial. Nil: the results do not have it.
	Seal *Seal `json:"seal,omitempty"`
	// Method is the version of the statistics by which claims and searches were judged. 0: one from
	// before it was kept.
	Method int `json:"method,omitempty"`
	// Planned is the number of valid trials that the experiment wants.
	Planned int `json:"planned,omitempty"`
	// AdditionalRepetitions of each point were asked for when the experiment was complete: after a
	// look at its results.
	AdditionalRepetitions int `json:"additionalRepetitions,omitempty"`
	// Stopped says why trials are missing that the experiment's budget does not pay for. Empty: it
	// has no budget, or none is missing.
	Stopped string `json:"stopped,omitempty"`
	// Look is the one at which the claims are judged, where repetitions go on until claims are
	// decided; absent: verdicts are looked at once.
	Look *Look `json:"look,omitempty"`
	// Axes in the order of the sweep, with their values in order.
	Axes []Axis `json:"axes"`
	// Measurements that the experiment asks Prometheus or the clients for, in their order.
	Measurements []MeasurementColumn `json:"measurements,omitempty"`
	// Figures that the experiment declares.
	Figures []Figure `json:"figures,omitempty"`

	Points []PointResult `json:"points"`
	// Capacities are what searches came to, one for each combination of the other axes.
	Capacities []Capacity `json:"capacities,omitempty"`

	Trials []TrialLine `json:"trials"`
	// NotMeasuring are the trials that profilers sampled. Nothing else of these results has them.
	NotMeasuring []TrialLine      `json:"notMeasuring,omitempty"`
	Claims       []ClaimResult    `json:"claims"`
	Reported     []ReportedSeries `json:"reported,omitempty"`
	// Networks and Faults of the valid trials, and what they did over time. Only a report has them:
	// they are in the trials' own results.
	Networks   []NetworkLine  `json:"networks,omitempty"`
	Faults     []FaultLine    `json:"faults,omitempty"`
	Series     []PointSeries  `json:"series,omitempty"`
	Latencies  []PointLatency `json:"latencies,omitempty"`
	Resources  []ResourceLine `json:"resources,omitempty"`
	LatencyBy  []LatencyBy    `json:"latencyBy,omitempty"`
	Provenance *Provenance    `json:"provenance,omitempty"`
	// Collected are the files of pods' own that are kept beside the trials' results, and the ends
	// of logs. Only a report has them.
	Collected []CollectedFile `json:"collected,omitempty"`
	// FlameGraphs are those of NotMeasuring. Only a report has them.
	FlameGraphs []FlameGraph `json:"flameGraphs,omitempty"`
	// Scripts are what scripts did on the trials' machines, of one trial for each kind of run. Only
	// a report has them.
	Scripts []ScriptRun `json:"scripts,omitempty"`
	// Spec of the experiment with its profile applied, as JSON. Only a report has it: it is stored
	// beside the results.
	Spec    json.RawMessage `json:"spec,omitempty"`
	LeftOut []string        `json:"leftOut,omitempty"`
}

// HistoryName is what the runs of one history have in common: the name of the experiment, or of the
// one that recurs.
func (e *Experiment) HistoryName() string { return cmp.Or(e.Recurs, e.Name) }

// Axis of a sweep.
type Axis struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
	// Searched: the values are loads that a search may try; in results, those that it tried.
	Searched bool `json:"searched,omitempty"`
}

// ReportedSeries is a curve of the paper.
type ReportedSeries struct {
	Name   string            `json:"name"`
	Metric string            `json:"metric"`
	Unit   string            `json:"unit"`
	At     map[string]string `json:"at,omitempty"`
	Axis   string            `json:"axis"`
	X      []string          `json:"x"`
	Y      []float64         `json:"y"`
	Note   string            `json:"note,omitempty"`
	// Measurement that the series is of, where Metric is Measurement.
	Measurement string `json:"measurement,omitempty"`
	// Correction is by what the values are multiplied before they are compared; 0: by nothing.
	Correction float64 `json:"correction,omitempty"`
}
