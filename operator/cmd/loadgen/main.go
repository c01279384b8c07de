// Command loadgen offers load to a system under test and measures it: see package loadgen.
//
//	loadgen run --config FILE
//	loadgen run --driver echo --address 127.0.0.1:7000 --clients 16 --measure 5s
//	loadgen run --driver process --clients 16 --measure 5s -- ./driver --its-flags
//	loadgen echo-server --listen 127.0.0.1:7000
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/node/loadgen/drivers/echo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	env := environment{readyFile: os.Getenv("ASSAY_READY_FILE"), startFile: os.Getenv("ASSAY_START_FILE")}
	err := command(env, os.Stdout, os.Stderr, os.Args[1:]).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "loadgen:", err)
		os.Exit(1)
	}
}

// environment holds the variables of a client pod's environment.
type environment struct{ readyFile, startFile string }

func command(env environment, stdout, stderr io.Writer, args []string) *cobra.Command {
	root := &cobra.Command{
		Use:           "loadgen",
		Short:         "Offer load to a system under test and measure it",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	root.AddCommand(runCommand(env, stdout, stderr, log), echoServerCommand(stdout))
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetArgs(args)
	return root
}

func echoServerCommand(stdout io.Writer) *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "echo-server",
		Short: "Serve the echo driver: send every message back",
		Long: "Serve the echo driver: send every message back. A message is the length of its body in 4 bytes, big-endian, and the body.\n" +
			"The first line of the output is the address that it listens on. It ends with SIGINT or SIGTERM.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return fmt.Errorf("listen at --listen %s, which must be host:port: %w", listen, err)
			}
			fmt.Fprintln(stdout, l.Addr())
			return echo.Serve(cmd.Context(), l)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:7000", "address to listen on, host:port; port 0: any that is free")
	return cmd
}
