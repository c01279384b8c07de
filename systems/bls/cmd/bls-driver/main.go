// Command bls-driver times a BLS library.
//
//	bls-driver run --operation sign [--signatures 4] [--runs 1]    run it for a load generator that speaks the driver protocol on stdin and stdout
//	bls-driver idle                                                do nothing, as the one replica of a system that has none
//
// Wrong usage exits with 2.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"assay.dev/assay/systems/bls/internal/driver"
	"assay.dev/assay/systems/bls/internal/function"
	protocol "assay.dev/assay/systems/driver"
)

const maxRuns = 1_000_000

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	if len(args) == 0 || args[0] != "run" && args[0] != "idle" {
		fmt.Fprintln(os.Stderr, "bls-driver: say what to do: run or idle")
		return 2
	}
	d := &driver.Driver{}
	flags := flag.NewFlagSet("bls-driver "+args[0], flag.ContinueOnError)
	flags.StringVar(&d.Operation, "operation", "sign", "`function` to time: "+strings.Join(function.Names, ", "))
	flags.IntVar(&d.Signatures, "signatures", 4, "signatures of an aggregate, 1 to 1000")
	flags.IntVar(&d.Runs, "runs", 1, "runs of the function in a transaction, 1 to 1000000")
	return protocol.Main(flags, args[1:], func() error { return check(d) }, func() error {
		if args[0] == "idle" {
			<-ctx.Done()
			return nil
		}
		return protocol.Serve(ctx, os.Stdin, os.Stdout, protocol.Clients(d))
	})
}

func check(d *driver.Driver) error {
	switch {
	case !slices.Contains(function.Names, d.Operation):
		return fmt.Errorf("--operation is %q; want one of %q", d.Operation, function.Names)
	case d.Signatures < 1 || d.Signatures > function.MaxSignatures:
		return fmt.Errorf("--signatures is %d; want 1 to %d", d.Signatures, function.MaxSignatures)
	case d.Runs < 1 || d.Runs > maxRuns:
		return fmt.Errorf("--runs is %d; want 1 to %d", d.Runs, maxRuns)
	}
	return nil
}
