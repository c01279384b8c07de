// Package simulation runs whole histories of Assay in virtual time, with one goroutine at a time.
// One seed is one history, and the same seed always gives the same history.
//
// The code that decides is real: the engine, the controllers of trials, of experiments and of
// admission, and the coordinator with its handlers and limits. The stores of agents' messages, the
// upload of results into a store outside of the cluster, and validity are real, too. The world
// around them is simulated. It has an API server (api_test.go), the caches of two managers
// (view_test.go), and their work queues, leases and deaths (manager_test.go). It also has the
// controllers of Kubernetes, nodes and kubelets (cluster_test.go), the agents (agent*_test.go), and
// a store that may be slow or down, or lie (store_test.go).
//
//	make sim SEEDS=500            500 histories; a violation prints its seed
//	make sim-night                10,000 histories, with their virtual hours; goes on where it was ended
//	make sim-known                puts known defects back, one by one, and says which seed finds each
//	make sim-known KNOWN=R2       only this one
//	make sim-scale                200 experiments of 50 trials in 20 namespaces on 1,000 nodes
//	go test ./operator/test/simulation -run TestSeeds -first SEED -seeds 1 -v -trace     one history
//	go test ./operator/test/simulation -run EachWrite -v -each-write     a manager dies around each write of a trial
//
// # How it is deterministic
//
// A scheduler of our own (scheduler_test.go) has one queue of events in virtual time. Code that
// must wait in the middle, such as a reconcile that calls the API server, is a coroutine. It runs
// until it waits, and no other code runs meanwhile. The package testing/synctest has virtual time,
// too. But there the Go scheduler decides which goroutine runs first at one instant, so a seed
// would not be one history.
//
// # What is checked
//
// Safety is checked after every write, with the world's knowledge, which no manager has
// (invariants_test.go). No pool is held by two trials. An instant or an outcome that was written
// does not change. No two processes of a client run. A trial that counts was undisturbed, and
// judged over its whole plan. All trials of a repetition run on one set of nodes. Liveness is
// checked hours after the last disturbance: every trial and experiment has ended with a reason, no
// object is left, and the right party is blamed.
//
// A store never makes a trial invalid. If the condition ResultsStored is True, the store has all
// results, whole, and has every file that an agent was told is safe. Results that wait in the
// cluster are deleted only when they are in the store. Hours later all of them are in the store, or
// the condition says that the store lost what it was given.
//
// # Failpoints
//
// Each write of a manager, to the API server or to a store, is between two points that have names:
// "before create ConfigMap exp0-0-results, time 1". TestAManagerEndsAroundEachWrite lists the
// points of one trial, and ends the manager at each. The manager's own code has no such points.
//
// # What differs from the real world
//
//   - A manager advances one trial at a time, and takes one delivery of an agent at a time. A real
//     one has 16 workers. One worker would block on the mutex of another, and the simulation cannot
//     wait for that. In TestScale, calls of the API server take a sixteenth of the time instead.
//   - A work queue keeps each time for which a key waits. A real one keeps only the earliest, and so
//     do the queues of TestScale.
//   - Agents speak protocol.Directive and protocol.Report with the coordinator's real handlers, but
//     have no kernel. agent_test.go lists what they leave out.
//   - The coordinator does not hold answers back. The world tells an agent of a new directive when
//     the held answer would have. When a manager ends, the connections of its agents break, and real
//     ones report to another manager. Only those of TestScale do so: elsewhere a trial whose manager
//     ends before it knows all pods waits for its deadline. The seeds that failed are such histories.
//   - Tokens are the pods' UIDs.
//   - Nothing validates objects against their CRDs. The only webhook denies the files of trials.
//   - The store stands in at the port store.Remote, so package s3 and a server's answers are not
//     simulated. Bundles of experiments have their results, and no report.
//   - There are no datasets, no Chaos Mesh, no machine resets, no Prometheus.
package simulation
