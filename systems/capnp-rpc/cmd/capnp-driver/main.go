// Command capnp-driver runs clients of capnp-server for a load generator that speaks the driver
// protocol on stdin and stdout.
//
//	capnp-driver --server HOST:PORT [--connections 1] [--commands 1] [--command-size 32]
//
// Wrong usage exits with 2.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"assay.dev/assay/systems/capnp-rpc/internal/driver"
	protocol "assay.dev/assay/systems/driver"
)

// Bounds of the flags. Cap'n Proto in Go rejects messages of more than 64 MiB.
const (
	maxConnections = 64
	maxCommands    = 10_000
	maxCommandSize = 4096
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	d := &driver.Driver{}
	flags := flag.NewFlagSet("capnp-driver", flag.ContinueOnError)
	flags.StringVar(&d.Server, "server", "", "the server's `HOST:PORT`")
	flags.IntVar(&d.Connections, "connections", 1, "connections that the clients share, 1 to 64")
	flags.IntVar(&d.Commands, "commands", 1, "commands of a message, 0 to 10000")
	flags.IntVar(&d.CommandSize, "command-size", 32, "`bytes` of a command, 0 to 4096")
	return protocol.Main(flags, args, func() error { return check(d) }, func() error {
		return protocol.Serve(context.Background(), os.Stdin, os.Stdout, protocol.Clients(d))
	})
}

func check(d *driver.Driver) error {
	switch {
	case d.Server == "":
		return errors.New("--server is needed: HOST:PORT")
	case d.Connections < 1 || d.Connections > maxConnections:
		return fmt.Errorf("--connections is %d; want 1 to %d", d.Connections, maxConnections)
	case d.Commands < 0 || d.Commands > maxCommands:
		return fmt.Errorf("--commands is %d; want 0 to %d", d.Commands, maxCommands)
	case d.CommandSize < 0 || d.CommandSize > maxCommandSize:
		return fmt.Errorf("--command-size is %d; want 0 to %d", d.CommandSize, maxCommandSize)
	}
	return nil
}
