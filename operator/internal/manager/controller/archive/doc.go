// Package archive puts the results of trials and experiments into the store that their experiment
// names, while the experiments go on: nothing waits for it.
//
//	desk.go         what agents ask for through the coordinator: a presigned request for one object, or to keep a part of one in the cluster
//	trials.go       a trial that is complete -> its objects, what is kept in the cluster, its manifest -> condition ResultsStored
//	experiments.go  an experiment that is accepted -> the experiment itself; one that is complete, all of whose trials are stored -> results, report, bundle, manifest
//	gate.go         how soon a store that failed is asked again
//
// Everything follows from the contents of the cluster and the store. So a new manager goes on where
// the old one was, at any point. A manifest is written last: where there is one, the rest is there.
// A store that fails is asked again, less and less often; what is for it stays in the cluster
// meanwhile. The package creates no trial, deletes nothing but ConfigMaps of what was kept, and
// writes no condition of an experiment: status.archive tells the experiment controller what it
// needs.
package archive
