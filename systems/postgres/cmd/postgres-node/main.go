// Command postgres-node runs one PostgreSQL server, alone or in a pair of a primary and its
// synchronous standby. It promotes the standby when the primary is gone.
//
//	postgres-node --index 0 --replicas HOST:PORT[,HOST:PORT]
//	postgres-node make --data DIRECTORY -- COMMAND ...
//
// Replica 0 begins as the primary. make makes a database, runs a command that loads it, and stops
// the server cleanly. The command finds the server at --port on the loopback interface. A node
// whose --data is a copy of what make made begins with it. Wrong usage exits with 2. If the server
// ends on its own, the command exits with 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"assay.dev/assay/systems/postgres/internal/node"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	flags := flag.NewFlagSet("postgres-node", flag.ContinueOnError)
	var c node.Config
	var replicas string
	making := len(args) > 0 && args[0] == "make"
	if making {
		args = args[1:]
	}
	port := flags.Int("port", 5432, "make: port of the server while it is loaded, 1 to 65535")
	flags.IntVar(&c.Index, "index", 0, "which of the replicas this is, from 0")
	flags.StringVar(&replicas, "replicas", "", "addresses of all replicas, `HOST:PORT,...`: one, or a primary and its standby")
	flags.StringVar(&c.Data, "data", "/data/postgres", "`directory` of the database; made if it does not exist")
	flags.StringVar(&c.Programs, "programs", "/usr/lib/postgresql/15/bin", "`directory` of PostgreSQL's programs")
	flags.IntVar(&c.StatusPort, "status-port", 8008, "port that answers GET /ready and /primary, with 200 or 503")
	flags.DurationVar(&c.FailoverTimeout, "failover-timeout", 3*time.Second, "for how long the primary must not have answered before the standby is promoted, 100ms to 10m")
	flags.StringVar(&c.SharedBuffers, "shared-buffers", "64MB", "memory for pages (shared_buffers)")
	flags.IntVar(&c.MaxConnections, "max-connections", 400, "clients at most (max_connections), 10 to 10000")
	flags.BoolVar(&c.Fsync, "fsync", true, "the log is on the disk before a commit is acknowledged (fsync); false is for machines whose disk would be all that is measured")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	c.Replicas = strings.Split(replicas, ",")
	run := func() error { return node.Run(ctx, c) }
	check := c.Validate
	if making {
		run = func() error { return node.Make(ctx, c, *port, flags.Args()) }
		check = func() error { return checkMake(*port, flags.NArg()) }
	}
	if err := check(); err != nil {
		fmt.Fprintln(os.Stderr, "postgres-node:", err)
		return 2
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "postgres-node:", err)
		return 1
	}
	return 0
}

func checkMake(port, words int) error {
	switch {
	case port < 1 || port > 65535:
		return fmt.Errorf("--port is %d; want 1 to 65535", port)
	case words == 0:
		return errors.New("make needs a command that loads the database, after --")
	}
	return nil
}
