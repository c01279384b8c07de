// Package local carries experiments out on one machine, without a cluster. The controllers and the
// coordinator of a manager run in this process, over objects in a folder (package folder). Pods run
// on this machine (package node).
//
//	Experiment, System -> folder <- experiment, admission, trial controllers -> StatefulSets, Jobs -> node -> containers
//	                                       coordinator <------- agents, in the pods' network -------------------'
//
// The package decides nothing about a trial. It refuses experiments that one machine cannot carry
// out before anything runs: see Refusals.
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
	// Cache holds data that outlives experiments: unpacked images, and data sets.
	Cache string
	// State is the folder of all files that must not outlive a run. Empty: StateDir.
	State string
	// Rootless: this process is root only in its user namespace (package rootless).
	Rootless bool
	// Capabilities that containers of Systems may have.
	Capabilities []string
	// Images are places to look for images before asking docker and registries. A place is an
	// archive, an OCI layout, or a folder with such.
	Images []string
	// AgentImage is the image with the agent, the launcher and the load generator.
	AgentImage string
	// Runtime is the program that runs containers: runc, or a program with the same command line.
	Runtime string
	Log     logr.Logger
}

// StateDir is the folder of all files that must not outlive a run of root.
const StateDir = "/var/lib/assay/local"

// Running is an experiment that is being carried out.
type Running struct {
	// Config of a connection to the objects, in this process.
	Config *rest.Config

	stop  context.CancelFunc
	ended chan error
}

// Stop stops the experiment, and returns when nothing of it runs any more. If the experiment is not
// complete, a later Start goes on with it.
func (r *Running) Stop() error {
	r.stop()
	return <-r.ended
}
