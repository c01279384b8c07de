// Command etcd-driver puts load on an etcd cluster. It does not change etcd itself.
//
//	etcd-driver run --members HOST:PORT,...     run clients for a load generator that speaks the driver protocol on stdin and stdout
//	etcd-driver load --members HOST:PORT,...    give every key of the workload a value
//	etcd-driver add-learner --member HOST:PORT --peer-url URL    add a member that has no vote
//
// `etcd-driver COMMAND --help` lists the flags with unit and default. Wrong usage exits with 2.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	protocol "assay.dev/assay/systems/driver"
	"assay.dev/assay/systems/etcd/internal/client"
	"assay.dev/assay/systems/etcd/internal/driver"
	"assay.dev/assay/systems/etcd/internal/member"
	"assay.dev/assay/systems/etcd/internal/workload"
)

// Exit codes beside 0.
const (
	exitError = 1
	exitUsage = 2
)

// errSaid ends a program after package flag has printed the error or the usage.
var errSaid = errors.New("flag has said it")

func main() {
	code, err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout)
	if err != nil && !errors.Is(err, errSaid) {
		fmt.Fprintln(os.Stderr, "etcd-driver:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) (int, error) {
	if len(args) == 0 {
		return exitUsage, errors.New("say what to do: run, load or add-learner")
	}
	switch args[0] {
	case "run":
		return drive(ctx, args[1:], in, out)
	case "load":
		return load(ctx, args[1:])
	case "add-learner":
		return addLearner(ctx, args[1:])
	}
	return exitUsage, fmt.Errorf("%q is none of run, load, add-learner", args[0])
}

// cluster has the common flags of run and load.
type cluster struct {
	members string
	shards  int
	attempt time.Duration
	work    workload.Workload
}

func (c *cluster) register(flags *flag.FlagSet) {
	flags.StringVar(&c.members, "members", "", "client addresses of all members, `HOST:PORT,...`, in the same order for all clients")
	flags.IntVar(&c.shards, "shards", 1, "shards that the deployment has; more than 1 is refused, since etcd has one log for all keys")
	flags.DurationVar(&c.attempt, "attempt-timeout", 500*time.Millisecond, "how long a member may take to answer before the next one is asked (1ms to 1m)")
	flags.IntVar(&c.work.Keys, "keys", 1000, "keys that there are (1 to 100000000)")
	flags.IntVar(&c.work.ValueSize, "value-size", 256, "`bytes` of a value (1 to 1048576)")
}

func (c *cluster) validate() error {
	switch {
	case c.members == "":
		return errors.New("--members is needed: HOST:PORT of all members, separated by commas")
	case c.shards != 1:
		return fmt.Errorf("--shards is %d: etcd has one log for all keys; deploy one shard", c.shards)
	case c.attempt < time.Millisecond || c.attempt > time.Minute:
		return fmt.Errorf("--attempt-timeout is %v; want 1ms to 1m", c.attempt)
	}
	return c.work.Validate()
}

func (c *cluster) addresses() []string { return strings.Split(c.members, ",") }

func drive(ctx context.Context, args []string, in io.Reader, out io.Writer) (int, error) {
	flags := flag.NewFlagSet("etcd-driver run", flag.ContinueOnError)
	var c cluster
	c.register(flags)
	flags.Float64Var(&c.work.ReadShare, "read-share", 0, "share of operations that are gets (0 to 1)")
	serializable := flags.Bool("serializable-reads", false, "gets are answered from what one member has, which may be old; otherwise they are linearizable")
	if code, err := parse(flags, args, c.validate); err != nil {
		return code, err
	}
	d := &driver.Driver{Members: c.addresses(), Attempt: c.attempt, Workload: c.work, Serializable: *serializable}
	return exit(protocol.Serve(ctx, in, out, protocol.Clients(d)))
}

func load(ctx context.Context, args []string) (int, error) {
	flags := flag.NewFlagSet("etcd-driver load", flag.ContinueOnError)
	var c cluster
	c.register(flags)
	timeout := flags.Duration("timeout", 10*time.Minute, "how long it may take")
	if code, err := parse(flags, args, c.validate); err != nil {
		return code, err
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	one, err := client.New(client.Options{Members: c.addresses(), Attempt: c.attempt, Counters: &client.Counters{}})
	if err != nil {
		return exitError, err
	}
	defer one.Close()
	return exit(driver.Load(ctx, c.work, one))
}

// addLearner changes the membership of a cluster. A learner has no vote, so the cluster goes on
// before the learner's process runs.
func addLearner(ctx context.Context, args []string) (int, error) {
	flags := flag.NewFlagSet("etcd-driver add-learner", flag.ContinueOnError)
	address := flags.String("member", "", "client address of the member that is asked, `HOST:PORT`")
	peer := flags.String("peer-url", "", "`URL` at which the other members will reach the new one, such as http://host:2380")
	timeout := flags.Duration("timeout", 10*time.Second, "how long it may take")
	if code, err := parse(flags, args, func() error {
		if *address == "" || *peer == "" {
			return errors.New("--member and --peer-url are needed")
		}
		return nil
	}); err != nil {
		return code, err
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	m, err := member.Open(*address)
	if err != nil {
		return exitUsage, err
	}
	defer m.Close()
	return exit(m.AddLearner(ctx, *peer))
}

// parse reads flags. Package flag prints the errors itself.
func parse(flags *flag.FlagSet, args []string, validate func() error) (int, error) {
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0, errSaid
	case err != nil:
		return exitUsage, errSaid
	case flags.NArg() > 0:
		return exitUsage, fmt.Errorf("%q: there are no arguments beside flags", flags.Arg(0))
	}
	if err := validate(); err != nil {
		return exitUsage, err
	}
	return 0, nil
}

func exit(err error) (int, error) {
	if err != nil {
		return exitError, err
	}
	return 0, nil
}
