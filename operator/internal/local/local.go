// Package local carries experiments out on one machine, without a cluster. The controllers and the
// coordinator of a manager run in this process, over objects in a folder (package folder). Pods run
// on this machine (package node).
//
//	Experiment, System -> folder <- experiment, admission, trial controllers -> StatefulSets, Jobs -> node -> containers
//	                                       coordinator <------- agents, in the pods' network -------------------'
//
// Nothing of a trial is decided here. Experiments that one machine cannot carry out are refused
// before anything runs: see Refusals.
package local

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

// Options of a run on this machine.
type Options struct {
	// Dir holds a folder of results for each experiment.
	Dir string
	// Cache holds what outlives experiments: unpacked images, and data sets.
	Cache string
	// State is where everything is that must not outlive a run; empty: StateDir.
	State string
	// Rootless: this process is root of a user namespace only (package rootless).
	Rootless bool
	// Capabilities that containers of Systems may have.
	Capabilities []string
	// Images are folders with archives or OCI layouts, or one of these, in which images are looked
	// for before docker and registries are asked.
	Images []string
	// AgentImage has the agent, the launcher and the load generator.
	AgentImage string
	// Runtime is the program that runs containers: runc, or another with its command line.
	Runtime string
	Log     logr.Logger
}

// StateDir is where everything is of root's runs that must not outlive them.
const StateDir = "/var/lib/assay/local"

// Running is what carries an experiment out.
type Running struct {
	// Config of a connection to the objects, in this process.
	Config *rest.Config

	stop  context.CancelFunc
	ended chan error
}

// Stop ends it, and returns when nothing of it is left. An experiment that is not complete goes on
// when it is started again.
func (r *Running) Stop() error {
	r.stop()
	return <-r.ended
}
