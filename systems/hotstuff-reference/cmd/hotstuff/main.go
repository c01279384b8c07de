// Command hotstuff runs HotStuff: keys, replicas, and clients for a load generator.
//
//	hotstuff keygen  --replicas 4 --out keys
//	hotstuff replica --replicas HOST:PORT,... --index 0 --keys keys
//	hotstuff driver  --replicas HOST:PORT,...       speaks the driver protocol on stdin and stdout
//
// Each has --help. Wrong usage exits with 2.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	protocol "assay.dev/assay/systems/driver"
	"assay.dev/assay/systems/hotstuff-reference/internal/auth"
	"assay.dev/assay/systems/hotstuff-reference/internal/driver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	if len(args) > 0 {
		switch args[0] {
		case "keygen":
			return runKeygen(args[1:])
		case "replica":
			return runReplica(ctx, args[1:])
		case "driver":
			return runDriver(ctx, args[1:])
		}
	}
	fmt.Fprintln(os.Stderr, "hotstuff: say what to do: keygen, replica or driver")
	return 2
}

// mostReplicas of a group.
const mostReplicas = 100

func runKeygen(args []string) int {
	flags := flag.NewFlagSet("hotstuff keygen", flag.ContinueOnError)
	replicas := flags.Int("replicas", 0, "`number` of replicas, 1 to 100")
	out := flags.String("out", "", "`folder` for INDEX.ecdsa, INDEX.bls and their .pub; keys that are there stay, and it fails")
	check := func() error {
		switch {
		case *replicas < 1 || *replicas > mostReplicas:
			return fmt.Errorf("--replicas is %d; want 1 to %d", *replicas, mostReplicas)
		case *out == "":
			return fmt.Errorf("--out is needed: a folder for the keys")
		}
		return nil
	}
	return protocol.Main(flags, args, check, func() error { return auth.WriteKeys(*out, *replicas) })
}

// most bytes of a command. A block has 8 MiB.
const mostPayload = 1 << 20

func runDriver(ctx context.Context, args []string) int {
	flags := flag.NewFlagSet("hotstuff driver", flag.ContinueOnError)
	replicas := flags.String("replicas", "", "addresses of all replicas, `HOST:PORT,...`, in the order of their indices")
	payload := flags.Int("payload-size", 0, "`bytes` of a command, 0 to 1048576")
	check := func() error {
		if *payload < 0 || *payload > mostPayload {
			return fmt.Errorf("--payload-size is %d; want 0 to %d", *payload, mostPayload)
		}
		_, err := addresses(*replicas)
		return err
	}
	return protocol.Main(flags, args, check, func() error {
		all, _ := addresses(*replicas)
		return protocol.Serve(ctx, os.Stdin, os.Stdout, &driver.Driver{Replicas: all, PayloadSize: *payload})
	})
}

// addresses of all replicas.
func addresses(list string) ([]string, error) {
	if list == "" {
		return nil, fmt.Errorf("--replicas is needed: HOST:PORT of all replicas, separated by commas")
	}
	all := strings.Split(list, ",")
	if len(all) > mostReplicas || (len(all)-1)%3 != 0 {
		return nil, fmt.Errorf("--replicas names %d; want 3f+1: 1, 4, 7, up to %d", len(all), mostReplicas)
	}
	seen := map[string]bool{}
	for _, a := range all {
		if a == "" || seen[a] {
			return nil, fmt.Errorf("--replicas names %q twice, or an empty address", a)
		}
		seen[a] = true
	}
	return all, nil
}
