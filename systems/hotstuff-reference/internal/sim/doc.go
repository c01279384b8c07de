// Package sim runs groups of replicas and their clients in one deterministic simulation: one
// thread, virtual time, and a network with delays, losses and partitions drawn from a seed. All of
// its code is in tests.
//
// A history has at most f faulty replicas: silent ones, ones that crash, and liars, which
// equivocate as leaders and as voters (faults_test.go). Until an instant the network may lose and
// delay any message; from then on it is synchronous (GST). Each history is checked:
//
//   - agreement: all correct replicas execute the same blocks and commands in the same order,
//   - validity: no command is executed twice, and each comes from a client or a liar,
//   - truth: if a client believes that a command was executed, a correct replica executed it,
//   - progress: after GST all correct replicas execute all commands of all clients.
//
// TestMutations shows that these checks can fail: it breaks the protocol on purpose.
//
//	go test ./internal/sim -run TestSeeds -seeds 10000
//	go test ./internal/sim -run TestSeeds -seed 1234 -v
//
// runs ten thousand histories, and repeats one of them.
package sim
