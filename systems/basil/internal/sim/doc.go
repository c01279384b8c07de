// Package sim runs replicas and clients in one deterministic simulation: one thread, virtual time,
// and a network with delays, losses and outages drawn from a seed. All of its code is in tests.
//
// check_test.go checks each run. TestMutations shows that the checks can fail: it breaks the
// protocol on purpose.
//
//	go test ./systems/basil/internal/sim -run TestSeeds -seed 1234 -v
//
// repeats one seed.
package sim
