package agent

// sampler reads the use of the containers, the network and the node.
type sampler struct {
	*state
	clock     *runClock
	launchers *launchers
}
