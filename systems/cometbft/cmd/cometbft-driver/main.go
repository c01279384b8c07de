// Command cometbft-driver runs clients of a group of CometBFT nodes, whose application is kvstore,
// for a load generator that speaks the driver protocol on stdin and stdout.
//
//	cometbft-driver --nodes HOST:PORT,...
//
// Wrong usage exits with 2.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"assay.dev/assay/systems/cometbft/internal/driver"
	protocol "assay.dev/assay/systems/driver"
)

// Bounds of a payload in bytes. A node's mempool refuses transactions of more than 1 MiB, which
// have a key, too.
const (
	minPayload = 1
	maxPayload = 1_000_000
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	flags := flag.NewFlagSet("cometbft-driver", flag.ContinueOnError)
	nodes := flags.String("nodes", "", "addresses of all nodes for clients, `HOST:PORT,...`, in the same order for all clients")
	payload := flags.Int("payload-size", minPayload, "`bytes` of a transaction's payload, 1 to 1000000")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	switch {
	case flags.NArg() > 0:
		fmt.Fprintf(os.Stderr, "cometbft-driver: %q: there are no arguments beside flags\n", flags.Arg(0))
		return 2
	case *nodes == "":
		fmt.Fprintln(os.Stderr, "cometbft-driver: --nodes is needed: HOST:PORT of all nodes, separated by commas")
		return 2
	case *payload < minPayload || *payload > maxPayload:
		fmt.Fprintf(os.Stderr, "cometbft-driver: --payload-size is %d; want %d to %d\n", *payload, minPayload, maxPayload)
		return 2
	}
	d := &driver.Driver{Nodes: strings.Split(*nodes, ","), PayloadSize: *payload}
	if err := protocol.Serve(context.Background(), os.Stdin, os.Stdout, protocol.Clients(d)); err != nil {
		fmt.Fprintln(os.Stderr, "cometbft-driver:", err)
		return 1
	}
	return 0
}
