// Command cassandra-driver puts load on Cassandra.
//
//	cassandra-driver run  --nodes HOST,...    run clients for a load generator that speaks the driver protocol on stdin and stdout
//	cassandra-driver load --nodes HOST,...    wait for the ring, make the table and fill it
//
// `cassandra-driver COMMAND --help` lists the flags with unit and default. Wrong usage exits with
// 2.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"assay.dev/assay/systems/cassandra/internal/driver"
	"assay.dev/assay/systems/cassandra/internal/workload"
	protocol "assay.dev/assay/systems/driver"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	if len(args) == 0 || args[0] != "run" && args[0] != "load" {
		fmt.Fprintln(os.Stderr, "cassandra-driver: say what to do: run or load")
		return 2
	}
	flags := flag.NewFlagSet("cassandra-driver "+args[0], flag.ContinueOnError)
	o := workload.Options{Read: gocql.One, Write: gocql.One}
	nodes := flags.String("nodes", "", "all nodes, `HOST,...`")
	port := flags.Int("port", 9042, "of CQL")
	connections := flags.Int("connections", 2, "to each node, 1 to 64")
	attempt := flags.Duration("attempt-timeout", 2*time.Second, "how long a request may take, 1ms to 10m")
	timeout := flags.Duration("load-timeout", 30*time.Minute, "load: how long it may take")
	flags.IntVar(&o.Records, "records", 100_000, "2 to 1000000000")
	flags.IntVar(&o.KeySize, "key-size", 24, "`bytes`, 20 to 1024")
	flags.IntVar(&o.ValueSize, "value-size", 1000, "`bytes`, 8 to 1048576")
	flags.StringVar(&o.Mix, "mix", "a", "a to f of YCSB's core workloads, or insert, update or scan alone")
	flags.StringVar(&o.Distribution, "distribution", "zipfian", "of keys: uniform, zipfian or latest")
	flags.Float64Var(&o.Theta, "zipf-theta", 0.99, "skew of zipfian and latest, above 0 and below 1")
	flags.IntVar(&o.Replication, "replication", 3, "replicas of each record")
	flags.StringVar(&o.Compaction, "compaction", "leveled", "unified, leveled or sizeTiered")
	flags.TextVar(&o.Read, "read-consistency", gocql.One, "ONE, TWO, QUORUM, ALL and so on")
	flags.TextVar(&o.Write, "write-consistency", gocql.One, "ONE, TWO, QUORUM, ALL and so on")
	d := &driver.Driver{}
	check := func() error {
		w, err := workload.New(o)
		switch {
		case err != nil:
			return err
		case *nodes == "":
			return errors.New("--nodes is needed: all nodes, separated by commas")
		case *connections < 1 || *connections > 64:
			return fmt.Errorf("--connections is %d; want 1 to 64", *connections)
		case *attempt < time.Millisecond || *attempt > 10*time.Minute:
			return fmt.Errorf("--attempt-timeout is %v; want 1ms to 10m", *attempt)
		}
		*d = driver.Driver{Nodes: strings.Split(*nodes, ","), Port: *port, Connections: *connections, Attempt: *attempt, Workload: w}
		return nil
	}
	return protocol.Main(flags, args[1:], check, func() error { return work(ctx, args[0], d, *timeout) })
}

// work carries the command out: run, or load within the timeout.
func work(ctx context.Context, command string, d *driver.Driver, timeout time.Duration) error {
	if command == "run" {
		return protocol.Serve(ctx, os.Stdin, os.Stdout, protocol.Clients(d))
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return driver.Load(ctx, d.Nodes, d.Port, d.Workload)
}
