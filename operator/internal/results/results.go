// Package results is Assay's result format: the report of one client (Client), the results of a
// trial (Trial), the results of an experiment (Experiment). All are JSON with a format name; a
// reader refuses a format that it does not know.
//
// Latencies are in HdrHistograms of microseconds (1 us to 1 h, 3 significant digits) and are
// merged, never averaged. Times are relative to t = 0, the start of the measurement window.
package results

import "time"

// The formats.
const (
	ClientFormat     = "assay.dev/client-result/v1"
	TrialFormat      = "assay.dev/trial-result/v1"
	ExperimentFormat = "assay.dev/experiment-result/v1"
)

// The range of every latency histogram.
const (
	HistogramLowestMicros  = 1
	HistogramHighestMicros = int64(time.Hour / time.Microsecond)
	HistogramDigits        = 3
)

// TimelineInterval is the width of a timeline's bins.
const TimelineInterval = 100 * time.Millisecond

// Counters count what happened to requests in the measurement window. A transaction belongs to the
// window when it ends there.
type Counters struct {
	// Offered requests: intended sends that lie in the window (open loop), first attempts sent in
	// it (closed loop).
	Offered int64 `json:"offered"`
	// Committed transactions.
	Committed int64 `json:"committed"`
	// Aborted attempts; each is tried again unless the attempts are used up.
	Aborted int64 `json:"aborted"`
	// GivenUp transactions: aborted in their last permitted attempt.
	GivenUp int64 `json:"givenUp"`
	// Errors are requests that failed otherwise.
	Errors int64 `json:"errors"`
	// Timeouts are requests without an answer in time.
	Timeouts int64 `json:"timeouts"`
	// Retries are attempts after the first.
	Retries int64 `json:"retries"`
	// LateSends are requests sent more than 1 ms after their intended instant (open loop).
	LateSends int64 `json:"lateSends"`
	// Unsent are intended requests never sent since all clients were busy (open loop).
	Unsent int64 `json:"unsent"`
	// OutOfRange latencies, which the histogram could not hold.
	OutOfRange int64 `json:"outOfRange"`
}

// Timeline is what happened over time, in bins of IntervalMillis, the first of which starts at
// FirstMillis. It covers warm-up, window and cool-down. All slices have the same length.
type Timeline struct {
	IntervalMillis int64   `json:"intervalMillis"`
	FirstMillis    int64   `json:"firstMillis"`
	Committed      []int64 `json:"committed"`
	Aborted        []int64 `json:"aborted"`
	Failed         []int64 `json:"failed"` // errors and timeouts
	// LatencySumMicros of the transactions committed in the bin.
	LatencySumMicros []int64 `json:"latencySumMicros"`
	// Offered requests of the bin: the planned requests of an open loop, or the first attempts that
	// a closed loop with phases has sent. Nil: the client does not say.
	Offered []int64 `json:"offered,omitempty"`
}

// Client is what one client pod reports.
type Client struct {
	Format string `json:"format"`
	// Pod index, the first of its clients and how many there are.
	Index       int32 `json:"index"`
	FirstClient int32 `json:"firstClient"`
	Clients     int32 `json:"clients"`
	// StartedNanos is when the first request was sent, relative to t = 0 less the warm-up.
	StartedNanos int64 `json:"startedNanos"`
	// NothingSent: the report shows no sent request. StartedNanos then means nothing, and the start
	// spread leaves this pod out.
	NothingSent bool `json:"nothingSent,omitempty"`
	// MeasureNanos is the length of the window.
	MeasureNanos int64 `json:"measureNanos"`
	// Counters of the window.
	Counters Counters `json:"counters"`
	// Unreported are the counters that this client does not know, by their names in JSON: they are
	// unknown, and 0 in Counters. A reader adds counters whose members are missing.
	Unreported []string `json:"unreported,omitempty"`
	// Latency histogram of the window's committed transactions: HdrHistogram V2, compressed,
	// base64.
	Latency string `json:"latency"`
	// SendLag histogram: actual less intended send (open loop). Empty for a closed loop.
	SendLag string `json:"sendLag,omitempty"`
	// GeneratorLag histogram: like SendLag, but only of requests for which a client was free at the
	// intended instant. So only the generator made them late (open loop).
	GeneratorLag string `json:"generatorLag,omitempty"`
	// Timeline of the whole run.
	Timeline Timeline `json:"timeline"`
	// Operations are the kinds of operations that the client tells apart, as far as they committed
	// in the window.
	Operations []Operation `json:"operations,omitempty"`
	// Nodes that answered the client, as it calls them, and the operations that they answered, as
	// far as they committed in the window.
	Nodes []Operation `json:"nodes,omitempty"`
	// RunSummary is the client's summary of its whole run, if it reports no more. Counters then
	// cover the whole run, too, and there are no histograms and no timeline. Agents send it as
	// "whole", which is the name in the format of clients' reports.
	RunSummary *RunSummary `json:"whole,omitempty"`
	// Driver counters, as the driver reports them.
	Driver map[string]int64 `json:"driver,omitempty"`
	// MisbehavingClients is how many of the Clients misbehaved on purpose. Counters, histograms and
	// timeline leave their requests out. MisbehavingDriver are the counters of their own driver.
	// MisbehavingCounters count their requests in the window by outcome, as that driver reports
	// them. Nil: there are no such clients, or the report does not have them.
	MisbehavingClients  int32            `json:"misbehavingClients,omitempty"`
	MisbehavingDriver   map[string]int64 `json:"misbehavingDriver,omitempty"`
	MisbehavingCounters *Counters        `json:"misbehavingCounters,omitempty"`
	// Table is what a script left. Nil: the client is no script.
	Table *ScriptTable `json:"table,omitempty"`
	// Failure says why the client's results cannot be trusted, though it reported: its driver died.
	// Empty: nothing failed.
	Failure string `json:"failure,omitempty"`
}

// Summary is the outcome of a measurement window in numbers.
type Summary struct {
	Counters
	// Unreported are the counters that some client does not know, by their names in JSON.
	Unreported []string `json:"unreported,omitempty"`
	// RunSummary: these numbers come from clients' summaries of their whole run. They are not cut
	// to the window, and a latency of 0 is unknown.
	RunSummary bool `json:"runSummary,omitempty"`
	// Throughput is committed transactions per second of the window.
	Throughput float64 `json:"throughput"`
	// Latencies of committed transactions, in milliseconds.
	MeanMillis float64 `json:"meanMillis"`
	// P10Millis is 0 in older results.
	P10Millis  float64 `json:"p10Millis,omitempty"`
	P50Millis  float64 `json:"p50Millis"`
	P90Millis  float64 `json:"p90Millis"`
	P99Millis  float64 `json:"p99Millis"`
	P999Millis float64 `json:"p999Millis"`
	MaxMillis  float64 `json:"maxMillis"`
	// Percentiles are those that have no member of their own, in milliseconds, by their names (P75,
	// P95, P9999). Absent in older results, and unknown for summaries of several clients.
	Percentiles map[string]float64 `json:"percentiles,omitempty"`
	// Numbers are a client's own, by the names that its System gives them, of its whole run.
	Numbers map[string]float64 `json:"numbers,omitempty"`
	// Remarks say what a reader must know of these numbers: which were computed, and from which
	// others.
	Remarks []string `json:"remarks,omitempty"`
	// Operations are the kinds that the clients tell apart, in the order of their names.
	Operations []OperationSummary `json:"operations,omitempty"`
	// Nodes that answered, if clients report them, and Regions of the clients, if there are
	// several. Each has the operations of the window, in the order of the names.
	Nodes   []OperationSummary `json:"nodes,omitempty"`
	Regions []OperationSummary `json:"regions,omitempty"`
	// OfAll are percentiles of committed and failed requests. Nil: no request failed, or the
	// results are older, or RunSummary is true.
	OfAll *Percentiles `json:"ofAll,omitempty"`
	// SendLagP99Millis is how late requests were sent (open loop).
	SendLagP99Millis float64 `json:"sendLagP99Millis,omitempty"`
	// GeneratorLagP99Millis is how late requests were sent for which a client was free in time
	// (open loop).
	GeneratorLagP99Millis float64 `json:"generatorLagP99Millis,omitempty"`
}

// Percentiles of latency, of committed and failed requests together, in milliseconds. A request
// that failed counts as slower than any that committed. A percentile of 0 lies among those that
// failed.
type Percentiles struct {
	P10Millis  float64 `json:"p10Millis,omitempty"`
	P50Millis  float64 `json:"p50Millis,omitempty"`
	P90Millis  float64 `json:"p90Millis,omitempty"`
	P99Millis  float64 `json:"p99Millis,omitempty"`
	P999Millis float64 `json:"p999Millis,omitempty"`
	// These are 0 in older results, too.
	P75Millis    float64 `json:"p75Millis,omitempty"`
	P95Millis    float64 `json:"p95Millis,omitempty"`
	P9999Millis  float64 `json:"p9999Millis,omitempty"`
	P99999Millis float64 `json:"p99999Millis,omitempty"`
}

// ClosedLoop is how the clients of a closed loop wait.
type ClosedLoop struct {
	// ThinkMillis is the time that a client waits after each of its transactions.
	ThinkMillis float64 `json:"thinkMillis,omitempty"`
	// TimeoutMillis is the time after which a request without an answer counts as a timeout.
	TimeoutMillis float64 `json:"timeoutMillis,omitempty"`
}
