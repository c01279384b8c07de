// Package plan turns an Experiment into trials: its points, the spec of each point, and the next
// trial.
//
// It is pure: no client, no clock, no log, no global randomness. The controller, the webhooks and
// kubectl-assay call it with their observations and get the same answer. So "kubectl assay plan"
// prints what the controller does.
//
//	Experiment --ApplyProfile--> spec --Expand (with its Systems)--> Plan{Points, Axes} --Next (with its Trials)--> Step
//
// # Points
//
// The points are the cross product of the axes; the last axis moves fastest. With several systems,
// "system" is the first axis. Every point is a TrialSpec in which nothing is left to decide but
// number, repetition, attempt, seed and the revision of the System.
//
// A parameter's value comes from the last of these that sets it. They are the default of the
// System, and the parameters of the experiment, of the system's reference, of the workload, of the
// profile, and of the axes.
//
// # Order
//
// Trials run one at a time, in rounds. Where the experiment has several sets of nodes, each set has
// rounds of its own (sets.go). With RandomizedInterleaved, round r holds repetition r of
// every point. The order is a permutation of its own (Fisher-Yates on splitmix64, started with the
// first 8 bytes of SHA-256 of "order", seed and r). With Sequential, round r holds all repetitions
// of point r, in order. A round first attempts each of its repetitions once. Then those whose trial
// was invalid or failed get their second attempt, in the same order, then their third. That goes on
// until each has a valid trial or its budget is used up. The budgets are retries for failures of
// the system, and the time disturbances.retryFor for disturbances of the environment. All
// repetitions draw on that time (disturbances.go). Only then does the next round start. So
//
//	next = the first round with an open repetition; in it, of the open repetitions with the fewest attempts, the first
//
// which needs no memory but the trials themselves: skipped or repeated calls do no harm.
package plan
