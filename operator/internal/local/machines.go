package local

import (
	"context"
	"os"
)

// Machine is one of a trial that runs on this machine, in whatever process the trial's life is.
type Machine struct {
	// Names of the machine, its own first.
	Names []string
	// Run runs a command in the container that the machine is, and returns its exit code.
	Run func(ctx context.Context, command []string, in, out, errs *os.File, terminal bool) (int, error)
}
