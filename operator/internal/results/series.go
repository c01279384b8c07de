package results

// PointSeries is what the valid trials of a point did over time. Only a report has it: timelines
// are in the trials' own results.
type PointSeries struct {
	Point       int32             `json:"point"`
	Coordinates map[string]string `json:"coordinates"`
	Trials      int               `json:"trials"`
	// Bins of IntervalMillis, the first of which starts at FirstMillis. All slices have the same
	// length.
	IntervalMillis int64 `json:"intervalMillis"`
	FirstMillis    int64 `json:"firstMillis"`
	// Throughput in transactions per second: the mean, least and greatest of the trials.
	Throughput    []float64 `json:"throughput"`
	ThroughputMin []float64 `json:"throughputMin"`
	ThroughputMax []float64 `json:"throughputMax"`
	// Offered requests per second: the mean of the trials. Nil: some trial does not know them.
	Offered []float64 `json:"offered,omitempty"`
	// Latency is the mean, in milliseconds, of all transactions that these trials committed in the
	// bin; Committed is the number of these transactions. Both are 0 if there are none.
	Latency   []float64 `json:"latency"`
	Committed []int64   `json:"committed"`
	// ByTrial is the mean latency of each trial, in the order in which they ran; 0 where it
	// committed nothing.
	ByTrial []TrialSeries `json:"byTrial,omitempty"`
	// MeasureMillis is the end of the window.
	MeasureMillis float64     `json:"measureMillis"`
	Marks         []FaultMark `json:"marks"`
	// Use of processors and network by the parts of the trials.
	Use []PartSeries `json:"use,omitempty"`
}

// TrialSeries is the mean latency of one trial in each bin of its point's series, in milliseconds.
type TrialSeries struct {
	Name    string    `json:"name"`
	Latency []float64 `json:"latency"`
}

// FaultMark is when a fault began or ended, as it was confirmed in the first of its pods: the
// median, least and greatest of the trials.
type FaultMark struct {
	Fault     string  `json:"fault"`
	Time      int     `json:"time"`
	Kind      string  `json:"kind"`
	Object    string  `json:"object,omitempty"` // of Chaos Mesh, see FaultRecord
	Ends      bool    `json:"ends,omitempty"`
	Millis    float64 `json:"millis"`
	MinMillis float64 `json:"minMillis"`
	MaxMillis float64 `json:"maxMillis"`
	// ConfirmedMillis is when the last pod of any trial confirmed an action that takes time, such
	// as a command or the reset of a machine. 0: the mark is the confirmation.
	ConfirmedMillis float64 `json:"confirmedMillis,omitempty"`
}

// PointLatency is the distribution of the latencies of all transactions that the valid trials of a
// point committed in the window. Only a report has it.
type PointLatency struct {
	Point       int32             `json:"point"`
	Coordinates map[string]string `json:"coordinates"`
	Trials      int               `json:"trials"`
	Count       int64             `json:"count"`
	// Percentiles rise. Millis has the latency at each of them.
	Percentiles []float64 `json:"percentiles"`
	Millis      []float64 `json:"millis"`
}

// Provenance is what the valid trials ran on, each list sorted and without repetition. Only a
// report has it.
type Provenance struct {
	// Images by the part that they are of (replica, client), and those of Assay's own containers
	// (agent).
	Images  map[string][]string `json:"images,omitempty"`
	Kernels []string            `json:"kernels,omitempty"`
	// CPUs: models with their number of CPUs.
	CPUs  []string `json:"cpus,omitempty"`
	Nodes []string `json:"nodes,omitempty"`
	// Machines: the settings of nodes, as "pool=servers, smt=off", and the nodes that have them.
	Machines []string `json:"machines,omitempty"`
	// Managers and Agents are versions of Assay, managers with their image; Kubernetes: of API
	// servers; NodeSoftware: of what nodes run.
	Managers     []string `json:"managers,omitempty"`
	Agents       []string `json:"agents,omitempty"`
	Kubernetes   []string `json:"kubernetes,omitempty"`
	NodeSoftware []string `json:"nodeSoftware,omitempty"`
}
