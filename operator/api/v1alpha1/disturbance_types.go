package v1alpha1

// Disturbances says what Assay does about a disturbed environment: other programs on the nodes, a
// hypervisor that takes processors away, drifting clocks, a late network. See
// docs/reference/repetitions.md.
type Disturbances struct {
	// retryFor bounds the total time of trials that the environment disturbed, each from its
	// admission until it is cleaned up. Assay repeats each such trial, however often, until the
	// time is used up. Time in the queue does not count. From 0s (never repeated) to 24h. Default:
	// 30m.
	// +optional
	// +kubebuilder:default="30m"
	RetryFor Duration `json:"retryFor,omitempty"`

	// idleWait is how long a trial that is ready at the start barrier may wait for idle machines.
	// After that it starts all the same. A machine is idle when two shares of its processors were
	// small in the last second: its hypervisor took at most tolerances.steal, and others took at
	// most idleThreshold. From 0s (no wait) to 10m. Default: 60s.
	// +optional
	// +kubebuilder:default="60s"
	IdleWait Duration `json:"idleWait,omitempty"`

	// idleThreshold is the share of processor time that others may take on an idle machine. Others
	// are the hypervisor, and all processes that are not the trial's. 100%: any share. Default:
	// 25%.
	// +optional
	// +kubebuilder:default="25%"
	IdleThreshold Percentage `json:"idleThreshold,omitempty"`
}
