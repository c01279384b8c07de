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

// PointResult summarizes a point over its valid trials.
type PointResult struct {
	Index       int32             `json:"index"`
	Coordinates map[string]string `json:"coordinates"`
	// Valid, Invalid and Failed trials.
	Valid   int `json:"valid"`
	Invalid int `json:"invalid"`
	Failed  int `json:"failed"`
	// Metrics by name: throughput (tx/s), meanLatency, p50Latency, p99Latency (ms), abortRate
	// (aborted attempts divided by all ended attempts), and the experiment's measurements. Each is
	// over the trials that have it.
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
	// unknown, and 0 here.
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
	// ThrottledShare is the greatest of a container, and StealShare the greatest of a node. Nil:
	// not measured.
	ThrottledShare *float64 `json:"throttledShare,omitempty"`
	StealShare     *float64 `json:"stealShare,omitempty"`
	// ContendedShare is the greatest of a machine: how often the trial waited there for other
	// programs. Nil: not known.
	ContendedShare *float64 `json:"contendedShare,omitempty"`
	// ClientTimeShare of a closed loop is the share of the clients' time in the window that their
	// transactions and think time fill: 1 by Little's law. ClientBusyShare is the greatest share of
	// a CPU limit or of a node's processors that client pods used. Nil: not known, or not kept in
	// these results.
	ClientTimeShare *float64 `json:"clientTimeShare,omitempty"`
	ClientBusyShare *float64 `json:"clientBusyShare,omitempty"`
	// Script is the name of the trial whose script wrote this line's row. Empty: the line is a
	// whole trial.
	Script string `json:"script,omitempty"`
	// Measurements of Prometheus and of the clients' counters, in the order of the spec.
	Measurements []Measurement `json:"measurements,omitempty"`
	// Recovery from faults, the first 16 at most. Their cautions and the throughput before are in
	// the trial's own results.
	Recovery []Recovery `json:"recovery,omitempty"`
	// Checks of the System with their verdicts, for valid and invalid trials.
	Checks []Check `json:"checks,omitempty"`
	// Datasets that the pods began with.
	Datasets  []Dataset `json:"datasets,omitempty"`
	ConfigMap string    `json:"configMap,omitempty"`
	// Window says whether the window was steady. The manager's lines have it only for a window that
	// was not steady, with the cause and by how much it moves the mean. A report computes the rest
	// from the trial's timeline. Nil: the window was steady, or this is unknown, or the trial does
	// not count.
	Window *WindowCheck `json:"window,omitempty"`
	// P95Millis is 0 in older results, and where it is not known. Then a report reads it from the
	// trial's histogram.
	P95Millis float64 `json:"p95Millis,omitempty"`
	// Percentiles are as in Summary.
	Percentiles map[string]float64 `json:"percentiles,omitempty"`
	// Remarks are as in Summary. Only a report has them.
	Remarks []string `json:"remarks,omitempty"`
}

// Dataset is a data set that the pods of a trial began with.
type Dataset struct {
	// Name is the data set's name in the System, and Object the name of its Dataset.
	Name   string `json:"name"`
	Object string `json:"object"`
	// Digest of the tree, with which every copy was compared. Empty: each node has bytes of its
	// own, and Digests has those of the nodes on which pods might run.
	Digest  string       `json:"digest"`
	Digests []NodeDigest `json:"digests,omitempty"`
	// Bytes and Files are those of the node with most.
	Bytes int64 `json:"bytes"`
	Files int64 `json:"files"`
	// PreparedNodes is how many nodes had the data when the trial was made. PrepareSeconds is how
	// long the slowest of them took for the recipe, the hash and storing.
	PreparedNodes  int32   `json:"preparedNodes"`
	PrepareSeconds float64 `json:"prepareSeconds"`
	// Copies of the trial, one in each pod that uses the set; Method is Reflink, Copy or Mixed,
	// Check Sizes or Content.
	Copies int32  `json:"copies"`
	Method string `json:"method,omitempty"`
	Check  string `json:"check,omitempty"`
	// FastestSeconds and SlowestSeconds are the times of the fastest and the slowest copy, with its
	// check.
	FastestSeconds float64 `json:"fastestSeconds"`
	SlowestSeconds float64 `json:"slowestSeconds"`
}

// NodeDigest is the digest of a data set's tree on one node.
type NodeDigest struct {
	Node   string `json:"node"`
	Digest string `json:"digest"`
}

// Experiment holds the results of an experiment.
type Experiment struct {
	Format string `json:"format"`
	Name   string `json:"name"`
	// Recurs is the name of the experiment that recurs and made this one as a run. All runs of one
	// history have the same name here. Empty: a user applied this experiment.
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
	// Judged says that everything but the trials was made anew after the run. Nil: nothing was.
	Judged *Judged `json:"judged,omitempty"`
	// Seal says what the claims were before the first trial. Nil: the results do not have it.
	Seal *Seal `json:"seal,omitempty"`
	// Method is the version of the statistics by which claims and searches were judged. 0: the
	// results are older than this field.
	Method int `json:"method,omitempty"`
	// Planned is the number of valid trials that the experiment wants.
	Planned int `json:"planned,omitempty"`
	// AdditionalRepetitions of each point were requested when the experiment was complete, so after
	// a look at its results.
	AdditionalRepetitions int `json:"additionalRepetitions,omitempty"`
	// Stopped says why the experiment's budget does not pay for missing trials. Empty: the
	// experiment has no budget, or no trial is missing.
	Stopped string `json:"stopped,omitempty"`
	// Look is the look at which the claims are judged, if repetitions go on until claims are
	// decided. Absent: verdicts are looked at once.
	Look *Look `json:"look,omitempty"`
	// Axes in the order of the sweep, with their values in order.
	Axes []Axis `json:"axes"`
	// Measurements that the experiment asks Prometheus or the clients for, in their order.
	Measurements []MeasurementColumn `json:"measurements,omitempty"`
	// Figures that the experiment declares.
	Figures []Figure `json:"figures,omitempty"`

	Points []PointResult `json:"points"`
	// Capacities are the outcomes of searches, one for each combination of the other axes.
	Capacities []Capacity `json:"capacities,omitempty"`

	Trials []TrialLine `json:"trials"`
	// NotMeasuring are the trials that profilers sampled. No other part of these results includes
	// them.
	NotMeasuring []TrialLine      `json:"notMeasuring,omitempty"`
	Claims       []ClaimResult    `json:"claims"`
	Reported     []ReportedSeries `json:"reported,omitempty"`
	// Networks, faults, series and resources of the valid trials. Only a report has these members:
	// the trials' own results have the data.
	Networks   []NetworkLine  `json:"networks,omitempty"`
	Faults     []FaultLine    `json:"faults,omitempty"`
	Series     []PointSeries  `json:"series,omitempty"`
	Latencies  []PointLatency `json:"latencies,omitempty"`
	Resources  []ResourceLine `json:"resources,omitempty"`
	LatencyBy  []LatencyBy    `json:"latencyBy,omitempty"`
	Provenance *Provenance    `json:"provenance,omitempty"`
	// Collected are the pods' own files that are kept beside the trials' results, and the ends of
	// logs. Only a report has them.
	Collected []CollectedFile `json:"collected,omitempty"`
	// FlameGraphs are those of NotMeasuring. Only a report has them.
	FlameGraphs []FlameGraph `json:"flameGraphs,omitempty"`
	// Scripts record what scripts did on the trials' machines, for one trial of each kind of run.
	// Only a report has them.
	Scripts []ScriptRun `json:"scripts,omitempty"`
	// Spec of the experiment with its profile applied, as JSON. Only a report has it: it is stored
	// beside the results.
	Spec    json.RawMessage `json:"spec,omitempty"`
	LeftOut []string        `json:"leftOut,omitempty"`
}

// HistoryName is the name that all runs of one history share: that of the experiment that recurs,
// or else the experiment's own.
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
	// Correction is a factor for the values, applied before values are compared. 0: no correction.
	Correction float64 `json:"correction,omitempty"`
}
