// Command hotstuff-driver runs clients of relab/hotstuff for a load generator that speaks the
// driver protocol on stdin and stdout. Servers are the project's own, as they are.
//
//	hotstuff-driver --replicas HOST:PORT,...
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

	protocol "assay.dev/assay/systems/driver"
	"assay.dev/assay/systems/hotstuff/internal/driver"
)

// Bounds of a payload in bytes. gRPC refuses messages of more than 4 MiB, and a batch is one
// message.
const maxPayload = 1 << 20

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	flags := flag.NewFlagSet("hotstuff-driver", flag.ContinueOnError)
	replicas := flags.String("replicas", "", "client addresses of all replicas, `HOST:PORT,...`, in the order of their ids, which count from 1")
	payload := flags.Int("payload-size", 0, "`bytes` of a command, 0 to 1048576")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	switch {
	case flags.NArg() > 0:
		fmt.Fprintf(os.Stderr, "hotstuff-driver: %q: there are no arguments beside flags\n", flags.Arg(0))
		return 2
	case *replicas == "":
		fmt.Fprintln(os.Stderr, "hotstuff-driver: --replicas is needed: HOST:PORT of all replicas, separated by commas")
		return 2
	case *payload < 0 || *payload > maxPayload:
		fmt.Fprintf(os.Stderr, "hotstuff-driver: --payload-size is %d; want 0 to %d\n", *payload, maxPayload)
		return 2
	}
	d := &driver.Driver{Replicas: strings.Split(*replicas, ","), PayloadSize: *payload}
	if err := protocol.Serve(context.Background(), os.Stdin, os.Stdout, d); err != nil {
		fmt.Fprintln(os.Stderr, "hotstuff-driver:", err)
		return 1
	}
	return 0
}
