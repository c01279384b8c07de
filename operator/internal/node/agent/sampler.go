package agent

// sampler reads what the containers use, and what network and node do.
type sampler struct {
	*state
	clock     *runClock
	launchers *launchers
}
