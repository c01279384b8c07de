// Package archive puts the results of trials and experiments into the store that their experiment
// names. The experiments go on meanwhile: nothing waits for it.
//
//	desk.go         what agents ask for through the coordinator: a presigned request for one object, or to keep a part of one in the cluster
//	trials.go       a trial that is complete -> its objects, what is kept in the cluster, its manifest -> condition ResultsStored
//	experiments.go  an experiment that is accepted -> the experiment itself; one that is complete, all of whose trials are stored -> results, report, bundle, manifest
//	gate.go         how soon a store that failed is asked again
//
// Everything follows from the contents of the cluster and the store, so a new manager goes on at
// any point. A manifest is written last: if it exists, all its objects do. A failing store is asked
// again, less and less often. Meanwhile the data for it stays in the cluster. The package creates
// no trial. It deletes only ConfigMaps of kept data, and writes no condition of an experiment: it
// writes status.archive for the experiment controller.
package archive
