package local

import (
	"context"
	"os"
)

// Machine is a machine of a trial on this computer. Another process may carry the trial out.
type Machine struct {
	// Names of the machine. Its own name is the first.
	Names []string
	// Run runs a command in the container of the machine, and returns its exit code.
	Run func(ctx context.Context, command []string, in, out, errs *os.File, terminal bool) (int, error)
}
