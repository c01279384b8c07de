// Package accuracy holds the tests that measure all backends in the same way, through netem.Shaper.
// They measure how exact a delay is, what it does to the throughput of TCP, and what it costs. They
// run in the machine of hack/vm only, where time is counted in instructions: see `make
// bench-netem`.
package accuracy
