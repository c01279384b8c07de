package v1alpha1

// Figure is a plot that the report has in addition to those of every experiment. It has one of
// stack, speedUp and percentiles. docs/guide/figures.md shows each.
// +kubebuilder:validation:XValidation:rule="(has(self.stack) ? 1 : 0) + (has(self.speedUp) ? 1 : 0) + (has(self.percentiles) ? 1 : 0) == 1",message="must have one of stack, speedUp and percentiles"
type Figure struct {
	// name of the figure, and of its files.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// title above the figure. Default: what it shows, such as "Speed-up over system=etcd".
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Title string `json:"title,omitempty"`

	// stack draws parts of a whole as a stacked bar for each point: the time of an operation by its
	// steps, storage by tier.
	// +optional
	Stack *Stack `json:"stack,omitempty"`

	// speedUp draws the ratio of every point to a baseline.
	// +optional
	SpeedUp *SpeedUp `json:"speedUp,omitempty"`

	// percentiles draws percentiles of latency as curves over the axis that is a number, or as bars
	// if no axis is a number.
	// +optional
	Percentiles *Percentiles `json:"percentiles,omitempty"`
}

// Stack is parts that add up.
type Stack struct {
	// parts in the order in which they are stacked, from 0 on: names of measurements of one unit.
	// The figure leaves out a trial if one of its parts was not measured or is below 0.
	// +listType=set
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=40
	Parts []string `json:"parts"`
}

// SpeedUp is the ratio of a metric at each point to its baseline. The baseline is the point that
// has the values of over, and on all other axes the same values. The figure computes intervals as
// the function ratio of claims does.
type SpeedUp struct {
	// of names the metric. For Throughput, the point's value is divided by the baseline's. For
	// MeanLatency, P50Latency and P99Latency, the baseline's value is divided by the point's, so
	// that a ratio above 1 is faster. Default: Throughput.
	// +optional
	// +kubebuilder:default=Throughput
	// +kubebuilder:validation:Enum=Throughput;MeanLatency;P50Latency;P99Latency
	Of string `json:"of,omitempty"`

	// over is the baseline, a value for some axes: {system: etcd}.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	Over map[string]Value `json:"over"`
}

// Percentiles are curves of some percentiles of latency.
type Percentiles struct {
	// of lists them. P95 is read off the trials' own histograms, and so is not on the live page.
	// Default: P50, P95, P99.
	// +optional
	// +listType=set
	// +kubebuilder:default={P50,P95,P99}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=6
	Of []Percentile `json:"of,omitempty"`
}

// Percentile of the latencies of a trial's committed transactions, P999 the 99.9th, P99999
// the 99.999th. A point has the mean of its trials' percentiles.
// +kubebuilder:validation:Enum=P10;P50;P75;P90;P95;P99;P999;P9999;P99999
type Percentile string
