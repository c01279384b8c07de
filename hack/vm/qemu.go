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

// program is a program that the guest runs. The list of them is /job in its initramfs.
type program struct {
	Name        string   `json:"name"` // of its directory; several calls of one program share it
	Arguments   []string `json:"arguments"`
	Environment []string `json:"environment"`

	file, source string // on the host: the program, and the directory with its testdata
}

// message is one line from the guest on the second serial port.
type message struct {
	Output string `json:"output,omitempty"`
	Exit   *int   `json:"exit,omitempty"`  // of the program that sent the output; later output is that of the next one
	Over   bool   `json:"over,omitempty"`  // the last message
	Error  string `json:"error,omitempty"` // why not all programs were run
}

// memory of the machine in MiB: the initramfs, packed and unpacked, and some 100 MB for waiting
// packets.
const memory = 2048

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

// boot runs the machine until it switches itself off. It calls output for each line of a program's
// output, with the number of the program, and returns the exit statuses.
func boot(ctx context.Context, kernel, initramfs, console string, output func(program int, line string)) (statuses []int, err error) {
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", arguments(kernel, initramfs, console)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	messages, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start qemu: %w", err)
	}
	statuses, last := receive(messages, output)
	err = cmd.Wait()
	switch {
	case last.Over && last.Error == "":
		return statuses, nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case last.Error != "":
		err = errors.New(last.Error)
	case err == nil:
		err = errors.New("the machine ended before the programs")
	}
	return statuses, fmt.Errorf("%w\n%s%s", err, complaints.String(), tail(console, 40))
}

// receive passes output on until the last message. It returns that message with the exit statuses.
// If the machine ends without one, the message is empty.
func receive(messages io.Reader, output func(program int, line string)) (statuses []int, last message) {
	lines := json.NewDecoder(messages)
	for {
		var m message
		err := lines.Decode(&m)
		switch {
		case err != nil || m.Over:
			_, _ = io.Copy(io.Discard, messages) // the rest is the end of the machine
			return statuses, m
		case m.Exit != nil:
			statuses = append(statuses, *m.Exit)
		default:
			output(len(statuses), m.Output)
		}
	}
}

// tail returns the last lines of a file. It returns an empty text if the file cannot be read.
func tail(path string, lines int) string {
	content, _ := os.ReadFile(path)
	all := strings.SplitAfter(strings.ReplaceAll(string(content), "\r", ""), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "")
}
