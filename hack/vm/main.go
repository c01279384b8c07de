// Command vm runs tests in a virtual machine with a stock Debian kernel. These tests need kernel
// features that this machine may lack, or exact time.
//
//	vm -kernel DIRECTORY [-json] [-timeout 30m] [-run REGEXP] [PACKAGE...]
//
// It builds the test binaries, boots once, and runs the tests in tests.txt one after the other. If
// packages are given, it runs only theirs. Each listed test must pass, and none of its parts may be
// skipped. With -run, for developers, it runs those tests of the packages, whatever the list says.
// Its output is that of go test -v, or with -json of go test -json.
//
// The machine is qemu's emulation (TCG), without KVM. It has one processor that takes 4 ns for an
// instruction (-icount shift=2), and its time jumps ahead when it is idle (sleep=off). Its clocks
// do not depend on the host's. So other work of the host does not change a measurement in it, and
// each run gives nearly the same numbers. The tests find ASSAY_VM=1 in their environment.
//
// Nearly: two runs print the same figures to the last digit until qemu's two threads meet, after a
// minute or three. From then on the last digits differ. On a busy host a timer of the machine may
// then end 4 ms late, or a second late. Then a test that judges instants fails, once in many runs.
// So at most three failed tests run once more. On a single processor of the host the threads meet,
// too. With SCHED_FIFO qemu hangs.
//
//	vm  --+-- qemu -- kernel -- /init: this program again, as process 1 -- each test binary in turn
//	      |              |          |
//	      |              +-- ttyS0: the kernel's messages, shown when the machine ends early
//	      +-- one JSON line for each line of output, and for each exit status -- ttyS1
//
// All files of the machine are in its initramfs: /init, the programs, testdata, and the kernel's
// modules, which are loaded before the programs start.
//
// Exit status: 0 if all listed tests have passed, 1 if not; 125 if the machine did not run the
// programs to their end.
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
	runtime.LockOSThread() // qemu ends when the thread that started it ends, see boot
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
