package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/node/agent"
)

// runMachine is the life of a pod that resets its node.
//
// At the end it calls reboot(2) with RESTART: the machine starts again at once. No process is ended
// in order, and no file is synced. In the PID namespace of a container the kernel resets no
// machine, but kills the first process of that namespace and all others with it. A node of kind is
// such a container, and its runtime starts it again. The program refuses to run without hostPID,
// where it would end its own container. It also refuses to run outside of a pod, where it would
// reset a user's machine. The manager has checked that the node allows a reset, and that no other
// pods run there. The manager gives the directive over a connection that proves its identity.
func runMachine(args []string) error {
	flags := flag.NewFlagSet("machine", flag.ContinueOnError)
	config := agent.Config{Durable: true, Wall: time.Now, Random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	flags.StringVar(&config.Coordinator, "coordinator", "", "host:port of the coordinator")
	flags.StringVar(&config.CAFile, "ca-file", "", "certificates that may sign the coordinator's")
	flags.StringVar(&config.TokenFile, "token-file", "", "the pod's token for the coordinator")
	flags.StringVar(&config.RunDir, "journal-dir", "", "directory, on a disk of the node, for what must be known after the reset")
	node := flags.String("node", "", "name of the node that the manager means")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := mayReset(*node, os.Getenv("NODE_NAME"), os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getpid()); err != nil {
		return err
	}
	config.Log = slog.New(slog.NewJSONHandler(os.Stderr, nil)).With("node", *node)
	a, err := agent.New(config)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return a.RunMachine(ctx, agent.Machine{Node: *node, Reset: reset, Identity: agent.MachineIdentity})
}

// mayReset fails unless this process is in a pod, on the node that is meant, and in the PID
// namespace of that node. The argument here is the node's name as the kubelet gives it.
func mayReset(meant, here, cluster string, pid int) error {
	switch {
	case cluster == "" || here == "":
		return errors.New("this is no pod of a cluster (KUBERNETES_SERVICE_HOST and NODE_NAME are not both set); only the manager starts it")
	case meant != here:
		return fmt.Errorf("--node is %q, and this pod runs on node %q", meant, here)
	case pid == 1:
		return errors.New("this process is the first of its PID namespace; the pod needs hostPID, or it would reset nothing but its own container")
	}
	return nil
}

func reset() error { return unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART) }
