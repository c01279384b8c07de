// Command capnp-server answers messages by Cap'n Proto, at once.
//
//	capnp-server [--listen :7000]
//
// Wrong usage exits with 2.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"

	"assay.dev/assay/systems/capnp-rpc/internal/server"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	flags := flag.NewFlagSet("capnp-server", flag.ContinueOnError)
	listen := flags.String("listen", ":7000", "`[HOST]:PORT` to listen on")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(os.Stderr, "capnp-server: %q: there are no arguments beside flags\n", flags.Arg(0))
		return 2
	}
	l, err := net.Listen("tcp", *listen)
	if err == nil {
		fmt.Println("capnp-server listens on", l.Addr())
		err = server.Serve(l)
	}
	fmt.Fprintln(os.Stderr, "capnp-server:", err)
	return 1
}
