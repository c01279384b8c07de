package v1alpha1

// Disturbances says what Assay does about a disturbed environment: other programs on the nodes, a
// hypervisor that takes processors away, drifting clocks, a late network. See
// docs/reference/repetitions.md.
type Disturbances struct {
	// retryFor bounds the time that trials which the environment disturbed may take in all, from
	// admission until they are cleaned up. Below it, each of them is repeated, however often; once
	// it is used up, none is. Waiting in the queue takes nothing of it. From 0s (never repeated) to
	// 24h. Default: 30m.
	// +optional
	// +kubebuilder:default="30m"
	RetryFor Duration `json:"retryFor,omitempty"`

	// idleWait is how long a trial, with everything ready at the start barrier, may wait
	// for idle machines; then it starts all the same. Machines are idle when, for the last second,
	// none of the trial lost more to its hypervisor than tolerances.steal, nor more to all others
	// than idleThreshold. From 0s (no wait) to 10m. Default: 60s.
	// +optional
	// +kubebuilder:default="60s"
	IdleWait Duration `json:"idleWait,omitempty"`

	// idleThreshold is the share of processor time that others may take on an idle machine: all but
	// the processes of the trial, and what its hypervisor takes. 100%: any. Default: 25%.
	// +optional
	// +kubebuilder:default="25%"
	IdleThreshold Percentage `json:"idleThreshold,omitempty"`
}
