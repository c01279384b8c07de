// Command vm runs tests in a virtual machine with a stock Debian kernel. They need more of a kernel
// than the machine at hand has, or time that is exact.
//
//	vm -kernel DIRECTORY [-json] [-timeout 30m] [-run REGEXP] [PACKAGE...]
//
// It builds the test binaries, boots once, and runs in turn what tests.txt lists, of these packages
// if some are given. Each listed test must pass, and none of its parts may be skipped. With -run it
// runs those tests of the packages whatever the list says, for a developer. Its output is that of
// go test -v, or with -json of go test -json.
//
// The machine is qemu's emulation (TCG), no KVM, with one processor that takes 4 ns for an
// instruction (-icount shift=2), and whose time jumps ahead when it is idle (sleep=off). Its clocks
// know nothing of the host's: other work of the host does not change what a program measures in it,
// and each run gives nearly the same. The tests find ASSAY_VM=1 in their environment.
//
// Nearly: two runs print the same figures to the last digit until qemu's two threads meet, after a
// minute or three; from there on the last digits differ. On a busy host a timer of the machine may
// then end 4 ms late, or a second, and a test that judges instants fails, once in many runs. So at
// most three tests that failed run once more. On one processor of the host the threads meet, too;
// with SCHED_FIFO qemu hangs.
//
//	vm  --+-- qemu -- kernel -- /init: this program again, as process 1 -- each test binary in turn
//	      |              |          |
//	      |              +-- ttyS0: the kernel's messages, shown when the machine ends early
//	      +-- one JSON line for each line of output, and for each exit status -- ttyS1
//
// Everything that the machine has is in its initramfs: /init, the programs, testdata, and the
// kernel's modules, which are loaded before they start.
//
// Exit status: 0 if all that is listed has passed, 1 if not; 125 when the machine did not bring the
// programs to an end.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

func main() {
	if os.Getpid() == 1 {
		guest()
		return
	}
	runtime.LockOSThread() // the death of the thread that started qemu is what ends qemu, see boot
	var o options
	flag.StringVar(&o.kernel, "kernel", "", "directory of vmlinuz and modules/, see kernel.sh")
	flag.BoolVar(&o.json, "json", false, "print what go test -json does")
	flag.StringVar(&o.run, "run", "", "run these tests of the packages, and not those of tests.txt")
	flag.Bool("v", true, "as go test has it: always so")
	timeout := flag.Duration("timeout", 30*time.Minute, "of the whole run, on the host's clock")
	flag.Parse()
	o.packages = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	ctx, cancel := context.WithTimeoutCause(ctx, *timeout, fmt.Errorf("the programs did not end within %v", *timeout))
	status, err := o.test(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "vm:", err)
		status = 125
	}
	cancel()
	stop()
	os.Exit(status)
}
