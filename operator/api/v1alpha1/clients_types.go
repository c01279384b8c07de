package v1alpha1

// Loop is how clients offer load: Closed (each client sends its next request after the last reply);
// Open (requests arrive at an offered rate, whatever the replies do).
// +kubebuilder:validation:Enum=Closed;Open
type Loop string

// The loops.
const (
	LoopClosed Loop = "Closed"
	LoopOpen   Loop = "Open"
)

// Arrivals is how requests of an open loop are spaced: Constant (evenly); Poisson (exponentially
// distributed gaps).
// +kubebuilder:validation:Enum=Constant;Poisson
type Arrivals string

// The arrivals.
const (
	ArrivalsConstant Arrivals = "Constant"
	ArrivalsPoisson  Arrivals = "Poisson"
)

// Clients say how load is offered. The axes "clients" and "rate" of a sweep set count and rate.
type Clients struct {
	// loop of the clients. Required, unless the systems have a script.
	// +optional
	Loop Loop `json:"loop,omitempty"`

	// nodes is the number of client pods that the clients are spread over. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	Nodes int32 `json:"nodes,omitempty"`

	// regions that the client pods are in, one after the other, from the first again when there are
	// more pods. Default: the regions of the topology that have replicas, in their order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=14
	Regions []string `json:"regions,omitempty"`

	// count of clients over all nodes. Closed loop: each has one request outstanding. Open loop:
	// the most requests that may be outstanding at once. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Count int32 `json:"count,omitempty"`

	// rate offered by all nodes together, in requests per second. Open loop only.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000000
	Rate *int64 `json:"rate,omitempty"`

	// arrivals of an open loop. Default for an open loop: Poisson.
	// +optional
	Arrivals *Arrivals `json:"arrivals,omitempty"`

	// thinkTime is how long a client of a closed loop waits after the end of a transaction before
	// it begins the next. Its first wait is a random part of that, so that clients do not march in
	// step. From 0s to 10m. Default: 0s.
	// +optional
	// +kubebuilder:default="0s"
	ThinkTime Duration `json:"thinkTime,omitempty"`

	// timeout after which a request counts as timed out. Default: 10s. From 1ms to 10m.
	// +optional
	// +kubebuilder:default="10s"
	Timeout Duration `json:"timeout,omitempty"`

	// retry of aborted transactions. A transaction's latency spans all its attempts and the waits
	// between them, as the Basil and Pesto artifacts count it.
	// +optional
	// +kubebuilder:default={}
	Retry Retry `json:"retry,omitempty"`
}

// Retry says how aborted transactions are tried again.
type Retry struct {
	// attempts at most, the first included. 0: no limit. Default: 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Attempts int32 `json:"attempts,omitempty"`

	// backoff before the second attempt; each further wait is twice as long, and each is drawn
	// uniformly between half of it and all of it. Default: 2ms.
	// +optional
	// +kubebuilder:default="2ms"
	Backoff Duration `json:"backoff,omitempty"`

	// maxBackoff is the longest wait. Default: 300ms.
	// +optional
	// +kubebuilder:default="300ms"
	MaxBackoff Duration `json:"maxBackoff,omitempty"`
}
