// Command hotstuff-driver runs clients of relab/hotstuff for a load generator that speaks the
// driver protocol on stdin and stdout. The servers are the project's own, unchanged.
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

// Bounds of a payload in bytes. gRPC rejects messages of more than 4 MiB, and a batch is one
// message.
const maxPayload = 1 << 20

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	flags := flag.NewFlagSet("hotstuff-driver", flag.ContinueOnError)
	replicas := flags.String("replicas", "", "client addresses of all replicas, `HOST:PORT,...`, in the order of their ids, which count from 1")
	payload := flags.Int("payload-size", 0, "`bytes` of a command, 0 to 1048576")
	check := func() error {
		switch {
		case *replicas == "":
			return errors.New("--replicas is needed: HOST:PORT of all replicas, separated by commas")
		case *payload < 0 || *payload > maxPayload:
			return fmt.Errorf("--payload-size is %d; want 0 to %d", *payload, maxPayload)
		}
		return nil
	}
	return protocol.Main(flags, args, check, func() error {
		d := &driver.Driver{Replicas: strings.Split(*replicas, ","), PayloadSize: *payload}
		return protocol.Serve(context.Background(), os.Stdin, os.Stdout, d)
	})
}
