package v1alpha1

// MetricsEndpoint is where every pod of a part (replicas, clients) serves metrics in Prometheus'
// format. On a cluster with the Prometheus operator, a PodMonitor makes Prometheus scrape them
// while trials of the experiment run. Without the operator, the field has no effect.
// docs/guide/prometheus.md.
type MetricsEndpoint struct {
	// port number that each pod of the part listens on.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// path of the metrics. Default: /metrics.
	// +optional
	// +kubebuilder:default="/metrics"
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/.*`
	Path string `json:"path,omitempty"`

	// interval between samples. Scraping costs the system under test a little. From 1s to 1m.
	// Default: 1s.
	// +optional
	// +kubebuilder:default="1s"
	Interval Duration `json:"interval,omitempty"`
}

// MeasurementOver is how the values of a query over the measurement window become one. Last: the
// value at the end of the window, for queries that span it themselves, as with
// increase(...[{{.Window}}]). Mean, Minimum and Maximum are of the values from t = 0 to the end of
// the window, one for each interval between samples.
// +kubebuilder:validation:Enum=Last;Mean;Minimum;Maximum
type MeasurementOver string

// The ways to make one number of a window's values.
const (
	OverLast    MeasurementOver = "Last"
	OverMean    MeasurementOver = "Mean"
	OverMinimum MeasurementOver = "Minimum"
	OverMaximum MeasurementOver = "Maximum"
)

// MeasuredResource is a resource of pods. The unit of CPU is cores. The unit of Memory (the working
// set) and PageCache (file pages) is B, and that of the others is B/s. Network and Disk are both
// directions together. Disks are block devices. VolumeSize is the space that files take on volumes,
// in B. Energy is that of all processors of the pods' nodes (RAPL): a Total in J, or a Mean in W.
// +kubebuilder:validation:Enum=CPU;Memory;PageCache;NetworkReceived;NetworkSent;Network;DiskRead;DiskWritten;Disk;VolumeSize;Energy
type MeasuredResource string

// MeasuredPart is a part of a trial, and chooses its pods.
// +kubebuilder:validation:Enum=replica;component;client
type MeasuredPart string

// MeasuredPods is how several pods become one number. Sum: the pods' values are added up in each
// second, and over applies to the sums. Mean, Largest and Variation: over applies to each pod by
// itself. The number is then the mean of the pods' numbers, the largest, or their standard
// deviation divided by their mean.
// +kubebuilder:validation:Enum=Sum;Mean;Largest;Variation
type MeasuredPods string

// MeasuredOver is how the seconds of the measurement window become one number: the mean, a
// percentile or the maximum of them, or the total of the window. The unit of a total is s of CPU,
// and B of network and disk. End is the value at the end of the window. It is the only one for
// VolumeSize, and for VolumeSize only.
// +kubebuilder:validation:Enum=Mean;P50;P95;P99;Maximum;Total;End
type MeasuredOver string

// MeasuredUse says which use of resources a measurement is.
type MeasuredUse struct {
	// resource that the pods use.
	Resource MeasuredResource `json:"resource"`

	// part whose pods count. Default: all pods of the trial.
	// +optional
	Part MeasuredPart `json:"part,omitempty"`

	// pods says how several pods become one number. Default: Sum.
	// +optional
	Pods MeasuredPods `json:"pods,omitempty"`

	// over says how the seconds of the window become one number.
	Over MeasuredOver `json:"over"`

	// volume of VolumeSize, by its name in the System. Default: all volumes of a pod together.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Volume string `json:"volume,omitempty"`
}

// Measurement is a number of each trial: a column of the results beside Assay's own. The
// installation's Prometheus answers a query, clients report a counter, and agents read use in the
// pods. It has exactly one of these.
// +kubebuilder:validation:XValidation:rule="[has(self.query), has(self.counter), has(self.use)].filter(x, x).size() == 1",message="must have exactly one of query, counter and use"
// +kubebuilder:validation:XValidation:rule="has(self.query) == has(self.over)",message="over and query go together: a counter is one number already, and use has an over of its own"
// +kubebuilder:validation:XValidation:rule="has(self.counter) || !has(self.per)",message="per goes with counter"
type Measurement struct {
	// name of the column, in lowerCamelCase, and what claims call it.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z][a-zA-Z0-9]*$`
	Name string `json:"name"`

	// query in PromQL that gives one series or a scalar. Template: docs/guide/prometheus.md lists
	// what it sees. It reads series of the experiment's own namespace only.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Query string `json:"query,omitempty"`

	// over says how the window's values of the query become one.
	// +optional
	Over MeasurementOver `json:"over,omitempty"`

	// counter is the name of one of the clients' own counters (driver in their reports), added up
	// over all client pods. If there is one client pod, it may also be a number of the client's own
	// in a summary (spec.clients.results.summary of the System). Both cover the whole run, with
	// warm-up and cool-down. A report that tells kinds of operations apart also has the latencies
	// of each kind, over all client pods and within the window: operationP99Millis:READ, in
	// milliseconds. P10, P50, P75, P90, P95, P999, P9999, P99999, Mean and Max are there, too. The
	// same numbers exist for each node that answered (nodeP99Millis:NODE). If clients are in
	// several regions, they exist for each region, too (regionP99Millis:REGION). Further names of
	// counters, such as nodeMeanMillisVariation, misbehavingShare and restoredBytes:FAULT, are in
	// docs/guide/prometheus.md.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Counter string `json:"counter,omitempty"`

	// per is another counter, by which counter is divided: microseconds by operations. Default:
	// none, the count as it is.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Per string `json:"per,omitempty"`

	// use is what the pods use of a resource, read once a second in the window.
	// +optional
	Use *MeasuredUse `json:"use,omitempty"`

	// unit of the number, as it is shown: s, cores, B/s. The number of use is in this unit: bytes
	// have B, kB, MB, GB, KiB, MiB and GiB, with /s where they are a rate. Default: none; of use,
	// that of the resource.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[A-Za-z%/][-A-Za-z0-9%/^*]*$`
	Unit string `json:"unit,omitempty"`

	// required makes a trial invalid whose number cannot be had. Default: false, the trial counts
	// and lacks the number.
	// +optional
	Required bool `json:"required,omitempty"`
}

// MeasuredValue is the result of a measurement in one trial.
type MeasuredValue struct {
	// name of the measurement.
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`

	// value, a decimal number. Absent: there is no value.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Value string `json:"value,omitempty"`

	// reason why there is no value.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}

// TrialMeasured is True when the trial has every number that measurements ask for. It is False
// while the trial asks Prometheus, and when a number is missing (the message says which and why).
// Trials without measurements do not have it. The trial controller sets it.
const TrialMeasured = "Measured"

const (
	// ReasonAskingPrometheus: the trial waits until Prometheus scrapes the pods, has the last
	// samples of the window, or answers the queries.
	ReasonAskingPrometheus = "AskingPrometheus"
	// ReasonMeasured: every number is there.
	ReasonMeasured = "Measured"
	// ReasonNotMeasured: a number could not be had. As the reason of Valid, it means a number that
	// the experiment requires.
	ReasonNotMeasured = "NotMeasured"
)
