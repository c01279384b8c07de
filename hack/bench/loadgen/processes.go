package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// warmUp of each run of the generator. The bare client has none; its first requests make no
// difference.
const warmUp = 300 * time.Millisecond

// measured is the result of one closed loop.
type measured struct{ rate, perCPUSecond float64 }

// pinned prepares a program to run on one processor.
func pinned(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a separate session is a separate scheduling group
	return cmd
}

// startOn starts a program on one processor, as a real-time process if asked. A process inherits
// both from the thread that starts it.
func startOn(cpu int, realtime bool, cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("read the processors of this thread: %w", err)
	}
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("pin to CPU %d: %w", cpu, err)
	}
	err := startWith(realtime, cmd)
	if e := unix.SchedSetaffinity(0, &before); err == nil && e != nil {
		err = fmt.Errorf("unpin from CPU %d: %w", cpu, e)
	}
	if err == nil && !realtime {
		// This puts the program ahead of other sessions' processes, if the kernel groups them and
		// allows it.
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", cmd.Process.Pid), []byte("-20"), 0)
	}
	return err
}

func startWith(realtime bool, cmd *exec.Cmd) error {
	if !realtime {
		return cmd.Start()
	}
	if err := setRealtime(true); err != nil {
		return err
	}
	return errors.Join(cmd.Start(), setRealtime(false))
}

// setRealtime gives the calling thread real-time scheduling with the lowest priority, or normal
// scheduling again.
func setRealtime(on bool) error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}
	if on {
		attr.Policy, attr.Priority = unix.SCHED_FIFO, 1
	}
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
		return fmt.Errorf("set the scheduling policy: %w", err)
	}
	return nil
}

func mayRealtime() bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return setRealtime(true) == nil && setRealtime(false) == nil
}

func (b *bench) startServer() (stop func(), err error) {
	cmd := pinned(b.loadgen, "echo-server", "--listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := startOn(serverCPU, b.realtime, cmd); err != nil {
		return nil, fmt.Errorf("start the echo server: %w", err)
	}
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return nil, fmt.Errorf("read the echo server's address: %w", err)
	}
	b.address = strings.TrimSpace(line)
	return stop, nil
}

// clientResult has the needed fields of a results.Client. This program may not import that package.
type clientResult struct {
	Counters struct{ Offered, Committed, LateSends, Unsent, Errors, Timeouts int64 }
	Latency  string
	SendLag  string
	Timeline struct{ Committed []int64 }
}

type loadgenRun struct {
	client       clientResult
	latency, lag *hdr.Histogram
	cpu          time.Duration
	maxRSS       int64
}

func (b *bench) runLoadgen(length time.Duration, flags ...string) (loadgenRun, error) {
	dir, err := os.MkdirTemp("", "bench-loadgen")
	if err != nil {
		return loadgenRun{}, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "result.json")
	return b.execute(out, append([]string{"run", "--driver", "echo", "--address", b.address, "--warm-up", warmUp.String(),
		"--measure", length.String(), "--drain", "1s", "--out", out}, flags...)...)
}

// execute runs the generator with out as its results file, and reads the results.
func (b *bench) execute(out string, args ...string) (r loadgenRun, err error) {
	cmd := pinned(b.loadgen, args...)
	if err := startOn(generatorCPU, b.realtime, cmd); err != nil {
		return r, fmt.Errorf("start the load generator: %w", err)
	}
	if err := cmd.Wait(); err != nil {
		return r, fmt.Errorf("run the load generator: %w", err)
	}
	r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	r.maxRSS = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss * 1024
	content, err := os.ReadFile(out)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(content, &r.client); err != nil {
		return r, fmt.Errorf("read the results: %w", err)
	}
	if n := r.client.Counters; n.Errors+n.Timeouts > 0 {
		return r, fmt.Errorf("%d requests failed and %d timed out; the figures would say nothing", n.Errors, n.Timeouts)
	}
	if r.latency, err = hdr.Decode([]byte(r.client.Latency)); err != nil {
		return r, err
	}
	if r.client.SendLag != "" {
		r.lag, err = hdr.Decode([]byte(r.client.SendLag))
	}
	return r, err
}

func (b *bench) measureLoadgen(conns int) (measured, error) {
	r, err := b.runLoadgen(b.length, "--clients", strconv.Itoa(conns))
	if err != nil {
		return measured{}, err
	}
	var total int64 // with the warm-up, since the CPU time includes it
	for _, n := range r.client.Timeline.Committed {
		total += n
	}
	return measured{rate: float64(r.client.Counters.Committed) / b.length.Seconds(), perCPUSecond: float64(total) / r.cpu.Seconds()}, nil
}

func (b *bench) measureBaseline(conns int) (measured, error) {
	self, err := os.Executable()
	if err != nil {
		return measured{}, err
	}
	length := b.length + warmUp // as long as the generator with its warm-up
	cmd := pinned(self, baselineSubcommand, "-address", b.address, "-conns", strconv.Itoa(conns), "-length", length.String())
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := startOn(generatorCPU, b.realtime, cmd); err != nil {
		return measured{}, fmt.Errorf("start the bare client: %w", err)
	}
	if err := cmd.Wait(); err != nil {
		return measured{}, fmt.Errorf("run the bare client: %w", err)
	}
	total, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64)
	if err != nil {
		return measured{}, fmt.Errorf("read what the bare client did: %w", err)
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return measured{rate: float64(total) / length.Seconds(), perCPUSecond: float64(total) / cpu.Seconds()}, nil
}

// baseline is the bare client: it takes no times, checks no replies, and has no deadlines.
func baseline(args []string) error {
	fl := flag.NewFlagSet(baselineSubcommand, flag.ContinueOnError)
	address := fl.String("address", "", "address of the echo server")
	conns := fl.Int("conns", 1, "connections")
	length := fl.Duration("length", time.Second, "length of the run")
	if err := fl.Parse(args); err != nil {
		return err
	}
	counts := make([]int64, *conns*8) // 8 numbers fill a cache line, so that connections do not share one
	var stop sync.WaitGroup
	var all []net.Conn
	for i := range *conns {
		conn, err := net.Dial("tcp", *address)
		if err != nil {
			return err
		}
		all = append(all, conn)
		stop.Go(func() { echoLoop(conn, &counts[i*8]) })
	}
	time.Sleep(*length)
	var total int64
	for i := range *conns {
		total += counts[i*8] // the data race costs a request or so; a lock would change the loops
	}
	for _, conn := range all {
		_ = conn.Close()
	}
	stop.Wait()
	fmt.Println(total)
	return nil
}

// echoLoop counts round trips until the connection is closed.
func echoLoop(conn net.Conn, count *int64) {
	var out, in [36]byte
	out[3] = 32
	for {
		if _, err := conn.Write(out[:]); err != nil {
			return
		}
		if _, err := io.ReadFull(conn, in[:]); err != nil {
			return
		}
		*count++
	}
}

func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(b))[:3], " ")
}
