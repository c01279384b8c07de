// Package sim runs replicas and clients in one deterministic simulation: one
// thread, virtual time, and a network whose delays, losses and outages come
// from a seed. It has no code of its own outside tests.
//
// check_test.go checks each run; that the checks can fail is shown by TestMutations, which breaks
// the protocol on purpose.
//
//	go test ./systems/basil/internal/sim -run TestSeeds -seed 1234 -v
//
// runs one seed again.
package sim
