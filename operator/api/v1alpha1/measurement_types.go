package v1alpha1

// MetricsEndpoint is where every pod of a part (replicas, clients) serves metrics in Prometheus'
// format. On a cluster with the Prometheus operator, a PodMonitor that lives as long as trials of
// the experiment run has them scraped; elsewhere nothing happens. docs/guide/prometheus.md.
type MetricsEndpoint struct {
	// port number that is listened on, in each pod of the part.
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
// increase(...[{{.Window}}]). Mean, Minimum and Maximum: of the values at instants from t = 0 to
// the end of the window, as far apart as samples are.
// +kubebuilder:validation:Enum=Last;Mean;Minimum;Maximum
type MeasurementOver string

// The ways to make one number of a window.
const (
	OverLast    MeasurementOver = "Last"
	OverMean    MeasurementOver = "Mean"
	OverMinimum MeasurementOver = "Minimum"
	OverMaximum MeasurementOver = "Maximum"
)

// Measurement is a number of each trial: a column of the results beside Assay's own. It has either
// query, which the installation's Prometheus answers, or counter, which the clients report.
// +kubebuilder:validation:XValidation:rule="has(self.query) != has(self.counter)",message="must have either query or counter"
// +kubebuilder:validation:XValidation:rule="has(self.query) == has(self.over)",message="over and query go together: a counter is one number already"
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
	// over all client pods. It may also be an own number of a summary
	// (spec.clients.results.summary of the System), if there is one client pod. Both are of the
	// whole run, with warm-up and cool-down. A report that tells kinds of operations apart also has
	// the latencies of each, over all client pods and of the window: operationP99Millis:READ, in
	// milliseconds. P10, P50, P75, P90, P95, P999, P9999, P99999, Mean and Max are there, too.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Counter string `json:"counter,omitempty"`

	// per is another counter that the counter is divided by: microseconds by operations. Default:
	// none, the count as it is.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Per string `json:"per,omitempty"`

	// unit of the number, as it is shown: s, cores, B/s. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[A-Za-z%/][-A-Za-z0-9%/^*]*$`
	Unit string `json:"unit,omitempty"`

	// required makes a trial invalid whose number cannot be had. Default: false, the trial counts
	// and lacks the number.
	// +optional
	Required bool `json:"required,omitempty"`
}

// MeasuredValue is what became of a measurement in one trial.
type MeasuredValue struct {
	// name of the measurement.
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`

	// value, a decimal number. Absent: there is none.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Value string `json:"value,omitempty"`

	// reason why there is none.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}

// TrialMeasured is True when every number that measurements ask for is there, False when one is not
// (the message says which and why) or Prometheus is being asked. Trials without measurements do not
// have it. The trial controller sets it.
const TrialMeasured = "Measured"

const (
	// ReasonAskingPrometheus: it is waited for that Prometheus scrapes the pods, or for the last
	// samples of the window, or Prometheus computes.
	ReasonAskingPrometheus = "AskingPrometheus"
	// ReasonMeasured: every number is there.
	ReasonMeasured = "Measured"
	// ReasonNotMeasured: a number could not be had. As the reason of Valid: one that the experiment
	// requires.
	ReasonNotMeasured = "NotMeasured"
)
