// Package accuracy holds the tests that measure all backends in the same way, through netem.Shaper.
// They measure how exact a delay is, its effect on the throughput of TCP, and its cost. They run
// only in the machine of hack/vm, where time is counted in instructions: see `make bench-netem`.
package accuracy
