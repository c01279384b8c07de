package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	protocol "assay.dev/assay/systems/driver"
	"assay.dev/assay/systems/hotstuff-reference/internal/auth"
	"assay.dev/assay/systems/hotstuff-reference/internal/replica"
	"assay.dev/assay/systems/hotstuff-reference/internal/transport"
)

// options of a replica. All but index, listen and keys must be the same for all of a group.
type options struct {
	replicas, listen, keys, protocol, signatures string
	index, batch, tenure                         int
	truncate, filter                             bool
	timeout                                      time.Duration
}

func (o *options) register(f *flag.FlagSet) {
	f.StringVar(&o.replicas, "replicas", "", "addresses of all replicas, `HOST:PORT,...`, in the order of their indices; 3f+1 of them")
	f.IntVar(&o.index, "index", 0, "this replica's place in that list, from 0")
	f.StringVar(&o.listen, "listen", "", "`[HOST]:PORT` to listen on (default all addresses, the port of the list)")
	f.StringVar(&o.keys, "keys", "", "`folder` that keygen has filled; not needed with --signatures=none")
	f.StringVar(&o.protocol, "protocol", "chained", "`name`: chained or basic")
	f.StringVar(&o.signatures, "signatures", "ecdsa", "`name`: none, ecdsa or bls; none is safe against crashes only")
	f.IntVar(&o.batch, "batch-size", 0, "`commands` that one block has at most, 1 to 1000000; 0: no limit but 8 MiB")
	f.IntVar(&o.tenure, "tenure", 1, "`views` in a row for which one replica leads, 1 to 1000000")
	f.BoolVar(&o.truncate, "truncate", true, "leave a block's ancestors out of its proposal")
	f.BoolVar(&o.filter, "filter", true, "leave out of a block the commands that its ancestors have")
	f.DurationVar(&o.timeout, "timeout", time.Second, "how long a replica waits in a view before it leaves it, 1ms to 1m; doubles up to 16 times with each view that fails")
}

func (o *options) check() error {
	all, err := addresses(o.replicas)
	switch {
	case err != nil:
		return err
	case o.index < 0 || o.index >= len(all):
		return fmt.Errorf("--index is %d; want 0 to %d", o.index, len(all)-1)
	case o.protocol != "chained" && o.protocol != "basic":
		return fmt.Errorf("--protocol is %q; want chained or basic", o.protocol)
	case !slices.Contains(auth.Schemes, o.signatures):
		return fmt.Errorf("--signatures is %q; want one of %q", o.signatures, auth.Schemes)
	case o.signatures != "none" && o.keys == "":
		return fmt.Errorf("--keys is needed with --signatures=%s: a folder that keygen has filled", o.signatures)
	case o.batch < 0 || o.batch > 1_000_000:
		return fmt.Errorf("--batch-size is %d; want 0 to 1000000", o.batch)
	case o.tenure < 1 || o.tenure > 1_000_000:
		return fmt.Errorf("--tenure is %d; want 1 to 1000000", o.tenure)
	case o.timeout < time.Millisecond || o.timeout > time.Minute:
		return fmt.Errorf("--timeout is %v; want 1ms to 1m", o.timeout)
	}
	return nil
}

// config of the replica, and the addresses of all.
func (o *options) config() (replica.Config, []string, error) {
	all, err := addresses(o.replicas)
	if err != nil {
		return replica.Config{}, nil, err
	}
	scheme, err := auth.Load(o.signatures, o.keys, o.index, len(all))
	if err != nil {
		return replica.Config{}, nil, fmt.Errorf("--keys: %w", err)
	}
	kind := replica.Chained
	if o.protocol == "basic" {
		kind = replica.Basic
	}
	return replica.Config{
		ID: o.index, Sizes: replica.SizesFor(len(all)), Protocol: kind, Tenure: o.tenure, BatchSize: o.batch,
		Truncate: o.truncate, Filter: o.filter, Timeout: o.timeout, MaxTimeout: 16 * o.timeout,
		Scheme: scheme, Rules: replica.SafeNodeRules(),
	}, all, nil
}

func runReplica(ctx context.Context, args []string) int {
	o := &options{}
	flags := flag.NewFlagSet("hotstuff replica", flag.ContinueOnError)
	o.register(flags)
	return protocol.Main(flags, args, o.check, func() error { return serve(ctx, o) })
}

// serve until the context ends, and then print what the replica has done.
func serve(ctx context.Context, o *options) error {
	cfg, all, err := o.config()
	if err != nil {
		return err
	}
	listen := o.listen
	if listen == "" {
		_, port, err := net.SplitHostPort(all[o.index])
		if err != nil {
			return fmt.Errorf("--replicas: %w", err)
		}
		listen = ":" + port
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	h, err := transport.Serve(l, all, cfg)
	if err != nil {
		return err
	}
	defer h.Close()
	fmt.Printf("hotstuff: replica %d ready\n", o.index)
	<-ctx.Done()
	counters, view, broken := h.Counters()
	fmt.Fprintf(os.Stderr, "hotstuff: replica %d in view %d: %+v\n", o.index, view, counters)
	return broken
}
