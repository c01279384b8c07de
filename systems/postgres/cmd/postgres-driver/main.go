// Command postgres-driver puts load on PostgreSQL.
//
//	postgres-driver run  --replicas HOST:PORT,... --workload NAME    run clients for a load generator that speaks the driver protocol on stdin and stdout
//	postgres-driver load --replicas HOST:PORT,... --workload NAME    make the workload's tables and fill them
//
// `postgres-driver COMMAND --help` lists the flags with unit and default. Wrong usage exits with 2.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	protocol "assay.dev/assay/systems/driver"
	"assay.dev/assay/systems/postgres/internal/driver"
	"assay.dev/assay/systems/postgres/internal/node"
	"assay.dev/assay/systems/postgres/internal/workload"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	if len(args) == 0 || args[0] != "run" && args[0] != "load" {
		fmt.Fprintln(os.Stderr, "postgres-driver: say what to do: run or load")
		return 2
	}
	flags := flag.NewFlagSet("postgres-driver "+args[0], flag.ContinueOnError)
	var o workload.Options
	replicas := flags.String("replicas", "", "addresses of all replicas, `HOST:PORT,...`")
	name := flags.String("workload", "ycsb", "what clients do: tpcc, auctionmark, seats, smallbank, retwis, ycsb or rows")
	attempt := flags.Duration("attempt-timeout", 2*time.Second, "how long an attempt may take before its connection is given up, 1ms to 10m")
	timeout := flags.Duration("load-timeout", 10*time.Minute, "load: how long it may take")
	flags.IntVar(&o.Records, "records", 100_000, "rows, accounts, users or customers, 2 to 100000000")
	flags.IntVar(&o.ValueSize, "value-size", 100, "`bytes` of a row's value, 1 to 1048576")
	flags.StringVar(&o.Mix, "mix", "a", "ycsb: a to f, its core workload")
	flags.BoolVar(&o.Zipfian, "zipfian", false, "ycsb: some records are more popular; otherwise all are alike")
	flags.Float64Var(&o.Theta, "zipf-theta", 0.99, "ycsb: skew of the zipfian distribution, above 0 and below 1")
	flags.Float64Var(&o.Hotspot, "hotspot", 0.25, "smallbank: share of transactions on the first 100 accounts, 0 to 1")
	flags.StringVar(&o.Access, "access", "scan", "rows: point, scan or scan-cond")
	flags.IntVar(&o.Rows, "rows", 10, "rows: how many a transaction reads, 1 to --records")
	flags.IntVar(&o.Warehouses, "warehouses", 1, "tpcc: how many, 1 to 10000; each has 100 MB")
	flags.StringVar(&o.Isolation, "isolation", "serializable", "tpcc: serializable or repeatable-read")
	var w workload.Workload
	check := func() (err error) {
		switch w, err = workload.New(*name, o); {
		case err != nil:
			return err
		case *replicas == "":
			return errors.New("--replicas is needed: HOST:PORT of all replicas, separated by commas")
		case *attempt < time.Millisecond || *attempt > 10*time.Minute:
			return fmt.Errorf("--attempt-timeout is %v; want 1ms to 10m", *attempt)
		}
		return nil
	}
	return protocol.Main(flags, args[1:], check, func() error {
		to := strings.Split(*replicas, ",")
		if args[0] == "load" {
			return load(ctx, to, w, *timeout)
		}
		d := &driver.Driver{Replicas: to, Workload: w, Attempt: *attempt}
		return protocol.Serve(ctx, os.Stdin, os.Stdout, protocol.Clients(d))
	})
}

func load(ctx context.Context, to []string, w workload.Workload, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := node.Connect(ctx, to)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := w.Load(ctx, conn); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	return nil
}
