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

// Bounds of a payload in bytes. A node's mempool rejects transactions of more than 1 MiB, and a
// transaction also has a key.
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
	check := func() error {
		switch {
		case *nodes == "":
			return errors.New("--nodes is needed: HOST:PORT of all nodes, separated by commas")
		case *payload < minPayload || *payload > maxPayload:
			return fmt.Errorf("--payload-size is %d; want %d to %d", *payload, minPayload, maxPayload)
		}
		return nil
	}
	return protocol.Main(flags, args, check, func() error {
		d := &driver.Driver{Nodes: strings.Split(*nodes, ","), PayloadSize: *payload}
		return protocol.Serve(context.Background(), os.Stdin, os.Stdout, protocol.Clients(d))
	})
}
