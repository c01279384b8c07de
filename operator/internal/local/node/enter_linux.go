package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"assay.dev/assay/operator/internal/node/protocol"
)

// Entry is a container that runs on this machine. Another process may carry its pod out.
type Entry struct {
	program, state, id string
	// root is the folder of this machine that shows the container's files.
	root string
}

// Entries returns the containers with the given name, in pods whose names begin with prefix.
func Entries(dir, program, prefix, container string) ([]Entry, error) {
	bundles, err := filepath.Glob(filepath.Join(dir, "pods", "*", "containers", container+".*", "config.json"))
	if err != nil {
		return nil, fmt.Errorf("look for containers: %w", err)
	}
	var all []Entry
	for _, path := range bundles {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the container has just gone
		}
		var spec specs.Spec
		if err == nil {
			err = json.Unmarshal(text, &spec)
		}
		if err != nil {
			return nil, fmt.Errorf("read what container %s is: %w", path, err)
		}
		if spec.Linux == nil || !strings.HasPrefix(spec.Hostname, prefix) {
			continue
		}
		e := Entry{program: program, state: filepath.Join(dir, "runtime"), id: filepath.Base(spec.Linux.CgroupsPath)}
		pid, err := os.ReadFile(filepath.Join(filepath.Dir(path), "pid"))
		if err != nil {
			continue // the container has not started
		}
		e.root = filepath.Join("/proc", strings.TrimSpace(string(pid)), "root")
		if _, err := os.Stat(e.root); err != nil {
			continue // the container has ended
		}
		all = append(all, e)
	}
	return all, nil
}

// Read reads a file of the container.
func (e Entry) Read(path string) ([]byte, error) { return os.ReadFile(filepath.Join(e.root, path)) }

// Run runs a command in the container, as its user, and returns its exit code.
func (e Entry) Run(ctx context.Context, command []string, in, out, errs *os.File, terminal bool) (int, error) {
	args := []string{"--root", e.state, "exec"}
	if terminal {
		args = append(args, "--tty")
	}
	cmd := exec.CommandContext(ctx, e.program, slices.Concat(args, []string{e.id}, command)...) // #nosec G204 -- the runtime that the user chose
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode(), nil
	case err != nil:
		return 0, fmt.Errorf("run a command in container %s: %w", e.id, err)
	}
	return 0, nil
}

// MachineNames returns the names of the machine in the container. Its own name is the first.
func (e Entry) MachineNames(file string) ([]string, error) {
	text, err := e.Read(file)
	if err != nil {
		return nil, fmt.Errorf("read what container %s is called: %w", e.id, err)
	}
	var config protocol.MachineConfig
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("read what container %s is called: %w", e.id, err)
	}
	for _, h := range config.Hosts {
		if len(h.Names) > 0 && h.Names[0] == config.Name {
			return h.Names, nil
		}
	}
	return []string{config.Name}, nil
}
