package v1alpha1

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Percentage is a share of something, as papers write it: "1%", "0.5%".
//
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?%$`
type Percentage string

// Share returns the percentage as a number from 0 to 1, or more above 100%. An empty one is 0.
func (p Percentage) Share() (float64, error) {
	if p == "" {
		return 0, nil
	}
	number, found := strings.CutSuffix(string(p), "%")
	v, err := strconv.ParseFloat(number, 64)
	if !found || err != nil || v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not a percentage such as 1%% or 0.5%%", string(p))
	}
	return v / 100, nil
}

// OrZero returns the share, or 0 when it cannot be parsed. Use it only after validation.
func (p Percentage) OrZero() float64 {
	v, err := p.Share()
	if err != nil {
		return 0
	}
	return v
}

// Tolerances beyond which a trial is invalid and is tried again. Where the defaults come from:
// docs/guide/validity.md.
type Tolerances struct {
	// faultLateness is how much later than planned a fault may be confirmed. Default: 20ms.
	// +optional
	// +kubebuilder:default="20ms"
	FaultLateness Duration `json:"faultLateness,omitempty"`

	// chaosMeshLateness is how much later than planned a fault of Chaos Mesh may be confirmed;
	// Assay does not wait longer. Such faults go through the API server and Chaos Mesh's controller
	// and daemon, which takes about a second. Faults that end processes also give them their time
	// to end. Default: 10s.
	// +optional
	// +kubebuilder:default="10s"
	ChaosMeshLateness Duration `json:"chaosMeshLateness,omitempty"`

	// startSpread is how far apart the clients' starts may be. Default: 100ms.
	// +optional
	// +kubebuilder:default="100ms"
	StartSpread Duration `json:"startSpread,omitempty"`

	// linkDelay is how much later a packet may arrive at another pod than the asked delay and the
	// path's own delay allow. It is measured one way where both pods share a clock, else for the
	// round trip. Before t = 0, Assay measures every two pods. While the trial runs, it takes the
	// median of the canary probes. Default: 1ms.
	// +optional
	// +kubebuilder:default="1ms"
	LinkDelay Duration `json:"linkDelay,omitempty"`

	// linkLateness is how late the agents may release packets that they delay, at the 99th
	// percentile. Only NFQueue releases packets itself. Default: 10ms.
	// +optional
	// +kubebuilder:default="10ms"
	LinkLateness Duration `json:"linkLateness,omitempty"`

	// linkLoss is the share of a pair's canary probes that may be lost beyond what was asked. Fewer
	// than three lost probes never count. Default: 5%.
	// +optional
	// +kubebuilder:default="5%"
	LinkLoss Percentage `json:"linkLoss,omitempty"`

	// throttling is the share of the window in which a container may be held back by its CPU limit.
	// Each period of the limit in which the container was held back counts in full. 100%: never
	// judged. Default: 1%.
	// +optional
	// +kubebuilder:default="1%"
	Throttling Percentage `json:"throttling,omitempty"`

	// steal is the greatest share of processor time that a hypervisor may take from a node in the
	// window. It is relative to the time that the node's processes want, so idle time does not
	// count. With 100% it is never judged. Default: 1%.
	// +optional
	// +kubebuilder:default="1%"
	Steal Percentage `json:"steal,omitempty"`

	// contention is how often a thread of the trial may wait for more than 1ms for a processor that
	// other programs use. It is a share of the moments in the window at which a thread of the trial
	// wants a processor of a machine. Waiting for the trial's own threads does not count. With 100%
	// it is never judged. Default: 5%.
	// +optional
	// +kubebuilder:default="5%"
	Contention Percentage `json:"contention,omitempty"`

	// generatorLag is how late the load generator may send requests of an open loop for which a
	// client is free, at the 99th percentile. Requests that wait for a free client do not count,
	// since they wait for the system. Default: 10ms.
	// +optional
	// +kubebuilder:default="10ms"
	GeneratorLag Duration `json:"generatorLag,omitempty"`

	// clockError is how uncertain each pod's clock may be: half of the shortest round trip to the
	// manager, plus the drift since then. Assay uses these clocks to compare faults and starts with
	// their plan. Default: 10ms.
	// +optional
	// +kubebuilder:default="10ms"
	ClockError Duration `json:"clockError,omitempty"`

	// clockOffset is how far the wall clocks of any two pods may be apart, including their error.
	// Assay corrects its own numbers for the offset. A system that orders by its own clock does
	// not. Default: not judged.
	// +optional
	ClockOffset Duration `json:"clockOffset,omitempty"`

	// outOfRange is the share of committed transactions that may take more than an hour, which the
	// histogram cannot hold. Default: 0%.
	// +optional
	// +kubebuilder:default="0%"
	OutOfRange Percentage `json:"outOfRange,omitempty"`
}
