// Command cassandra-driver puts load on Cassandra.
//
//	cassandra-driver run  --nodes HOST,...    run clients for a load generator that speaks the driver protocol on stdin and stdout
//	cassandra-driver load --nodes HOST,...    wait for the ring, make the table and fill it
//	cassandra-driver make --ring N            load a ring of N nodes on this machine, and leave the files of each
//	cassandra-driver open --nodes HOST,...    wait for a ring whose nodes have such files, make the table and read some of it
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
	"slices"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"assay.dev/assay/systems/cassandra/internal/driver"
	"assay.dev/assay/systems/cassandra/internal/maker"
	"assay.dev/assay/systems/cassandra/internal/workload"
	protocol "assay.dev/assay/systems/driver"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	if len(args) == 0 || !slices.Contains([]string{"run", "load", "make", "open"}, args[0]) {
		fmt.Fprintln(os.Stderr, "cassandra-driver: say what to do: run, load, make or open")
		return 2
	}
	making := args[0] == "make"
	flags := flag.NewFlagSet("cassandra-driver "+args[0], flag.ContinueOnError)
	o := workload.Options{Read: gocql.One, Write: gocql.One}
	nodes := flags.String("nodes", "", "all nodes, `HOST,...`")
	port := flags.Int("port", 9042, "of CQL")
	connections := flags.Int("connections", 2, "to each node, 1 to 64")
	attempt := flags.Duration("attempt-timeout", 2*time.Second, "how long a request may take, 1ms to 10m")
	timeout := flags.Duration("load-timeout", 30*time.Minute, "load, make and open: how long it may take")
	var m maker.Config
	makerFlags(flags, &m)
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
		case making && (m.Nodes < 1 || m.Nodes > maker.MaxNodes):
			return fmt.Errorf("--ring is %d; want 1 to %d", m.Nodes, maker.MaxNodes)
		case making && o.Replication > m.Nodes:
			return fmt.Errorf("--replication is %d, more than the %d nodes of the ring", o.Replication, m.Nodes)
		case !making && *nodes == "":
			return errors.New("--nodes is needed: all nodes, separated by commas")
		case *connections < 1 || *connections > 64:
			return fmt.Errorf("--connections is %d; want 1 to 64", *connections)
		case *attempt < time.Millisecond || *attempt > 10*time.Minute:
			return fmt.Errorf("--attempt-timeout is %v; want 1ms to 10m", *attempt)
		}
		m.Port, m.Workload = *port, w
		*d = driver.Driver{Nodes: strings.Split(*nodes, ","), Port: *port, Connections: *connections, Attempt: *attempt, Workload: w}
		return nil
	}
	return protocol.Main(flags, args[1:], check, func() error { return work(ctx, args[0], d, m, *timeout) })
}

// makerFlags are the flags of make alone.
func makerFlags(flags *flag.FlagSet, m *maker.Config) {
	flags.IntVar(&m.Nodes, "ring", 3, fmt.Sprint("make: nodes of the ring, 1 to ", maker.MaxNodes))
	flags.StringVar(&m.Dir, "dir", "/made", "make: `directory` that gets node-0, node-1 and so on")
	flags.StringVar(&m.Root, "root", "/", "make: `directory` with java and cassandra")
	flags.StringVar(&m.Heap, "heap", "512m", "make: memory for Java objects of each node")
	flags.IntVar(&m.Storage, "storage-port", 7000, "make: between the nodes")
	flags.IntVar(&m.JMX, "jmx-port", 7199, "make: of node 0, for its own machine; that of node 1 is the next one")
}

// work carries the command out, within the timeout if it is not run.
func work(ctx context.Context, command string, d *driver.Driver, m maker.Config, timeout time.Duration) error {
	if command == "run" {
		return protocol.Serve(ctx, os.Stdin, os.Stdout, protocol.Clients(d))
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	switch command {
	case "make":
		return maker.Make(ctx, m)
	case "open":
		return driver.Open(ctx, d.Nodes, d.Port, d.Workload)
	default:
		return driver.Load(ctx, d.Nodes, d.Port, d.Workload)
	}
}
