// Command etcd-role checks the role of one etcd member.
//
//	etcd-role leads --address HOST:PORT       exit with 0 if this member leads its cluster
//	etcd-role follows --address HOST:PORT     exit with 0 if this member is the first one that does not lead
//
// It exits with 1 if the member does not have the role or does not answer, and with 2 for wrong
// usage. It is a separate program, so that it starts fast: it runs shortly before a fault on the
// member with the role.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"assay.dev/assay/systems/etcd/internal/role"
)

func main() {
	code, err := run(context.Background(), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd-role:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) (int, error) {
	roles := map[string]func(context.Context, string) (bool, error){"leads": role.Leads, "follows": role.Follows}
	if len(args) == 0 || roles[args[0]] == nil {
		return 2, errors.New("say which role: leads or follows")
	}
	flags := flag.NewFlagSet("etcd-role "+args[0], flag.ContinueOnError)
	address := flags.String("address", "127.0.0.1:2379", "client address of the member, `HOST:PORT`")
	timeout := flags.Duration("timeout", 200*time.Millisecond, "how long the member may take to answer")
	switch err := flags.Parse(args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return 0, nil
	case err != nil:
		return 2, nil // package flag has printed the reason
	case flags.NArg() > 0:
		return 2, fmt.Errorf("%q: there are no arguments beside flags", flags.Arg(0))
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	yes, err := roles[args[0]](ctx, *address)
	if err != nil || !yes {
		return 1, err
	}
	return 0, nil
}
