package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// madeFile marks a database directory that Make made and that no node has started since.
const madeFile = "assay-made"

// Make makes a database for a data set: it creates one, runs a command that loads it, and stops the
// server cleanly. The command finds the server at the port on the loopback interface. No setting of
// Make stays with the database.
func Make(ctx context.Context, c Config, port int, command []string) error {
	n := &node{Config: c, port: fmt.Sprint(port), ended: make(chan error, 1)}
	if err := n.create(ctx); err != nil {
		return err
	}
	for _, setting := range []string{
		"listen_addresses=127.0.0.1", "unix_socket_directories=", "port=" + n.port, "shared_buffers=" + c.SharedBuffers, "max_connections=" + fmt.Sprint(c.MaxConnections),
		"dynamic_shared_memory_type=mmap", "jit=off",
		"fsync=off", "full_page_writes=off", // what a machine loses in a crash is made anew
		"wal_recycle=off", // an old file of the log would be copied for each trial
	} {
		n.options = append(n.options, "-c", setting)
	}
	if err := n.start(ctx); err != nil {
		return err
	}
	if err := load(ctx, command); err != nil {
		n.stop()
		return err
	}
	if err := n.halt(ctx); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(n.Data, madeFile), nil, 0o600)
}

// load runs the command.
func load(ctx context.Context, command []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", command[0], err)
	}
	return nil
}

// halt stops the server cleanly, however long its last checkpoint takes.
func (n *node) halt(ctx context.Context) error {
	_ = n.server.Process.Signal(syscall.SIGINT) // fast shutdown; if the server has ended, Wait says how
	select {
	case err := <-n.ended:
		if err != nil {
			return fmt.Errorf("stop the server: %w", err)
		}
		return nil
	case <-ctx.Done():
		n.stop()
		return ctx.Err()
	}
}
