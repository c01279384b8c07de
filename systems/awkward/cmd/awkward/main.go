// Command awkward is a replicated system with the habits of research artifacts. It tests platforms
// that must run such artifacts unchanged.
//
//	awkward keygen DIR N                         make the keys of N replicas
//	awkward server --config FILE --index I --keys DIR
//	awkward client --config FILE --keys DIR --id N --duration S   print at the end, then hang
//	awkward stress --config FILE --keys DIR --id N                print on SIGTERM
//	awkward burn N                                                want N processors until the end, as a neighbour on a machine does
//	awkward load DIR ROWS [SHARDS]                make a table of rows of 1 KiB, always the same, or one for each shard
//	awkward verify DIR [SHARD]                    fail unless the table, of this shard alone, is as it was loaded, then change a byte of each file
//
// The packages under internal/ describe these habits.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"assay.dev/assay/systems/awkward/internal/client"
	"assay.dev/assay/systems/awkward/internal/group"
	"assay.dev/assay/systems/awkward/internal/identity"
	"assay.dev/assay/systems/awkward/internal/server"
	"assay.dev/assay/systems/awkward/internal/table"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	code, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "awkward:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) (int, error) {
	if len(args) == 0 {
		return 2, errors.New("say what to be: keygen, server, client, stress, burn, load or verify")
	}
	switch args[0] {
	case "keygen":
		return keygen(args[1:])
	case "server":
		return serve(ctx, args[1:])
	case "client":
		return load(ctx, args[1:], client.Run)
	case "stress":
		return load(ctx, args[1:], client.Stress)
	case "burn":
		return burn(ctx, args[1:])
	case "load":
		return loadTable(args[1:])
	case "verify":
		return verify(args[1:])
	}
	return 2, fmt.Errorf("%q is none of keygen, server, client, stress, burn, load, verify", args[0])
}

func loadTable(args []string) (int, error) {
	if len(args) != 2 && len(args) != 3 {
		return 2, errors.New("usage: awkward load DIR ROWS [SHARDS]")
	}
	rows, err := strconv.Atoi(args[1])
	if err != nil || rows < 1 {
		return 2, fmt.Errorf("%q is not a number of rows", args[1])
	}
	if len(args) == 2 {
		return exit(table.Load(args[0], rows))
	}
	shards, err := strconv.Atoi(args[2])
	if err != nil || shards < 1 {
		return 2, fmt.Errorf("%q is not a number of shards", args[2])
	}
	return exit(table.LoadShards(args[0], rows, shards))
}

func verify(args []string) (int, error) {
	var err error
	switch len(args) {
	case 1:
		err = table.Verify(args[0])
	case 2:
		shard, wrong := strconv.Atoi(args[1])
		if wrong != nil {
			return 2, fmt.Errorf("%q is not a number of a shard", args[1])
		}
		err = table.VerifyShard(args[0], shard)
	default:
		return 2, errors.New("usage: awkward verify DIR [SHARD]")
	}
	if err != nil {
		return 1, err
	}
	return exit(table.Spoil(args[0]))
}

// burn keeps processors busy until SIGTERM.
func burn(ctx context.Context, args []string) (int, error) {
	if len(args) != 1 {
		return 2, errors.New("usage: awkward burn N")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 1 || n > 1024 {
		return 2, fmt.Errorf("%q is not a number of processors from 1 to 1024", args[0])
	}
	runtime.GOMAXPROCS(n + 1)
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
			}
		})
	}
	all.Wait()
	return 0, nil
}

func keygen(args []string) (int, error) {
	if len(args) != 2 {
		return 2, errors.New("usage: awkward keygen DIR N")
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return 2, fmt.Errorf("%q is not a number of replicas", args[1])
	}
	return exit(identity.Generate(args[0], n, rand.Reader))
}

func serve(ctx context.Context, args []string) (int, error) {
	flags := flag.NewFlagSet("awkward server", flag.ContinueOnError)
	config := flags.String("config", "", "configuration `file`")
	o := server.Options{Resolver: net.DefaultResolver, Stdout: os.Stdout, Stderr: os.Stderr}
	flags.IntVar(&o.Index, "index", -1, "which `line` of the configuration this replica is, from 0")
	flags.StringVar(&o.Keys, "keys", "", "`directory` with the keys")
	flags.StringVar(&o.StatsFile, "stats_file", "", "`file` to write statistics to at the end")
	flags.DurationVar(&o.Load, "load_time", 1500*time.Millisecond, "how long to load")
	flags.DurationVar(&o.Service, "service_time", 0, "how long an operation takes")
	flags.DurationVar(&o.CrashAfter, "crash_after", 0, "how long after its first operation to crash; 0: not")
	flags.DurationVar(&o.StallAfter, "stall_after", 0, "how long after its first operation to answer no more; 0: always answer")
	if err := flags.Parse(args); err != nil {
		return 2, nil //nolint:nilerr // flag has printed it
	}
	var err error
	if o.Config, err = readConfig(*config); err != nil {
		return 1, err
	}
	return exit(server.Run(ctx, o))
}

func load(ctx context.Context, args []string, manner func(context.Context, client.Options) (int, error)) (int, error) {
	flags := flag.NewFlagSet("awkward client", flag.ContinueOnError)
	config := flags.String("config", "", "configuration `file`")
	o := client.Options{Resolver: net.DefaultResolver, Stdout: os.Stdout, Stderr: os.Stderr}
	flags.StringVar(&o.Keys, "keys", "", "`directory` with the keys")
	flags.IntVar(&o.First, "id", 0, "id of the first client")
	flags.IntVar(&o.Clients, "clients", 1, "clients to run")
	duration := flags.Float64("duration", 30, "`seconds` of the whole run (client)")
	warmUp := flags.Float64("warmup", 0, "`seconds` at the start that are not reported (client)")
	coolDown := flags.Float64("cooldown", 0, "`seconds` at the end that are not reported (client)")
	flags.DurationVar(&o.DieAfter, "die_after", 0, "how long after the start to print what there is and crash; 0: not (client)")
	flags.DurationVar(&o.PrintTime, "print_time", 300*time.Millisecond, "how long to take before printing (stress)")
	if err := flags.Parse(args); err != nil {
		return 2, nil //nolint:nilerr // flag has printed it
	}
	o.Duration, o.WarmUp, o.CoolDown = seconds(*duration), seconds(*warmUp), seconds(*coolDown)
	var err error
	if o.Config, err = readConfig(*config); err != nil {
		return 1, err
	}
	return manner(ctx, o)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func readConfig(file string) (group.Config, error) {
	f, err := os.Open(file)
	if err != nil {
		return group.Config{}, fmt.Errorf("open configuration: %w", err)
	}
	defer f.Close()
	config, err := group.Parse(f)
	if err != nil {
		return group.Config{}, fmt.Errorf("%s: %w", file, err)
	}
	return config, nil
}

func exit(err error) (int, error) {
	if err != nil {
		return 1, err
	}
	return 0, nil
}
