package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// port is the second serial port, so that the kernel's messages do not mix with ours.
const port = "/dev/ttyS1"

// guest is process 1 of the machine. It switches the machine off when the programs have ended,
// whatever their outcome.
func guest() {
	err := setUp()
	var out *os.File
	if out, _ = os.OpenFile(port, os.O_WRONLY, 0); out == nil {
		out = os.Stdout // the console, which the host shows when the machine ends early
	}
	messages := json.NewEncoder(out)
	if err == nil {
		err = runJob(messages)
	}
	last := message{Over: true}
	if err != nil {
		last.Error = err.Error()
	}
	_ = messages.Encode(last)
	_ = unix.IoctlSetInt(int(out.Fd()), unix.TCSBRK, 1) // wait until the output is transmitted
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {} // process 1 must not end
}

func setUp() error {
	for _, m := range []struct{ kind, at string }{
		{"devtmpfs", "/dev"}, {"proc", "/proc"}, {"sysfs", "/sys"}, {"bpf", "/sys/fs/bpf"}, {"tmpfs", "/tmp"},
	} {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	modules, err := filepath.Glob(modulesDir + "/*")
	if err != nil {
		return err
	}
	for _, path := range modules { // in order of their names, see writeInitramfs
		if err := load(path); err != nil {
			return fmt.Errorf("load module %s: %w", filepath.Base(path), err)
		}
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("set loopback up: %w", err)
	}
	return nil
}

func load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.FinitModule(int(f.Fd()), "", 0)
}

// runJob runs the programs one after the other.
func runJob(messages *json.Encoder) error {
	content, err := os.ReadFile(jobPath)
	if err != nil {
		return err
	}
	var programs []program
	if err := json.Unmarshal(content, &programs); err != nil {
		return fmt.Errorf("%s: %w", jobPath, err)
	}
	for _, p := range programs {
		status, err := p.run(messages)
		if err != nil {
			return err
		}
		if err := messages.Encode(message{Exit: &status}); err != nil {
			return fmt.Errorf("send the exit status: %w", err)
		}
	}
	return nil
}

// as a shell reports it
func (p program) run(messages *json.Encoder) (status int, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(p.path(), p.Arguments...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir(), w, w
	cmd.Env = append([]string{"PATH=/", "HOME=/tmp", "TMPDIR=/tmp"}, p.Environment...)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", p.Name, err)
	}
	w.Close()
	if err := forward(r, messages); err != nil {
		return 0, err
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled() {
		return 128 + int(exit.Sys().(syscall.WaitStatus).Signal()), nil // as a shell tells it
	}
	if err != nil && exit == nil {
		return 0, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

func forward(r io.Reader, messages *json.Encoder) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			if err := messages.Encode(message{Output: line}); err != nil {
				return fmt.Errorf("send output: %w", err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read output: %w", err)
		}
	}
}
