// Command cometbft-home makes the homes of the nodes of a new group, and starts a node in its own.
//
//	cometbft-home make --nodes HOST:PORT,... [flags] DIR
//	cometbft-home start FROM HOME PROGRAM
//
// make fills DIR with node0, node1 and so on. start copies FROM to HOME, unless HOME exists
// already, and becomes `PROGRAM start --home HOME`. `cometbft-home make --help` lists the flags
// with unit and default. Wrong usage exits with 2.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"assay.dev/assay/systems/cometbft/internal/home"
)

// Exit codes beside 0.
const (
	exitError = 1
	exitUsage = 2
)

// errSaid ends a program after package flag has printed the error or the usage.
var errSaid = errors.New("flag has said it")

func main() {
	code, err := run(os.Args[1:])
	if err != nil && !errors.Is(err, errSaid) {
		fmt.Fprintln(os.Stderr, "cometbft-home:", err)
	}
	os.Exit(code)
}

func run(args []string) (int, error) {
	switch {
	case len(args) > 0 && args[0] == "make":
		return makeHomes(args[1:])
	case len(args) == 4 && args[0] == "start":
		return exitError, start(args[1], args[2], args[3])
	}
	return exitUsage, errors.New("want make [flags] DIR, or start FROM HOME PROGRAM")
}

// start returns only if it fails.
func start(from, to, program string) error {
	if err := home.Settle(from, to); err != nil {
		return err
	}
	return fmt.Errorf("start %s: %w", program, syscall.Exec(program, []string{program, "start", "--home", to}, os.Environ()))
}

func makeHomes(args []string) (int, error) {
	flags := flag.NewFlagSet("cometbft-home make", flag.ContinueOnError)
	s := home.Defaults()
	addresses := flags.String("nodes", "", "addresses of all nodes for each other, `HOST:PORT,...`")
	rpc := flags.Int("rpc-port", 26657, "`port` of every node for clients, 1 to 65535")
	metrics := flags.Int("metrics-port", 0, "`port` of every node for Prometheus, 1 to 65535; 0: no metrics")
	flags.Int64Var(&s.BatchSize, "batch-size", s.BatchSize, "`transactions` that a block holds at most, 1 to 1000000")
	flags.IntVar(&s.MempoolSize, "mempool-size", s.MempoolSize, "`transactions` that may wait in a node, 1 to 1000000")
	flags.DurationVar(&s.ProposeTimeout, "propose-timeout", s.ProposeTimeout, "how long a node waits for the proposal of a block, 1ms to 1m")
	flags.DurationVar(&s.VoteTimeout, "vote-timeout", s.VoteTimeout, "how long it waits for more votes where two thirds do not agree on a block, 1ms to 1m")
	flags.DurationVar(&s.CommitTimeout, "commit-timeout", s.CommitTimeout, "how long it waits for late votes between two blocks, 0s to 1m")
	flags.DurationVar(&s.GossipInterval, "gossip-interval", s.GossipInterval, "how long it rests when it has nothing to tell a peer, 1ms to 1m")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0, errSaid
	case err != nil:
		return exitUsage, errSaid
	case flags.NArg() != 1:
		return exitUsage, fmt.Errorf("want one directory after the flags, not %d", flags.NArg())
	}
	if err := check(s, *rpc, *metrics); err != nil {
		return exitUsage, err
	}
	nodes, err := nodesOf(*addresses, *rpc, *metrics)
	if err != nil {
		return exitUsage, err
	}
	if err := home.Make(flags.Arg(0), nodes, s); err != nil {
		return exitError, err
	}
	return 0, nil
}

func check(s home.Settings, rpc, metrics int) error {
	for _, n := range []struct {
		flag            string
		value, min, max int64
	}{
		{"rpc-port", int64(rpc), 1, 65535},
		{"metrics-port", int64(metrics), 0, 65535},
		{"batch-size", s.BatchSize, 1, 1_000_000},
		{"mempool-size", int64(s.MempoolSize), 1, 1_000_000},
	} {
		if n.value < n.min || n.value > n.max {
			return fmt.Errorf("--%s is %d; want %d to %d", n.flag, n.value, n.min, n.max)
		}
	}
	for _, d := range []struct {
		flag       string
		value, min time.Duration
	}{
		{"propose-timeout", s.ProposeTimeout, time.Millisecond},
		{"vote-timeout", s.VoteTimeout, time.Millisecond},
		{"commit-timeout", s.CommitTimeout, 0},
		{"gossip-interval", s.GossipInterval, time.Millisecond},
	} {
		if d.value < d.min || d.value > time.Minute {
			return fmt.Errorf("--%s is %v; want %v to 1m", d.flag, d.value, d.min)
		}
	}
	return nil
}

func nodesOf(addresses string, rpc, metrics int) ([]home.Node, error) {
	var nodes []home.Node
	for address := range strings.SplitSeq(addresses, ",") {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("--nodes has %q; want HOST:PORT of all nodes, separated by commas", address)
		}
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return nil, fmt.Errorf("--nodes has port %q; want 1 to 65535", port)
		}
		nodes = append(nodes, home.Node{Host: host, PeerPort: int(number), RPCPort: rpc, MetricsPort: metrics})
	}
	return nodes, nil
}
