package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// job is what the guest is to run, in its initramfs as /job.
type job struct {
	Arguments   []string `json:"arguments"` // the first is the program, which lies at programPath
	Environment []string `json:"environment"`
}

// message is one line from the guest on the second serial port.
type message struct {
	Output string `json:"output,omitempty"`
	Exit   *int   `json:"exit,omitempty"`  // the last message has it,
	Error  string `json:"error,omitempty"` // or why the program could not be run
}

// memory of the machine in MiB: the initramfs, in pages and unpacked, and some 100 MB for packets that wait.
const memory = 1024

// commandLine of the kernel. An oops ends the machine, and with it the test.
const commandLine = "console=ttyS0 quiet panic=-1 oops=panic"

func arguments(kernel, initramfs, console string) []string {
	return []string{
		"-accel", "tcg", "-icount", "shift=2,sleep=off", "-rtc", "base=2026-01-01,clock=vm", "-seed", "1",
		"-smp", "1", "-m", fmt.Sprint(memory), "-nodefaults", "-display", "none", "-no-reboot",
		"-serial", "file:" + console, "-serial", "stdio",
		"-kernel", kernel, "-initrd", initramfs, "-append", commandLine,
	}
}

// boot runs the machine until it switches itself off, copies the program's output to out and returns its exit status.
func boot(ctx context.Context, kernel, initramfs, console string, out io.Writer) (status int, err error) {
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", arguments(kernel, initramfs, console)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	messages, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return 0, fmt.Errorf("start qemu: %w", err)
	}
	last := receive(messages, out)
	err = cmd.Wait()
	switch {
	case last.Exit != nil:
		return *last.Exit, nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case last.Error != "":
		err = errors.New(last.Error)
	case err == nil:
		err = errors.New("the machine ended before the program")
	}
	return 0, fmt.Errorf("%w\n%s%s", err, complaints.String(), tail(console, 40))
}

// receive copies output until the last message, which it returns; a message without status and error if the machine ends without one.
func receive(messages io.Reader, out io.Writer) message {
	lines := json.NewDecoder(messages)
	for {
		var m message
		if err := lines.Decode(&m); err != nil || m.Exit != nil || m.Error != "" {
			_, _ = io.Copy(io.Discard, messages) // what follows is the end of the machine
			return m
		}
		fmt.Fprint(out, m.Output)
	}
}

// tail returns the last lines of a file; nothing if it cannot be read.
func tail(path string, lines int) string {
	content, _ := os.ReadFile(path)
	all := strings.SplitAfter(strings.ReplaceAll(string(content), "\r", ""), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "")
}
