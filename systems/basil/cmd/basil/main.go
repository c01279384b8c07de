// Command basil runs the reference implementation of Basil: replicas, a
// load-generator driver, and a whole cluster in one process for trying it out.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	root := &cobra.Command{
		Use:           "basil",
		Short:         "Basil: Byzantine fault-tolerant transactions (SOSP 2021), reference implementation",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
	}
	root.AddCommand(keygenCommand(), replicaCommand(), driverCommand(), localCommand())
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "basil:", err)
		os.Exit(1)
	}
}

// terminated returns a channel that closes on SIGTERM or SIGINT.
func terminated() <-chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM, os.Interrupt)
	return c
}
