package v1alpha1

import "cmp"

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

	// rate offered by all nodes together, in requests per second. Open loop only, and not with a
	// trace.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000000
	Rate *int64 `json:"rate,omitempty"`

	// arrivals of an open loop. Default for an open loop without a trace: Poisson.
	// +optional
	Arrivals *Arrivals `json:"arrivals,omitempty"`

	// phases make the load change: steps and ramps, one after the other from t = 0 on. The warm-up
	// has the load at the start of the first phase. After the last phase the load stays as it was
	// at its end. They may not last longer than window and cool-down. Default: the load does not
	// change.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Phases []LoadPhase `json:"phases,omitempty"`

	// trace of arrivals that an Open loop replays, in place of rate, arrivals and phases. Default:
	// none.
	// +optional
	Trace *Trace `json:"trace,omitempty"`

	// session makes an Open loop semi-open: each arrival is a user, who sends several requests one
	// after the other, with thinkTime between them, and then leaves. The rate stays that of
	// requests: users arrive at rate / session.requests. Default: each arrival is one request.
	// +optional
	Session *Session `json:"session,omitempty"`

	// thinkTime is how long a client of a closed loop, or the user of a session, waits after the
	// end of a transaction before the next. In a closed loop the first wait is a random part of
	// thinkTime, so that clients do not act all at once. From 0s to 10m. Default: 0s.
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

// LoadPhase is a part of a run in which the load stays, or goes evenly from one level to another.
// Levels are relative to the point's load: rate in an Open loop, count in a Closed one. In a Closed
// loop that share of all clients, rounded down, takes part. A client that is to stop ends its
// transaction first.
type LoadPhase struct {
	// for is how long the phase lasts. From 1ms to 24h.
	For Duration `json:"for"`

	// load at the beginning of the phase: 50%. At most 100% in a Closed loop, 100000% in an Open
	// one.
	Load Percentage `json:"load"`

	// to is the load at the end of the phase, with the bounds of load. A value that differs from
	// load makes a ramp. Default: the value of load, which makes a step.
	// +optional
	To Percentage `json:"to,omitempty"`
}

// ToOrLoad returns to, or load if to is not set.
func (p LoadPhase) ToOrLoad() Percentage { return cmp.Or(p.To, p.Load) }

// Trace is a file of arrivals.
type Trace struct {
	// file of the arrivals, in the container of the client: an absolute path. It comes with the
	// image, with the System's clients.files, or with a data set that clients use. It has a line
	// for each arrival: its instant in seconds, as a decimal number. Arrivals ascend. Text after a
	// comma or a blank is left out, and so are lines that begin with "#". The last arrival must not
	// lie before the end of the window. docs/guide/load.md.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/.+`
	File string `json:"file"`

	// begin is the instant of the trace that is t = 0. Arrivals before it belong to the warm-up.
	// From 0s to 87600h. Default: 0s.
	// +optional
	// +kubebuilder:default="0s"
	Begin Duration `json:"begin,omitempty"`

	// speed at which the trace is replayed: 200% is twice as fast. From 1% to 10000%. Default:
	// 100%.
	// +optional
	// +kubebuilder:default="100%"
	Speed Percentage `json:"speed,omitempty"`
}

// SessionLength says how many requests a session has: Fixed (all the same); Geometric (after each
// request it goes on with the same probability).
// +kubebuilder:validation:Enum=Fixed;Geometric
type SessionLength string

// The lengths of sessions.
const (
	SessionFixed     SessionLength = "Fixed"
	SessionGeometric SessionLength = "Geometric"
)

// Session is what one user of a semi-open loop does.
type Session struct {
	// requests of a session, in the mean. From 1 to 100000.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Requests int32 `json:"requests"`

	// length says how the number of requests varies. Default: Geometric.
	// +optional
	// +kubebuilder:default=Geometric
	Length SessionLength `json:"length,omitempty"`
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
