// Command launcher is the first process of every system and client container of a trial. See
// package launcher.
//
//	/assay/bin/launcher --name replica
//	/assay/bin/launcher --version         all that a pod runs which has a node pull its images
//
// It runs nothing until the pod's agent says so, and it stays when the process exits, so that the
// kubelet restarts nothing. Any signal that a container runtime may send to end a container makes
// it kill what runs and exit with 0 at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/text/buildinfo"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "launcher: %v\n", err)
		os.Exit(1)
	}
}

func run() error {
	options := launcher.Options{Stdout: os.Stdout, Stderr: os.Stderr}
	flag.StringVar(&options.Name, "name", "", "name of the container")
	flag.StringVar(&options.RunDir, "run-dir", "/assay/run", "directory of the sockets")
	flag.StringVar(&options.OutDir, "out-dir", "/assay/out", "directory of the kept output")
	flag.Int64Var(&options.OutputLimit, "output-limit", 64<<20, "most bytes kept of each of stdout and stderr")
	flag.BoolVar(&options.NoControlGroup, "no-control-group", false, "the container has no control group: add up over its processes what it uses")
	version := flag.Bool("version", false, "print the version and exit")
	flag.Parse()
	if *version {
		fmt.Println(buildinfo.Version())
		return nil
	}
	if options.Name == "" || flag.NArg() > 0 {
		return errors.New("usage: launcher --name CONTAINER [flags]")
	}
	// An image may choose its own stop signal; these are the usual ones (37 is SIGRTMIN+3,
	// systemd's).
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.Signal(37))
	defer stop()
	return launcher.Serve(ctx, options)
}
