package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/node/loadgen"
	"assay.dev/assay/operator/internal/node/loadgen/drivers/echo"
	"assay.dev/assay/operator/internal/node/loadgen/drivers/process"
	"assay.dev/assay/operator/internal/results"
)

// runFlags are the flags of run. All but config describe a run without a configuration file.
type runFlags struct {
	config                            string
	driver, address                   string
	clients                           int32
	rate                              float64
	arrivals                          string
	timeout                           time.Duration
	retryAttempts                     int32
	thinkTime                         time.Duration
	retryBackoff, retryMaxBackoff     time.Duration
	seed                              int64
	warmUp, measure, coolDown, drain  time.Duration
	out, progress, readyFile, startAt string
}

func runCommand(env environment, stdout, stderr io.Writer, log *slog.Logger) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run (--config FILE | --driver echo --address HOST:PORT | --driver process -- COMMAND...) [flags]",
		Short: "Offer load and print what was measured",
		Long: `Offer load and print what was measured.

With --config a file sets everything (docs/reference/client-interface.md), and no other flag may be given.
The loop is closed unless --rate is given. The exit code is 0 when the run went through, also when requests failed.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := f.toConfig(cmd, args)
			if err != nil {
				return err
			}
			if cfg.Files.Ready == "" {
				cfg.Files.Ready = env.readyFile
			}
			if cfg.Files.Start == "" {
				cfg.Files.Start = env.startFile
			}
			return run(cmd.Context(), cfg, stdout, stderr, log)
		},
	}
	f.register(cmd)
	return cmd
}

func (f *runFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&f.config, "config", "", "configuration file, JSON; no other flag may be given with it")
	fl.StringVar(&f.driver, "driver", "", "how the system is reached: echo, process")
	fl.StringVar(&f.address, "address", "", "address of the echo server, host:port")
	fl.Int32Var(&f.clients, "clients", 1, "clients, 1 to 100000; in an open loop the most requests outstanding at once")
	fl.Float64Var(&f.rate, "rate", 0, "open loop: requests offered per second, above 0, 100000000 at most; 0: closed loop")
	fl.StringVar(&f.arrivals, "arrivals", "poisson", "arrivals of an open loop: constant, poisson")
	fl.DurationVar(&f.timeout, "timeout", 10*time.Second, "time after which an attempt has timed out, 1ms to 10m")
	fl.DurationVar(&f.thinkTime, "think-time", 0, "wait of a client between the end of a transaction and the next, 0s to 10m; closed loop only")
	fl.Int32Var(&f.retryAttempts, "retry-attempts", 0, "attempts of a transaction that aborts, the first included; 0: no limit")
	fl.DurationVar(&f.retryBackoff, "retry-backoff", 2*time.Millisecond, "wait before the second attempt, 0s or more; doubled for each further one")
	fl.DurationVar(&f.retryMaxBackoff, "retry-max-backoff", 300*time.Millisecond, "longest wait between attempts, at least --retry-backoff")
	fl.Int64Var(&f.seed, "seed", 1, "seed of arrivals and waits; the driver gets it, too")
	fl.DurationVar(&f.warmUp, "warm-up", time.Second, "load before the window that is not measured, 0s to 1h")
	fl.DurationVar(&f.measure, "measure", 5*time.Second, "length of the measurement window, 1ms to 24h")
	fl.DurationVar(&f.coolDown, "cool-down", 0, "load after the window that is not measured, 0s to 1h")
	fl.DurationVar(&f.drain, "drain", 5*time.Second, "time to wait for late replies at the end, 0s to 1h")
	fl.StringVar(&f.out, "out", "", "file to write the results to (docs/reference/results.md); empty: none")
	fl.StringVar(&f.progress, "progress", "", "file to write the progress to, once a second; empty: none")
	fl.StringVar(&f.readyFile, "ready-file", "", "file to make when ready for the start; default: $ASSAY_READY_FILE, or none")
	fl.StringVar(&f.startAt, "start-file", "", "file to wait for before the start; default: $ASSAY_START_FILE, or none: start at once")
}

func (f *runFlags) toConfig(cmd *cobra.Command, args []string) (loadgen.Config, error) {
	if f.config != "" {
		if cmd.Flags().NFlag() > 1 || len(args) > 0 {
			return loadgen.Config{}, errors.New("--config sets everything; give no other flags or arguments with it")
		}
		return loadgen.ReadConfig(f.config)
	}
	cfg := loadgen.Config{
		Clients: f.clients, Loop: loadgen.LoopClosed, Timeout: loadgen.Duration(f.timeout), Seed: f.seed,
		ThinkTime: loadgen.Duration(f.thinkTime),
		Retry:     loadgen.Retry{Attempts: f.retryAttempts, Backoff: loadgen.Duration(f.retryBackoff), MaxBackoff: loadgen.Duration(f.retryMaxBackoff)},
		Windows: loadgen.Windows{WarmUp: loadgen.Duration(f.warmUp), Measure: loadgen.Duration(f.measure),
			CoolDown: loadgen.Duration(f.coolDown), Drain: loadgen.Duration(f.drain)},
		Files: loadgen.Files{Ready: f.readyFile, Start: f.startAt, Result: f.out, Progress: f.progress},
	}
	if cmd.Flags().Changed("rate") {
		cfg.Loop, cfg.Rate = loadgen.LoopOpen, f.rate
		switch f.arrivals {
		case "constant":
			cfg.Arrivals = loadgen.ArrivalsConstant
		case "poisson":
			cfg.Arrivals = loadgen.ArrivalsPoisson
		default:
			return cfg, fmt.Errorf("--arrivals is %q; it must be constant or poisson", f.arrivals)
		}
	} else if cmd.Flags().Changed("arrivals") {
		return cfg, errors.New("--arrivals belongs to an open loop; give --rate, too")
	}
	if err := f.driverConfig(&cfg, args); err != nil {
		return cfg, err
	}
	return cfg, cfg.Validate()
}

func (f *runFlags) driverConfig(cfg *loadgen.Config, args []string) error {
	switch f.driver {
	case "echo":
		if f.address == "" || len(args) > 0 {
			return errors.New("--driver echo needs --address HOST:PORT, and no command")
		}
		cfg.Driver = loadgen.DriverConfig{Protocol: loadgen.ProtocolEcho, Address: f.address}
	case "process":
		if len(args) == 0 || f.address != "" {
			return errors.New("--driver process needs the driver's command after --, and no --address")
		}
		cfg.Driver = loadgen.DriverConfig{Protocol: loadgen.ProtocolProcess, Command: args}
	case "":
		return errors.New("give --config FILE or --driver echo|process")
	default:
		return fmt.Errorf("--driver is %q; it must be echo or process", f.driver)
	}
	return nil
}

func run(ctx context.Context, cfg loadgen.Config, stdout, stderr io.Writer, log *slog.Logger) error {
	drivers, err := openDrivers(cfg, stderr, log)
	if err != nil {
		return err
	}
	c, err := loadgen.Run(ctx, cfg, drivers, log)
	if err != nil {
		return err
	}
	if cfg.Files.Result != "" {
		if err := loadgen.WriteResult(cfg.Files.Result, c); err != nil {
			return err
		}
	}
	if c.Failure != "" {
		return errors.New(c.Failure)
	}
	return printTable(stdout, c)
}

func openDrivers(cfg loadgen.Config, stderr io.Writer, log *slog.Logger) (d loadgen.Drivers, err error) {
	if d.Correct, err = openDriver(cfg, cfg.Driver, stderr, log); err != nil || cfg.Misbehaving == nil {
		return d, err
	}
	if d.Misbehaving, err = openDriver(cfg, cfg.Misbehaving.Driver, stderr, log); err != nil {
		_, _ = d.Correct.Close() // nothing ran; the error of the other driver says more
		return d, fmt.Errorf("the clients that misbehave: %w", err)
	}
	return d, nil
}

// openDriver starts a driver for all clients of the generator. A driver that carries out the
// transactions of only some clients finds out itself which ones.
func openDriver(cfg loadgen.Config, d loadgen.DriverConfig, stderr io.Writer, log *slog.Logger) (loadgen.Driver, error) {
	if d.Protocol == loadgen.ProtocolEcho {
		return echo.New(d.Address, time.Duration(cfg.Timeout)), nil
	}
	return process.Start(process.Options{
		Command: d.Command, Stderr: stderr, FirstClient: cfg.FirstClient, Clients: cfg.Clients,
		Seed: cfg.Seed, Timeout: time.Duration(cfg.Timeout), Log: log,
	})
}

// printTable prints the window's numbers for a human.
func printTable(w io.Writer, c results.Client) error {
	m, err := results.Merge([]results.Client{c})
	if err != nil {
		return err
	}
	s := m.Summary
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s "+format+"\n", append([]any{name}, args...)...)
	}
	line("window", "%v, %d clients", time.Duration(c.MeasureNanos), c.Clients-c.MisbehavingClients)
	line("throughput", "%.1f committed per second", s.Throughput)
	line("latency", "mean %.3f  p50 %.3f  p90 %.3f  p99 %.3f  p99.9 %.3f  max %.3f ms",
		s.MeanMillis, s.P50Millis, s.P90Millis, s.P99Millis, s.P999Millis, s.MaxMillis)
	line("requests", "%d offered, %d committed", s.Offered, s.Committed)
	line("aborts", "%d aborted, %d retries, %d given up", s.Aborted, s.Retries, s.GivenUp)
	line("failures", "%d errors, %d timeouts, %d latencies out of range", s.Errors, s.Timeouts, s.OutOfRange)
	if c.SendLag != "" {
		line("sending", "p99 %.3f ms late, %d more than 1 ms late, %d unsent", s.SendLagP99Millis, s.LateSends, s.Unsent)
	}
	for _, name := range m.DriverNames() {
		line("driver", "%s %d", name, m.Driver[name])
	}
	if c.MisbehavingClients > 0 {
		line("misbehaving", "%d clients, of whose doing nothing is in the numbers above", c.MisbehavingClients)
	}
	for _, name := range slices.Sorted(maps.Keys(m.MisbehavingDriver)) {
		line("misbehaving", "%s %d", name, m.MisbehavingDriver[name])
	}
	_, err = io.WriteString(w, b.String())
	return err
}
