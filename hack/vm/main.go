// Command vm runs a static program in a virtual machine with a stock Debian kernel, for tests that need more of a kernel than the machine at hand has,
// or need time to be exact.
//
//	vm -kernel DIRECTORY [-timeout 30m] [-env NAME=VALUE]... PROGRAM [ARGUMENT]...
//
// It is made for `go test -exec`: output and exit status are the program's, and a directory testdata beside it is there for the program too. See test.sh.
//
// The machine is qemu's emulation (TCG), no KVM, with one processor that takes 4 ns for an instruction (-icount shift=2), and whose time jumps ahead when
// it is idle (sleep=off). Its clocks know nothing of the host's: what a program measures in it does not depend on what else the host does, and is nearly
// the same in each run.
//
//	vm  --+-- qemu -- kernel -- /init: this program again, as process 1 -- PROGRAM
//	      |              |          |
//	      |              +-- ttyS0: the kernel's messages, shown when the machine ends early
//	      +-- one JSON line for each line of output -- ttyS1, the last one with the exit status
//
// Everything that the machine has is in its initramfs: /init, the program, testdata, and the kernel's modules, which are loaded before it starts.
//
// Exit status: the program's; 125 when the machine did not bring it to an end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// failed is the exit status when there is none of the program.
const failed = 125

func main() {
	if os.Getpid() == 1 {
		guest()
		return
	}
	runtime.LockOSThread() // the death of the thread that started qemu is what ends qemu, see boot
	kernel := flag.String("kernel", "", "directory of vmlinuz and modules/, see kernel.sh")
	timeout := flag.Duration("timeout", 30*time.Minute, "of the whole run, on the host's clock")
	var environment []string
	flag.Func("env", "add to the program's environment: NAME=VALUE; repeatable", func(s string) error {
		environment = append(environment, s)
		return nil
	})
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	ctx, cancel := context.WithTimeoutCause(ctx, *timeout, fmt.Errorf("the program did not end within %v", *timeout))
	status, err := run(ctx, *kernel, job{Arguments: flag.Args(), Environment: environment})
	if err != nil {
		fmt.Fprintln(os.Stderr, "vm:", err)
		status = failed
	}
	cancel()
	stop()
	os.Exit(status)
}

func run(ctx context.Context, kernel string, j job) (status int, err error) {
	if kernel == "" || len(j.Arguments) == 0 {
		return 0, errors.New("usage: vm -kernel DIRECTORY [-timeout DURATION] [-env NAME=VALUE]... PROGRAM [ARGUMENT ...]")
	}
	scratch, err := os.MkdirTemp("", "assay-vm-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(scratch)
	initramfs := scratch + "/initramfs"
	if err := writeInitramfs(initramfs, kernel+"/modules", j); err != nil {
		return 0, fmt.Errorf("write the initramfs: %w", err)
	}
	return boot(ctx, kernel+"/vmlinuz", initramfs, scratch+"/console", os.Stdout)
}
