// Command agent is one pod's side of a trial. See package agent.
//
//	/agent run         be the agent, until the pod is deleted (a native sidecar)
//	/agent install     copy the launcher and the load generator into the pod's shared volume, and end (the sidecar's postStart hook)
//	/agent machine     reset the node when the manager says so (a pod of its own; see machine.go)
//	/agent dataset     keep, copy or remove a data set on the node's disk (Jobs and init containers; see package dataset)
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"assay.dev/assay/operator/internal/node/agent"
	"assay.dev/assay/operator/internal/node/dataset"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/parsers"
)

const usage = "usage: agent install [flags] | agent run [flags] | agent machine [flags] | agent dataset keep|copy|remove|directories [flags]"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "agent: %v\n", err)
		os.Exit(exitCode(err))
	}
}

// exitCode tells the manager whether the data set was refused, so that another attempt is useless.
// The manager reads only the code of an init container, then the last lines of its log.
func exitCode(err error) int {
	if refusal := (*dataset.Refusal)(nil); errors.As(err, &refusal) {
		return dataset.ExitRefused
	}
	return 1
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch args[0] {
	case "install":
		return runInstall(args[1:])
	case "run":
		return runAgent(args[1:])
	case "machine":
		return runMachine(args[1:])
	case "dataset":
		return runDataset(args[1:])
	default:
		return errors.New(usage)
	}
}

func runInstall(args []string) error {
	flags := flag.NewFlagSet("install", flag.ContinueOnError)
	from := flags.String("from", "/launcher,/loadgen", "binaries to install, separated by commas")
	to := flags.String("to", protocol.BinDir, "directory to install them in")
	shared := flags.String("shared", protocol.RunDir+","+protocol.OutDir, "directories that every user of the pod must be able to write to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return agent.Install(strings.Split(*from, ","), *to, strings.Split(*shared, ","))
}

func runAgent(args []string) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	config := agent.Config{Parse: parse, Random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	flags.StringVar(&config.Coordinator, "coordinator", os.Getenv("ASSAY_COORDINATOR"), "host:port of the coordinator (or ASSAY_COORDINATOR)")
	flags.StringVar(&config.CAFile, "ca-file", "/assay/identity/ca.crt", "certificates that may sign the coordinator's")
	flags.StringVar(&config.TokenFile, "token-file", "/assay/identity/token", "the pod's token for the coordinator")
	flags.StringVar(&config.RunDir, "run-dir", protocol.RunDir, "directory of sockets and barrier files")
	flags.StringVar(&config.OutDir, "out-dir", protocol.OutDir, "directory of the processes' output")
	roots := flags.String("file-roots", "", "directories that files may be written to, separated by commas (default: the volumes of this container)")
	pod := flags.String("pod", os.Getenv("POD_NAME"), "name of this pod (or POD_NAME)")
	flags.StringVar(&config.PodUID, "pod-uid", os.Getenv("POD_UID"), "UID of this pod (or POD_UID)")
	offsets := flags.String("simulated-clock-offset", "",
		"for tests of the clock correction: added to every reading of the wall clock; a duration, or <pod>=<duration>,...")
	if err := flags.Parse(args); err != nil {
		return err
	}
	offset, err := simulatedOffset(*offsets, *pod)
	if err != nil {
		return err
	}
	config.Wall = func() time.Time { return time.Now().Add(offset) }
	config.Log = slog.New(slog.NewJSONHandler(io.MultiWriter(os.Stderr, logFile(config.OutDir)), nil)).With("pod", *pod)
	config.Backends = agent.Backends(config.Log)
	if config.FileRoots, err = fileRoots(*roots); err != nil {
		return err
	}
	a, err := agent.New(config)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return a.Run(ctx)
}

// logFile holds the agent's log, which goes to standard error, too. The agent hands it over with
// the pod's other files. If the file cannot be made, the log goes to standard error only.
func logFile(outDir string) io.Writer {
	file, err := os.OpenFile(filepath.Join(outDir, agent.AgentLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644) // #nosec G302 -- as readable as the pod's other logs
	if err != nil {
		return io.Discard
	}
	return file
}

// simulatedOffset of this pod.
func simulatedOffset(text, pod string) (time.Duration, error) {
	for entry := range strings.SplitSeq(text, ",") {
		name, value, named := strings.Cut(entry, "=")
		if !named {
			name, value = pod, entry
		}
		if name != pod || value == "" {
			continue
		}
		offset, err := time.ParseDuration(value)
		if err != nil {
			return 0, fmt.Errorf("read --simulated-clock-offset: %w", err)
		}
		return offset, nil
	}
	return 0, nil
}

func fileRoots(flagged string) ([]string, error) {
	if flagged != "" {
		return strings.Split(filepath.Clean(flagged), ","), nil
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("find the pod's volumes: %w", err)
	}
	return agent.SharedVolumes(string(mounts)), nil
}

func parse(format string, report io.Reader, about agent.ReportFacts) (results.Client, error) {
	return parsers.Parse(format, report, parsers.Options{
		ZeroMonotonicNanos: about.ZeroMonotonicNanos, ZeroUnixNanos: about.ZeroUnixNanos, StartNanos: about.StartNanos, Windows: about.Windows,
		Index: about.Index, FirstClient: about.FirstClient, Clients: about.Clients, Misbehaving: about.Misbehaving,
		Records: about.Records, Histograms: about.Histograms, Summary: about.Summary, Whole: about.Whole, Arrivals: about.Arrivals,
	})
}
